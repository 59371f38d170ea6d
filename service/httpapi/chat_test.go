package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/chat"
	"glasshouse/service/chat/chattest"
	"glasshouse/service/httpapi"
)

const modelKey = "sk-key-of-the-endpoint"

// chatServer is an API whose model is a scripted endpoint.
type chatServer struct {
	*chattest.Endpoint
	chat *chat.Chat
	url  string
	log  *strings.Builder
}

func newChatServer(t *testing.T, scripts map[string][]chattest.Reply) *chatServer {
	t.Helper()
	endpoint := chattest.Start(scripts)
	t.Cleanup(endpoint.Close)
	s := serveChat(t, &chat.Model{
		URL: endpoint.URL(), Name: "scripted", Key: modelKey, StallTimeout: 30 * time.Second,
	})
	s.Endpoint = endpoint
	return s
}

func serveChat(t *testing.T, model *chat.Model) *chatServer {
	t.Helper()
	s := &chatServer{log: &strings.Builder{}}
	log := logrus.New()
	log.SetOutput(s.log)
	s.chat = chat.New(chat.Config{
		Live: testServices.live, Records: testServices.records, History: testChats, Access: testServices.access,
		Model: model, Log: log, Tools: testServices.mcp(log),
	})
	api := testServices.api(log)
	api.Chat = s.chat
	server := httptest.NewServer(httpapi.New(api))
	s.url = server.URL
	t.Cleanup(func() { server.CloseClientConnections(); s.chat.Drain(); server.Close() })
	return s
}

// talker is a user with a conversation.
type talker struct {
	client
	id string
}

func (s *chatServer) talker(t *testing.T) talker {
	t.Helper()
	c := newUser(t, sandbox.RoleAgent)
	c.server = s.url
	id, _ := c.ok(t, "POST", "/chat/conversations", nil).get("conversation_id").(string)
	return talker{c, id}
}

func (c talker) path(rest string) string { return "/chat/conversations/" + c.id + rest }

func (c talker) send(t *testing.T, text string) {
	t.Helper()
	if a := c.do(t, "POST", c.path("/messages"), map[string]any{"text": text}); a.status != http.StatusAccepted {
		t.Fatalf("send %q: got HTTP %d, want 202: %s", text, a.status, a.text)
	}
}

func (c talker) messages(t *testing.T) (list []sandbox.ChatMessage) {
	t.Helper()
	var view chat.ConversationView
	a := c.ok(t, "GET", c.path(""), nil)
	if err := json.Unmarshal(a.text, &view); err != nil {
		t.Fatal(err)
	}
	return view.Messages
}

// chatEvent is an event of a conversation.
type chatEvent struct {
	id, name string
	data     struct {
		sandbox.ChatMessage
		Truncated bool   `json:"truncated"`
		Type      string `json:"type"` // of a problem
	}
}

// follow opens the events. The returned function returns the next one, and false after the last.
func (c talker) follow(t *testing.T, after string) func() (chatEvent, bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", c.server+c.path("/events"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("follow: got HTTP %d, want 200: %s", resp.StatusCode, text)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<22)
	return func() (e chatEvent, ok bool) {
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &e.data); err != nil && e.name != "error" {
					t.Fatalf("the data of an event: %v: %s", err, value)
				}
			case "":
				if e.name != "" {
					return e, true
				}
			}
		}
		return e, false
	}
}

// until reads events up to the first with a name.
func until(t *testing.T, next func() (chatEvent, bool), name string) (all []chatEvent) {
	t.Helper()
	for {
		e, ok := next()
		if !ok {
			t.Fatalf("the stream ended without the event %s; got %v", name, names(all))
		}
		if all = append(all, e); e.name == name {
			return all
		}
	}
}

func names(list []chatEvent) (out []string) {
	for _, e := range list {
		out = append(out, e.name)
	}
	return out
}

