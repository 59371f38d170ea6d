package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/service/chat/chattest"
)

// TestChatShowsNoKeyOfTheEndpoint shows that a text of the endpoint cannot have the endpoint's key in a note: neither
// in a header, nor split by characters that a reader does not see.
func TestChatShowsNoKeyOfTheEndpoint(t *testing.T) {
	t.Parallel()
	retry := func(value string) []chattest.Reply {
		return []chattest.Reply{{Status: 429, Header: map[string]string{"Retry-After": value}}}
	}
	refusal := func(body string) []chattest.Reply { return []chattest.Reply{{Status: 400, Body: body}} }
	half, rest := modelKey[:8], modelKey[8:]
	s := newChatServer(t, map[string][]chattest.Reply{
		"key": retry(modelKey), "key and number": retry("17 " + modelKey),
		"date":    retry("Fri, 31 Dec 1999 23:59:59 GMT"),
		"century": retry("3155760000"), "negative": retry("-1"), "digits": retry("86400"),
		"zero width": refusal(half + "\u200b" + rest), "NUL": refusal(half + "\x00" + rest),
		"not UTF-8":   refusal(half + "\xff" + rest),
		"soft hyphen": refusal(`{"error":"` + half + `\u00ad` + rest + `"}`),
	})
	c := s.talker(t)
	for text, want := range map[string]string{
		"key": "again later.", "key and number": "again later.", "date": "again later.", "century": "again later.",
		"negative": "again later.", "digits": "again after 86400 s.",
		"zero width": "“***”", "NUL": "“***”", "not UTF-8": "“***”", "soft hyphen": "“***”",
	} {
		if note := last(c.ask(t, text)); !strings.Contains(note.Text, want) || strings.Contains(note.Text, rest) {
			t.Errorf("%s: got the note %q, want %q and no part of the key", text, note.Text, want)
		}
	}
	if strings.Contains(s.log.String(), rest) {
		t.Errorf("got the log %s, want no part of the key", s.log)
	}
}
