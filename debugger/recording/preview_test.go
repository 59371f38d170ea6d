package recording_test

import (
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

func TestPreviewKeepsToItsLimit(t *testing.T) {
	t.Parallel()
	r := journalOf(t, recordingtest.Recorded("hostile_objects")).Snapshot()
	s, err := r.State(r.Steps())
	if err != nil {
		t.Fatal(err)
	}
	const limit = 40
	for name, v := range s.Globals {
		if text := s.Preview(r.Table(), v, limit); len(text) > limit+len("...")+8 {
			t.Errorf("%s: got %d bytes, want about %d at most", r.Table().Name(name), len(text), limit)
		}
	}
}

func TestTextsAreQuotedAsPythonDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": `'plain'`, "it's": `"it's"`, `both ' and "`: `'both \' and "'`, "a\nb\t\\": `'a\nb\t\\'`,
		"\x00\x7fé\u200b": `'\x00\x7fé\u200b'`, "\xed\xa0\xbd": `'\ud83d'`, "\U0001f600": "'\U0001f600'",
	} {
		if got := recording.PythonText(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got, want := recording.PythonBytes("a'\x00\n\xff"), `b'a\'\x00\n\xff'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPreviewEndsInCyclesAndDeepObjects(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("list", "dict", "P")
	list, dict, object, long := uint64(1), uint64(2), uint64(3), uint64(4)
	for _, o := range []recording.Object{
		recordingtest.List(list, 3, recordingtest.Ref(list), recordingtest.Ref(dict)),
		{Number: dict, Type: 4, Form: recording.Pairs, Length: 1,
			Values: []recording.Value{recordingtest.Text("k"), recordingtest.Int(4)}},
		{Number: object, Type: 5, Form: recording.Attributes, Length: 1,
			Values: []recording.Value{recordingtest.Text("x"), recordingtest.Int(9)}},
		{Number: long, Type: 3, Form: recording.Items, Length: 100,
			Values: []recording.Value{recordingtest.Int(1), recordingtest.Int(2)}},
	} {
		b.Object(o)
	}
	b.Line(0)
	r := journalOf(t, b.Stream).Snapshot()
	s, err := r.State(1)
	if err != nil {
		t.Fatal(err)
	}
	for want, number := range map[string]uint64{"[[...], {'k': 4}]": list, "<P x=9>": object, "[1, 2, ...]": long,
		"...": 99} {
		if got := s.Preview(r.Table(), recordingtest.Ref(number), 100); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	wide := recordingtest.Text(strings.Repeat("é", 100))
	if got := s.Preview(r.Table(), wide, 50); len(got) > 60 || !strings.HasSuffix(got, "é...") {
		t.Errorf("got %s, want at most 60 bytes of whole characters", got)
	}
}