// ask sends a text, waits for the end of the answer, and returns the messages that came after the text.
func (c talker) ask(t *testing.T, text string) []sandbox.ChatMessage {
	t.Helper()
	before := len(c.messages(t))
	c.send(t, text)
	until(t, c.follow(t, ""), chat.EventEnd)
	list := c.messages(t)
	for n, m := range list {
		if m.Position != n+1 {
			t.Errorf("message %d has the position %d", n+1, m.Position)
		}
		if n >= before && m.Role == sandbox.MessageUser {
			return list[n+1:]
		}
	}
	t.Fatalf("the message is not in the conversation: %+v", list)
	return nil
}

func last(list []sandbox.ChatMessage) sandbox.ChatMessage {
	if len(list) == 0 {
		return sandbox.ChatMessage{}
	}
	return list[len(list)-1]
}

func TestChatAnswersWithText(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, nil)
	c := s.talker(t)
	list := c.ask(t, "hello")
	if len(list) != 1 || list[0].Role != sandbox.MessageAssistant || list[0].Text != "You said: hello" {
		t.Errorf("got %+v, want one answer with the text of the model", list)
	}
	if list = c.ask(t, "again"); len(list) != 1 {
		t.Errorf("the second answer: got %+v, want one message", list)
	}
	request := s.Requests()[1]
	if m := request.Messages; len(m) != 4 || m[0].Role != "system" || m[1].Content != "hello" ||
		m[2].Content != "You said: hello" || request.Model != "scripted" || !request.Stream {
		t.Errorf("got the request %+v, want the system prompt and the three messages so far", request)
	}
	if got := request.Header.Get("Authorization"); got != "Bearer "+modelKey {
		t.Errorf("got Authorization %q, want the key of the endpoint", got)
	}
	view := c.ok(t, "GET", c.path(""), nil)
	if view.get("title") != "hello" || view.get("answering") != false {
		t.Errorf("got %s, want the title of the first message and no answer in progress", view.text)
	}
	for _, path := range []string{"/chat", c.path(""), "/chat/conversations"} {
		if a := c.ok(t, "GET", path, nil); strings.Contains(string(a.text), modelKey) {
			t.Errorf("%s shows the key of the endpoint: %s", path, a.text)
		}
	}
	if status := c.ok(t, "GET", "/chat", nil); status.get("configured") != true || status.get("host") != s.Host() {
		t.Errorf("got %s, want the host of the endpoint", status.text)
	}
}

func TestChatRunsToolsInOneSession(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"compute": {
			{Chunks: []string{"I compute."}, Calls: []chattest.Call{
				{Tool: "run_python", Arguments: `{"code":"x = 6 * 7\nprint('printed')","session_id":"of-another"}`},
				chattest.Python("x + 1"),
			}},
			{Chunks: []string{"It is 43."}},
		},
		"query": {{Calls: []chattest.Call{{Tool: "query_database", Arguments: `{"sql":"SELECT 12345 AS n"}`}}},
			{Chunks: []string{"done"}}},
	})
	c := s.talker(t)
	list := c.ask(t, "compute")
	if len(list) != 4 || len(list[0].Calls) != 2 || last(list).Text != "It is 43." {
		t.Fatalf("got %+v, want a call message, two results and a text", list)
	}
	box, _ := c.ok(t, "GET", c.path(""), nil).get("sandbox_id").(string)
	for n, m := range list[1:3] {
		if m.Role != sandbox.MessageTool || m.Status != sandbox.MessageComplete || m.CallID != list[0].Calls[n].ID {
			t.Errorf("got %+v, want the result of call %d", m, n)
		}
		e := c.ok(t, "GET", "/executions/"+m.ExecutionID, nil)
		if e.get("sandbox_id") != box || e.get("status") != "completed" {
			t.Errorf("the execution of call %d: got %v in %v, want it completed in %s", n, e.get("status"),
				e.get("sandbox_id"), box)
		}
	}
	if !strings.Contains(list[1].Text, "printed") || !strings.Contains(list[2].Text, "43") {
		t.Errorf("got the results %q and %q, want what was printed and 43", list[1].Text, list[2].Text)
	}
	for _, tool := range s.Requests()[0].Tools {
		if strings.Contains(string(tool.Function.Parameters), "session_id") {
			t.Errorf("the model may name a session in %s: %s", tool.Function.Name, tool.Function.Parameters)
		}
	}
	if m := c.ask(t, "query")[1]; m.ExecutionID == "" || !strings.Contains(m.Text, "12345") {
		t.Errorf("got %+v, want rows and the execution of the statement", m)
	}
}

