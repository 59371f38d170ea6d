package httpapi_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// serverEvent is an event as a client reads it.
type serverEvent struct {
	id   int64
	name string
	data map[string]any
}

// eventReader reads a stream of server-sent events. close disconnects.
type eventReader struct {
	t     testing.TB
	resp  *http.Response
	lines *bufio.Scanner
	close context.CancelFunc
}

func (c client) stream(t testing.TB, method, path string, body any, headers ...string) *eventReader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var in *strings.Reader = strings.NewReader("")
	if body != nil {
		in = strings.NewReader(string(mustJSON(t, body)))
	}
	req, err := http.NewRequestWithContext(ctx, method, cmp.Or(c.server, serverURL)+c.prefix+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+c.secret)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 64<<20)
	return &eventReader{t, resp, lines, cancel}
}

// next returns the next event, or false at the end of the stream.
func (e *eventReader) next() (serverEvent, bool) {
	var out serverEvent
	var data string
	for e.lines.Scan() {
		field, value, _ := strings.Cut(e.lines.Text(), ": ")
		switch field {
		case "id":
			out.id, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			out.name = value
		case "data":
			data = value
		case "":
			if out.name == "" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &out.data); err != nil {
				e.t.Errorf("the event's data %.200s is not JSON: %v", data, err)
			}
			return out, true
		}
	}
	return out, false
}

func (e *eventReader) all() (list []serverEvent) {
	for event, more := e.next(); more; event, more = e.next() {
		list = append(list, event)
	}
	return list
}

// until reads up to the first event of a name, which must come.
func (e *eventReader) until(name string) (list []serverEvent) {
	e.t.Helper()
	for event, more := e.next(); more; event, more = e.next() {
		if list = append(list, event); event.name == name {
			return list
		}
	}
	e.t.Fatalf("got no event %s in %v", name, list)
	return nil
}

// joinText joins the text of stdout or stderr events.
func joinText(list []serverEvent, name string) string {
	var b strings.Builder
	for _, e := range list {
		if e.name == name {
			b.WriteString(fmt.Sprint(e.data["text"]))
		}
	}
	return b.String()
}

// eventNames returns the events' names; repeated names count once.
func eventNames(list []serverEvent) (out []string) {
	for _, e := range list {
		if len(out) == 0 || out[len(out)-1] != e.name {
			out = append(out, e.name)
		}
	}
	return out
}

// checkEventIDs checks that ids count up by one after from.
func checkEventIDs(t testing.TB, list []serverEvent, from int64) {
	t.Helper()
	for i, e := range list {
		if e.id != from+int64(i)+1 {
			t.Fatalf("event %d (%s): got the id %d", i, e.name, e.id)
		}
	}
}
