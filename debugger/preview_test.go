package debugger

import (
	"strings"
	"testing"
)

func TestPreviews(t *testing.T) {
	j := journal(t, recording(t, "hostile_objects"))
	s, err := j.State(j.Steps())
	if err != nil {
		t.Fatal(err)
	}
	for name, number := range j.table.byName {
		if v, ok := s.Globals[number]; ok {
			if text := s.Preview(&j.table, v, 40); len(text) > 40+len("...")+8 {
				t.Errorf("%s: %d bytes", name, len(text))
			}
		}
	}
	for text, want := range map[string]string{
		"plain": `'plain'`, "it's": `"it's"`, `both ' and "`: `'both \' and "'`, "a\nb\t\\": `'a\nb\t\\'`, "\x00\x7fé\u200b": `'\x00\x7fé\u200b'`,
		"\xed\xa0\xbd": `'\ud83d'`, "\U0001f600": "'\U0001f600'",
	} {
		if got := pythonText(text); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
	if got := pythonBytes("a'\x00\n\xff"); got != `b'a\'\x00\n\xff'` {
		t.Errorf("bytes are %s", got)
	}
}

// A cycle, and what is deep, comes to an end.
func TestPreviewsEnd(t *testing.T) {
	s, table := evaluated(t)
	s.Objects[1] = &Object{Number: 1, Type: s.Objects[1].Type, Form: Items, Length: 2, Values: []Value{{Tag: TagObject, Object: 1}, {Tag: TagObject, Object: 2}}}
	for want, v := range map[string]Value{"[[...], {'k': 4}]": {Tag: TagObject, Object: 1}, "<P x=9>": {Tag: TagObject, Object: 3}, "[1, 2, ...]": {Tag: TagObject, Object: 4}, "...": {Tag: TagObject, Object: 99}} {
		if got := s.Preview(table, v, 100); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	wide := strings.Repeat("é", 100)
	if got := s.Preview(table, Value{Tag: TagText, Text: wide}, 50); len(got) > 60 || !strings.HasSuffix(got, "é...") {
		t.Errorf("%s", got)
	}
}