func TestChatSendsEventsWhileItAnswers(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"slow": {{Chunks: []string{"first "}, Hold: true, Calls: nil}},
		"run": {{Calls: []chattest.Call{chattest.Python("print('one', flush=True)\nprint('two')")}},
			{Chunks: []string{"end"}, Hold: true}},
	})
	c := s.talker(t)
	c.send(t, "slow")
	next := c.follow(t, "")
	if e := until(t, next, chat.EventText); lastEvent(e).data.Text != "first " {
		t.Errorf("got %+v, want the first piece before the end of the answer", e)
	}
	wantProblem(t, c.do(t, "POST", c.path("/messages"), map[string]any{"text": "x"}), 409, "busy", "stop it")
	if a := c.ok(t, "GET", c.path(""), nil); a.get("answering") != true {
		t.Errorf("got %s, want answering", a.text)
	}
	s.Release()
	events := until(t, next, chat.EventEnd)
	if events[0].name != chat.EventMessage || events[0].data.Text != "first " || events[0].data.Position != 2 {
		t.Errorf("got %+v, want the stored message", events[0])
	}
	c.send(t, "run")
	next = c.follow(t, "")
	events = until(t, next, chat.EventText)
	s.Release()
	events = append(events, until(t, next, chat.EventEnd)...)
	text := strings.Join(names(events), " ")
	if !strings.Contains(text, "call message message message") {
		t.Errorf("got the events %s, want the call, its message, the run and its execution", text)
	}
	all := until(t, c.follow(t, ""), chat.EventEnd)
	if len(all) != 1 {
		t.Errorf("without an answer: got %v, want the end only", names(all))
	}
}

func lastEvent(list []chatEvent) chatEvent { return list[len(list)-1] }

// The output that readers get while code runs is the beginning of the whole output, without a gap. A slow reader gets
// less of it: what it has not read when the run ends is in the message.
func TestChatTruncatesLiveOutput(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"print": {{Chunks: []string{"I print."}, Hold: true, Calls: []chattest.Call{chattest.Python(
			"for n in range(40):\n    print('x' * 1999, flush=True)\n" +
				"print('é' * 9000)\nfor n in range(40):\n    print(n)",
		)}}, {Chunks: []string{"end"}}},
	})
	c := s.talker(t)
	c.send(t, "print")
	next := c.follow(t, "")
	until(t, next, chat.EventText)
	s.Release() // the code runs while the reader follows
	output, truncated := "", 0
	for _, e := range until(t, next, chat.EventEnd) {
		if e.name == chat.EventStdout {
			output += e.data.Text
			if e.data.Truncated {
				truncated++
			}
		}
	}
	line := strings.Repeat("x", 1999) + "\n"
	want := strings.Repeat(line, 40)[:64<<10]
	if isWhole := output == want; !strings.HasPrefix(want, output) || output == "" || isWhole != (truncated == 1) {
		t.Errorf("got %d bytes and %d events with truncated, want the first %d bytes and one, or less and none",
			len(output), truncated, len(want))
	}
}

func TestChatEventsResume(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"go": {{Chunks: []string{"I run."}, Calls: []chattest.Call{chattest.Python("1")}},
			{Chunks: []string{"held"}, Hold: true}},
	})
	c := s.talker(t)
	c.send(t, "go")
	next := c.follow(t, "")
	var first []chatEvent
	for len(first) == 0 || lastEvent(first).data.Text != "held" {
		first = append(first, until(t, next, chat.EventText)...)
	}
	middle := first[2]
	again := c.follow(t, middle.id)
	if e, _ := again(); e.id != first[3].id {
		t.Errorf("after %s: got the event %s, want %s", middle.id, e.id, first[3].id)
	}
	if e, _ := c.follow(t, "of-another-answer.3")(); e.name != chat.EventReload {
		t.Errorf("after an event of another answer: got %s, want reload", e.name)
	}
	s.Release()
	until(t, again, chat.EventEnd)
}

