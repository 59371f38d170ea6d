package jupyter

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"glasshouse/sandbox"
)

// object is the content of a message.
type object = map[string]any

// answers has the requests that are answered by a message of the same name, by their msg_type.
var answers = map[string]func(k *kernel, ctx context.Context, c *client, m *message) (object, error){
	"kernel_info_request": (*kernel).info,
	"complete_request":    (*kernel).complete,
	"inspect_request":     (*kernel).inspect,
	"is_complete_request": (*kernel).isComplete,
	"history_request":     (*kernel).history,
	"comm_info_request":   (*kernel).commInfo,
	"interrupt_request":   (*kernel).interruptRequest,
	"shutdown_request":    (*kernel).shutdown,
}

// receive answers a request, or queues it behind the others. What is sent on the channel control does not wait.
func (k *kernel) receive(ctx context.Context, c *client, m *message, bytes int) {
	isControl := m.Channel == control
	if m.Channel == "" {
		m.Channel = shell
	}
	if _, err := k.server.Service.Admit(c.caller); err != nil {
		k.refuse(c, m, err)
		return
	}
	switch {
	case m.kind == "execute_request":
		k.mu.Lock()
		k.received++
		number := k.received
		k.mu.Unlock()
		if !k.enqueue(bytes, func() { k.execute(c, m, number) }) {
			k.refuse(c, m, errQueueFull())
		}
	case isControl || m.kind == "interrupt_request" || m.kind == "shutdown_request":
		k.answer(ctx, c, m)
	case !k.enqueue(bytes, func() { k.answer(ctx, c, m) }):
		k.refuse(c, m, errQueueFull())
	}
}

// answer answers a request. A message of an unknown type gets no answer, as in Jupyter.
func (k *kernel) answer(ctx context.Context, c *client, m *message) {
	k.tellState("busy", m.Header)
	defer k.tellState("idle", m.Header)
	if m.kind == "comm_open" {
		k.refuseComm(m)
		return
	}
	find := answers[m.kind]
	if find == nil {
		return
	}
	content, err := find(k, ctx, c, m)
	if err != nil {
		k.reply(c, m, replyKind(m), k.failure(err).content())
		return
	}
	if content == nil { // it is sent
		return
	}
	if content["status"] == nil {
		content["status"] = "ok"
	}
	k.reply(c, m, replyKind(m), content)
}

func replyKind(m *message) string { return strings.TrimSuffix(m.kind, "_request") + "_reply" }

// refuse answers a request that is not run.
func (k *kernel) refuse(c *client, m *message, err error) {
	k.tellState("busy", m.Header)
	k.reply(c, m, replyKind(m), k.failure(err).content())
	k.tellState("idle", m.Header)
}

// refuseComm closes a comm, for which this kernel has no targets.
func (k *kernel) refuseComm(m *message) {
	var in struct {
		ID string `json:"comm_id"`
	}
	if json.Unmarshal(m.Content, &in) == nil {
		k.broadcast("comm_close", m.Header, object{"comm_id": in.ID, "data": object{}})
	}
}

// info describes the kernel.
func (k *kernel) info(context.Context, *client, *message) (object, error) {
	python := "3"
	for _, e := range k.server.Service.Environments.Environments() {
		if e.Name == k.name || k.name == defaultSpec && e.Name == k.server.Service.Default.Environment {
			python = e.Python
		}
	}
	return object{
		"protocol_version": protocolVersion, "implementation": "glasshouse",
		"implementation_version": k.server.Version, "banner": "Python " + python + " in a sandbox of Glasshouse",
		"help_links": []string{}, "debugger": false, "supported_features": []string{},
		"language_info": object{
			"name": "python", "version": python, "mimetype": "text/x-python", "file_extension": ".py",
			"pygments_lexer": "ipython3", "nbconvert_exporter": "python",
			"codemirror_mode": object{"name": "ipython", "version": 3},
		},
	}, nil
}

// cursorIn is the content of a request about a position in code. The position counts characters; absent: the end.
type cursorIn struct {
	Code     string
	Position *int `json:"cursor_pos"`
}