func TestChatStops(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"stream": {{Chunks: []string{"a part"}, Hold: true}},
		"run":    {{Calls: []chattest.Call{chattest.Python("print('begun', flush=True)\nwhile True: pass")}}},
	})
	c := s.talker(t)
	wantProblem(t, c.do(t, "POST", c.path("/stop"), nil), 409, "busy", "already ended")
	c.send(t, "stream")
	next := c.follow(t, "")
	until(t, next, chat.EventText)
	c.ok(t, "POST", c.path("/stop"), nil)
	until(t, next, chat.EventEnd)
	<-s.Left()
	list := c.messages(t)
	if list[1].Text != "a part" || list[1].Status != sandbox.MessageCut || last(list).Note != sandbox.NoteStopped {
		t.Errorf("got %+v, want the part and a note that the answer was stopped", list)
	}
	c.send(t, "run")
	next = c.follow(t, "")
	until(t, next, chat.EventStdout)
	c.ok(t, "POST", c.path("/stop"), nil)
	until(t, next, chat.EventEnd)
	list = c.messages(t)
	run := list[len(list)-2]
	if run.Role != sandbox.MessageTool || run.Status != sandbox.MessageCut || last(list).Note != sandbox.NoteStopped {
		t.Errorf("got %+v, want a run that was stopped, and a note", list[len(list)-2:])
	}
	if e := c.finished(t, run.ExecutionID); e.get("status") != "cancelled" {
		t.Errorf("got the execution %v, want cancelled", e.get("status"))
	}
	if list := c.ask(t, "and now"); last(list).Text != "You said: and now" {
		t.Errorf("after a stop: got %+v, want an answer", list)
	}
}

func TestChatSaysWhatIsWrongWithTheEndpoint(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"401":     {{Status: 401, Body: `{"error":{"message":"bad key ` + modelKey + `"}}`}},
		"404":     {{Status: 404, Body: `{"error":"model not found"}`}},
		"429":     {{Status: 429, Header: map[string]string{"Retry-After": "17"}, Body: `{}`}},
		"500":     {{Status: 500, Body: `oh <b>no</b>`}},
		"302":     {{Status: 302, Header: map[string]string{"Location": "http://127.0.0.1:1/v1"}}},
		"break":   {{Chunks: []string{"half"}, Break: true}},
		"nothing": {{Break: true}},
		"html":    {{Status: 200, Body: "<html>welcome</html>\n"}},
		"json":    {{Raw: []string{`data: {"choices": [`, ""}}},
		"error":   {{Raw: []string{`data: {"error":{"message":"out of memory"}}`, ""}}},
		"empty":   {{}},
		"length":  {{Chunks: []string{"long"}, Finish: "length"}},
		"comment": {{Raw: []string{": still loading", "", "event: x", ""}, Chunks: []string{"fine"}}},
	})
	c := s.talker(t)
	for text, want := range map[string]string{
		"401": "refused the key of the service (HTTP 401). It said: “bad key ***”", "404": "--model-name",
		"429": "Send your message again after 17 s", "500": "It said: “oh <b>no</b>”", "302": "redirects",
		"break": "before the end of its answer", "nothing": "closed the connection without an answer",
		"html": "no stream of events, but with: “<html>welcome</html>”", "json": "not a chat completion in JSON",
		"error": "ended its answer with an error: “out of memory”", "empty": "without text and without a call",
		"length": "cut the answer at its own limit of tokens",
	} {
		list := c.ask(t, text)
		if note := last(list); note.Note != sandbox.NoteProblem || !strings.Contains(note.Text, want) ||
			!strings.HasPrefix(note.Text, s.Host()) {
			t.Errorf("%s: got %+v, want a note with the host and %q", text, list, want)
		}
	}
	if list := c.ask(t, "comment"); last(list).Text != "fine" {
		t.Errorf("after the failures, with comments in the stream: got %+v, want an answer", list)
	}
	if strings.Contains(s.log.String(), modelKey) {
		t.Errorf("the log has the key of the endpoint: %s", s.log)
	}
	gone := serveChat(t, &chat.Model{URL: "http://127.0.0.1:1/v1", Name: "x"})
	if list := gone.talker(t).ask(t, "hello"); !strings.Contains(last(list).Text, "refuses connections") {
		t.Errorf("got %+v, want a note that nothing listens there", list)
	}
}

func TestChatEndsAStalledAnswer(t *testing.T) {
	t.Parallel()
	endpoint := chattest.Start(map[string][]chattest.Reply{"stall": {{Chunks: []string{"a"}, Hold: true}}})
	t.Cleanup(endpoint.Close)
	s := serveChat(t, &chat.Model{URL: endpoint.URL(), Name: "x", StallTimeout: 300 * time.Millisecond})
	list := s.talker(t).ask(t, "stall")
	if !strings.Contains(last(list).Text, "sent nothing for 300ms") || list[0].Text != "a" {
		t.Errorf("got %+v, want what came and a note that the endpoint stalls", list)
	}
	<-endpoint.Left()
}

func TestChatLetsTheModelRepairItsCalls(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"wrong": {{Calls: []chattest.Call{
			{Tool: "format_disk", Arguments: `{}`}, {Tool: "run_python", Arguments: `{"code": "1`},
			{Tool: "run_python", Arguments: `[]`}, {Tool: "run_python", Arguments: `{}`}, chattest.Python("1/0"),
		}}, {Chunks: []string{"sorry"}}},
		"loop": {{Calls: []chattest.Call{{Tool: "describe_database", Arguments: ""}}}},
	})
	c := s.talker(t)
	list := c.ask(t, "wrong")
	for n, want := range []string{
		`no tool "format_disk"; the tools are run_python`, "must be a JSON object", "must be a JSON object",
		"code is missing", "ZeroDivisionError",
	} {
		if m := list[n+1]; m.Status != sandbox.MessageFailed || !strings.Contains(m.Text, want) {
			t.Errorf("call %d: got %+v, want it failed with %q", n, m, want)
		}
	}
	if last(list).Text != "sorry" {
		t.Errorf("got %+v, want an answer after the mistakes", last(list))
	}
	list = c.ask(t, "loop")
	if len(list) != 2*chat.MaxRounds+1 || !strings.Contains(last(list).Text, "20 rounds") {
		t.Errorf("got %d messages and %+v, want %d rounds and a note", len(list), last(list), chat.MaxRounds)
	}
}

// A tool message keeps the id of an execution only if the user may read that execution.
func TestChatNotesOnlyExecutionsOfItsUser(t *testing.T) {
	t.Parallel()
	other := newUser(t, sandbox.RoleAgent)
	foreign, _ := other.run(t, other.create(t, nil), "'hidden'").get("execution_id").(string)
	reads := func(id string) chattest.Call {
		return chattest.Call{Tool: "get_execution", Arguments: fmt.Sprintf(`{"execution_id": %q}`, id)}
	}
	s := newChatServer(t, map[string][]chattest.Reply{
		"read": {{Calls: []chattest.Call{reads(foreign), reads(strings.Repeat("k", 9000))}},
			{Chunks: []string{"sorry"}}},
		"name": {{Calls: []chattest.Call{{Tool: strings.Repeat("t", 65), Arguments: "{}"}}}},
	})
	c := s.talker(t)
	list := c.ask(t, "read")
	for n, m := range list[1:3] {
		if m.Status != sandbox.MessageFailed || m.ExecutionID != "" {
			t.Errorf("call %d: got %s with the execution %.40q, want it failed and none", n, m.Status, m.ExecutionID)
		}
	}
	if last(list).Text != "sorry" {
		t.Errorf("got %.200q, want the model's answer after both", last(list).Text)
	}
	if m := last(c.ask(t, "name")); m.Role != sandbox.MessageNote || !strings.Contains(m.Text, "more than 64 bytes") {
		t.Errorf("a tool's name of 65 bytes: got %+v, want a note about its length", m)
	}
}