func (k *kernel) complete(ctx context.Context, c *client, m *message) (object, error) {
	var in cursorIn
	if err := json.Unmarshal(m.Content, &in); err != nil {
		return nil, errContent(err)
	}
	found, err := k.server.Service.Complete(ctx, c.caller, k.sandboxID, in.Code, in.Position)
	if err != nil {
		return nil, err
	}
	matches, types := []string{}, []object{}
	for _, match := range found.Matches {
		matches = append(matches, match.Text)
		types = append(types, object{
			"start": found.CursorStart, "end": found.CursorEnd, "text": match.Text, "type": match.Type,
		})
	}
	return object{
		"matches": matches, "cursor_start": found.CursorStart, "cursor_end": found.CursorEnd,
		"metadata": object{"_jupyter_types_experimental": types},
	}, nil
}

// inspect describes the variable at the cursor by its type and its value.
func (k *kernel) inspect(ctx context.Context, c *client, m *message) (object, error) {
	var in cursorIn
	if err := json.Unmarshal(m.Content, &in); err != nil {
		return nil, errContent(err)
	}
	variables, err := k.server.Service.Variables(ctx, c.caller, k.sandboxID)
	if err != nil {
		return nil, err
	}
	data := object{}
	name := nameAt([]rune(in.Code), in.Position)
	v, isFound := variables.Variables[name]
	if isFound {
		data["text/plain"] = "Type: " + v.Type + "\nValue: " + v.Repr
	}
	return object{"found": isFound, "data": data, "metadata": object{}}, nil
}

// nameAt returns the identifier at a position; nil is the end.
func nameAt(code []rune, position *int) string {
	isPart := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	begin := len(code)
	if position != nil {
		begin = min(max(*position, 0), len(code))
	}
	end := begin
	for begin > 0 && isPart(code[begin-1]) {
		begin--
	}
	for end < len(code) && isPart(code[end]) {
		end++
	}
	return string(code[begin:end])
}

// isComplete leaves to the client whether a line of a console continues.
func (k *kernel) isComplete(context.Context, *client, *message) (object, error) {
	return object{"status": "unknown"}, nil
}

// maxHistory is the maximum number of cells in an answer.
const maxHistory = 100

// history answers with the last cells, the oldest first, each as [session, number, code].
func (k *kernel) history(ctx context.Context, c *client, m *message) (object, error) {
	in := struct {
		N      int
		Output bool // each cell has a pair of its code and its value, which is left out
	}{N: maxHistory}
	if err := json.Unmarshal(m.Content, &in); err != nil {
		return nil, errContent(err)
	}
	list, _, total, err := k.server.Service.SandboxHistory(ctx, c.caller, k.sandboxID,
		min(max(in.N, 1), maxHistory), "")
	if err != nil {
		return nil, err
	}
	cells := make([][]any, len(list))
	for n, e := range list {
		cell := any(e.Code)
		if in.Output {
			cell = []any{e.Code, nil}
		}
		cells[len(list)-1-n] = []any{1, total - n, cell}
	}
	return object{"history": cells}, nil
}

func (k *kernel) commInfo(context.Context, *client, *message) (object, error) {
	return object{"comms": object{}}, nil
}

func (k *kernel) interruptRequest(context.Context, *client, *message) (object, error) {
	k.stop()
	return object{}, nil
}

// shutdown ends or restarts the kernel.
func (k *kernel) shutdown(ctx context.Context, c *client, m *message) (object, error) {
	var in struct{ Restart bool }
	if err := json.Unmarshal(m.Content, &in); err != nil {
		return nil, errContent(err)
	}
	if in.Restart {
		return object{"restart": true}, k.restart(ctx, c.caller)
	}
	content := object{"status": "ok", "restart": false}
	k.reply(c, m, "shutdown_reply", content) // before the connection ends
	k.broadcast("shutdown_reply", m.Header, content)
	return nil, k.server.Service.Delete(ctx, c.caller, k.sandboxID)
}

func errContent(err error) error {
	return sandbox.Errorf(sandbox.FaultInvalid, "the content of the request cannot be read: %s", err)
}