func TestChatLimits(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"hold": {{Chunks: []string{"x"}, Hold: true}},
		"big": {{Calls: []chattest.Call{chattest.Python("'z' * 7000"), chattest.Python("'z' * 7000")}},
			{Calls: []chattest.Call{chattest.Python("1")}}, {Chunks: []string{"ok"}}},
	})
	c := s.talker(t)
	wantProblem(t, c.do(t, "POST", c.path("/messages"), map[string]any{"text": strings.Repeat("ä", 32001)}), 422,
		"invalid-input", "at most 32000")
	wantProblem(t, c.do(t, "POST", c.path("/messages"), map[string]any{"text": " \n"}), 422, "invalid-input", "empty")
	c.send(t, "hold")
	for range 3 {
		other := talker{c.client, ""}
		other.id, _ = c.ok(t, "POST", "/chat/conversations", nil).get("conversation_id").(string)
		other.send(t, "hold")
	}
	fifth, _ := c.ok(t, "POST", "/chat/conversations", nil).get("conversation_id").(string)
	a := c.do(t, "POST", "/chat/conversations/"+fifth+"/messages", map[string]any{"text": "x"})
	wantProblem(t, a, 429, "limit-reached", "4 of your conversations")
	if a.header.Get("Retry-After") == "" {
		t.Error("the problem has no Retry-After")
	}
	long := s.talker(t)
	for range 2 {
		long.ask(t, strings.Repeat("w", 28_000))
	}
	list := long.ask(t, "big")
	if last(list).Text != "ok" || list[0].LeftOut != 0 || last(list).LeftOut != 1 {
		t.Errorf("got %d and %d messages left out, want 0 and then one result", list[0].LeftOut, last(list).LeftOut)
	}
	requests := s.Requests()
	text, total := compactJSON(requests[len(requests)-1].Messages), 0
	for _, m := range requests[len(requests)-1].Messages {
		total += len(m.Content)
	}
	if total > chat.MaxContextChars+5000 || !strings.Contains(text, "This result is left out") {
		t.Errorf("the model gets %d characters, want at most %d and a remark", total, chat.MaxContextChars)
	}
}

func TestChatIsPrivateAndAudited(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, nil)
	c, other := s.talker(t), s.talker(t)
	c.ask(t, "mine")
	stranger := talker{other.client, c.id}
	for _, a := range []answer{
		stranger.do(t, "GET", c.path(""), nil), stranger.do(t, "GET", c.path("/events"), nil),
		stranger.do(t, "POST", c.path("/stop"), nil), stranger.do(t, "POST", c.path("/session"), nil),
		stranger.do(t, "POST", c.path("/messages"), map[string]any{"text": "x"}),
	} {
		wantProblem(t, a, 404, "not-found")
	}
	if a := other.ok(t, "GET", "/chat/conversations", nil); strings.Contains(string(a.text), c.id) {
		t.Errorf("another user sees the conversation: %s", a.text)
	}
	wantProblem(t, c.do(t, "DELETE", c.path(""), nil), 403, "forbidden", "admin")
	root := admin
	root.server = s.url
	root.ok(t, "GET", c.path(""), nil)
	wantProblem(t, root.do(t, "POST", c.path("/messages"), map[string]any{"text": "x"}), 403, "forbidden", "belongs to")
	if a := root.ok(t, "GET", "/audit?object=conversation/"+c.id, nil); !strings.Contains(string(a.text), `"viewed"`) {
		t.Errorf("got the audit log %s, want that the admin viewed the conversation", a.text)
	}
	root.ok(t, "DELETE", c.path(""), nil)
	wantProblem(t, c.do(t, "GET", c.path(""), nil), 404, "not-found")
	if a := root.ok(t, "GET", "/audit?object=conversation/"+c.id, nil); !strings.Contains(string(a.text), `"erased"`) {
		t.Errorf("got the audit log %s, want that the admin erased the conversation", a.text)
	}
}

// TestChatToolsDoNotHaveTheRightsOfAnAdmin shows that text which leads a model astray cannot make it read the
// executions of other users, even if an admin chats.
func TestChatToolsDoNotHaveTheRightsOfAnAdmin(t *testing.T) {
	t.Parallel()
	other := newUser(t, sandbox.RoleAgent)
	id, _ := other.run(t, other.create(t, nil), "'of another user'").get("execution_id").(string)
	s := newChatServer(t, map[string][]chattest.Reply{
		"read": {{Calls: []chattest.Call{{Tool: "get_execution", Arguments: `{"execution_id":"` + id + `"}`}}},
			{Chunks: []string{"no"}}},
	})
	c := talker{admin, ""}
	c.server = s.url
	c.id, _ = c.ok(t, "POST", "/chat/conversations", nil).get("conversation_id").(string)
	if m := c.ask(t, "read")[1]; m.Status != sandbox.MessageFailed || strings.Contains(m.Text, "of another user") {
		t.Errorf("got %+v, want that there is no such execution for the model", m)
	}
}

func TestChatErasesWithExecutions(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-4711"
	s := newChatServer(t, map[string][]chattest.Reply{
		"run": {{Calls: []chattest.Call{chattest.Python("print('" + secret + "')"), chattest.Python("print('other')")}},
			{Chunks: []string{"done"}}},
	})
	c := s.talker(t)
	list := c.ask(t, "run")
	root := admin
	root.server = s.url
	a := root.ok(t, "DELETE", "/executions/"+list[1].ExecutionID, nil)
	if a.get("erased.messages") != 1.0 {
		t.Errorf("got %s, want one message erased", a.text)
	}
	view := c.ok(t, "GET", c.path(""), nil)
	if strings.Contains(string(view.text), secret) || !strings.Contains(string(view.text), "other") {
		t.Errorf("got %s, want no trace of the erased execution, and the other one", view.text)
	}
	after := c.messages(t)
	if after[2].Status != sandbox.MessageErased || !after[1].Calls[0].Erased || after[1].Calls[1].Erased {
		t.Errorf("got %+v, want the message and the call marked as erased", after)
	}
	c.ask(t, "go on") // the endpoint checks that each call has a result
	requests := s.Requests()
	if text := compactJSON(requests[len(requests)-1]); strings.Contains(text, secret) {
		t.Errorf("the model gets what was erased: %s", text)
	}
	box, _ := view.get("sandbox_id").(string)
	user, _ := view.get("user_id").(string)
	c.ok(t, "DELETE", "/sandbox/"+box, nil)
	a = root.ok(t, "DELETE", "/users/"+user+"/history", nil)
	if a.get("erased.conversations") != 1.0 || a.get("erased.messages") != 0.0 {
		t.Errorf("got %s, want one conversation erased, and no message of one that stays", a.text)
	}
	wantProblem(t, c.do(t, "GET", c.path(""), nil), 404, "not-found")
}

func TestChatGoesOnInANewSession(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"set": {{Calls: []chattest.Call{chattest.Python("x = 1")}}, {Chunks: []string{"set"}}},
		"get": {{Calls: []chattest.Call{chattest.Python("x")}}, {Chunks: []string{"got"}}},
	})
	c := s.talker(t)
	box, _ := c.ok(t, "POST", c.path("/session"), nil).get("sandbox_id").(string)
	if again := c.ok(t, "POST", c.path("/session"), nil).get("sandbox_id"); again != box || box == "" {
		t.Errorf("got the sessions %q and %q, want one", box, again)
	}
	c.ask(t, "set")
	if got := c.ok(t, "GET", c.path(""), nil).get("sandbox_id"); got != box {
		t.Errorf("the code ran in %v, want the session of the uploads %s", got, box)
	}
	c.ok(t, "DELETE", "/sandbox/"+box, nil)
	list := c.ask(t, "get")
	if list[0].Note != sandbox.NoteNewSession || !strings.Contains(list[2].Text, "NameError") {
		t.Errorf("got %+v, want a note that the variables are gone, and a run in a new session", list)
	}
	requests := s.Requests()
	if m := requests[len(requests)-2].Messages; !strings.Contains(compactJSON(m), "session is new") {
		t.Errorf("the model does not learn that the session is new: %+v", m)
	}
	box, _ = c.ok(t, "GET", c.path(""), nil).get("sandbox_id").(string)
	c.ok(t, "DELETE", "/sandbox/"+box, nil)
	if got := c.ok(t, "POST", c.path("/session"), nil).get("sandbox_id"); got == box {
		t.Error("the session of an ended sandbox is still the same")
	}
	if m := last(c.messages(t)); m.Note != sandbox.NoteNewSession {
		t.Errorf("got %+v, want a note about the new session", m)
	}
}

func TestChatAfterAKill(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{
		"go": {{Calls: []chattest.Call{chattest.Python("1")}}, {Chunks: []string{"half"}, Hold: true}},
	})
	c := s.talker(t)
	c.send(t, "go")
	next := c.follow(t, "")
	for e := lastEvent(until(t, next, chat.EventText)); e.data.Text != "half"; {
		e = lastEvent(until(t, next, chat.EventText))
	}
	// Another service over the same history has no answer of this conversation, as after a kill.
	restarted := serveChat(t, &chat.Model{URL: s.URL(), Name: "scripted"})
	after := talker{client{secret: c.secret, server: restarted.url}, c.id}
	list := after.messages(t)
	if len(list) != 4 || list[2].Role != sandbox.MessageTool || last(list).Note != sandbox.NoteInterrupted {
		t.Fatalf("got %+v, want the finished messages and a note that the answer was interrupted", list)
	}
	list = after.ask(t, "further")
	if len(list) != 1 || list[0].Text != "You said: further" || len(after.messages(t)) != 6 {
		t.Errorf("got %+v, want an answer", after.messages(t))
	}
}

func TestChatEndsWithTheKey(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{"hold": {{Chunks: []string{"x"}, Hold: true}}})
	c := s.talker(t)
	c.send(t, "hold")
	next := c.follow(t, "")
	until(t, next, chat.EventText)
	user, _ := c.ok(t, "GET", c.path(""), nil).get("user_id").(string)
	keys := admin.ok(t, "GET", "/keys", nil)
	list, _ := keys.get("keys").([]any)
	revoked := 0
	for _, k := range list {
		if key, _ := k.(map[string]any); key["user_id"] == user {
			admin.ok(t, "DELETE", "/keys/"+key["id"].(string), nil)
			revoked++
		}
	}
	if revoked == 0 {
		t.Fatalf("the list of keys has no key of the user %s", user)
	}
	<-s.Left() // the model's stream ends
	root := admin
	root.server = s.url
	eventually(t, "the note about the key", func() bool {
		return strings.Contains(string(root.ok(t, "GET", c.path(""), nil).text), "key was revoked")
	})
	// The stream and the answer each notice the key within seconds. If the answer is first, its end is the last event.
	var end chatEvent
	for e, ok := next(); ok; e, ok = next() {
		end = e
	}
	kind := "urn:glasshouse:problem:unauthorized"
	if end.name != chat.EventEnd && (end.name != "error" || end.data.Type != kind) {
		t.Errorf("got the last event %s with the problem %q, want the end of the answer or %s",
			end.name, end.data.Type, kind)
	}
	if a := c.do(t, "GET", c.path("/events"), nil); a.status != 401 {
		t.Errorf("got %+v for the revoked key, want status 401", a)
	}
}

func TestChatWithoutAModel(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	if a := c.ok(t, "GET", "/chat", nil); a.get("configured") != false || a.get("max_input_chars") != 32000.0 {
		t.Errorf("got %s, want configured false and the limits", a.text)
	}
	wantProblem(t, c.do(t, "POST", "/chat/conversations", nil), 409, "not-configured", "--model-url", "--model-name",
		"--model-key-file")
	c.ok(t, "GET", "/chat/conversations", nil)
}
