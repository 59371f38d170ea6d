package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"glasshouse/sandbox"
	"glasshouse/service/live"
	"glasshouse/service/run"
)

// replyWriter writes one answer. Its goroutine is the only writer of the conversation's messages.
type replyWriter struct {
	chat         *Chat
	answer       *answer
	caller       sandbox.Key // with the rights of the tools
	conversation sandbox.Conversation
	next         int                   // position of the next message
	messages     []sandbox.ChatMessage // when the model was asked last
}

// storeTimeout bounds the time in which history stores a message.
const storeTimeout = 30 * time.Second

// put stores a message and tells the readers. It also does so when the answer was stopped.
func (r *replyWriter) put(ctx context.Context, m sandbox.ChatMessage) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := r.chat.History.PutMessages(ctx, r.conversation.ID, r.chat.Live.Clock(), m); err != nil {
		return err
	}
	r.answer.log.stored(m)
	return nil
}

// add stores a new message.
func (r *replyWriter) add(ctx context.Context, m sandbox.ChatMessage) (sandbox.ChatMessage, error) {
	m.Position, m.CreatedAt, m.Status = r.next, r.chat.Live.Clock(), cmp.Or(m.Status, sandbox.MessageComplete)
	r.next++
	return m, r.put(ctx, m)
}

// write writes the answer, and a note if it does not end by itself.
func (r *replyWriter) write(ctx context.Context) {
	err := r.rounds(ctx)
	if err == nil {
		return
	}
	note, text := sandbox.NoteProblem, r.problem(ctx, err)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopped):
		note, text = sandbox.NoteStopped, "You stopped this answer."
	case errors.Is(cause, errDraining):
		note, text = sandbox.NoteInterrupted, interruptedText
	}
	if _, err := r.add(ctx, sandbox.ChatMessage{Role: sandbox.MessageNote, Note: note, Text: text}); err != nil {
		r.answer.log.add(EventProblem, Problem{r.problem(ctx, err)})
	}
}

// problem returns what the person reads of an error. Text of an internal error stays in the log.
func (r *replyWriter) problem(ctx context.Context, err error) string {
	var endpoint *endpointError
	var known *sandbox.Error
	log := r.chat.Log.WithField("conversation_id", r.conversation.ID)
	switch {
	case sandbox.FaultOf(context.Cause(ctx)) == sandbox.FaultUnauthorized:
		return "Your key became invalid while this answer was written: " + context.Cause(ctx).Error() + "."
	case errors.As(err, &endpoint):
		log.Warnf("the model's endpoint failed: %s", endpoint.text)
		return endpoint.text
	case errors.As(err, &known) && known.Fault != sandbox.FaultInternal:
		return known.Error()
	}
	if ctx.Err() == nil {
		log.WithError(err).Error("a conversation failed")
	}
	return "An internal error ended this answer. The operator finds it in the service's log under conversation_id=" +
		r.conversation.ID + ". Send your message again."
}

// rounds asks the model and runs the tools that it calls, until it calls none.
func (r *replyWriter) rounds(ctx context.Context) error {
	if err := r.checkSession(ctx); err != nil {
		return err
	}
	for range MaxRounds {
		calls, err := r.ask(ctx)
		if err != nil || len(calls) == 0 {
			return err
		}
		for _, call := range calls {
			if err := r.callTool(ctx, call); err != nil {
				return err
			}
		}
	}
	return &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("The model called tools in %d rounds, the "+
		"maximum for one message. Send “go on” if it should continue.", MaxRounds)}
}

// ask gets one answer of the model and stores it. It returns the calls in it.
func (r *replyWriter) ask(ctx context.Context) ([]sandbox.ToolCall, error) {
	// The messages are read again in each round: an admin may have erased an execution since the last one.
	messages, err := r.chat.History.Messages(ctx, r.conversation.ID)
	r.messages = messages
	if err != nil {
		return nil, err
	}
	var files live.Files
	if r.conversation.SandboxID != "" {
		files, _ = r.chat.Live.Files(ctx, r.caller, r.conversation.SandboxID) // the session may have ended by now
	}
	request, leftOut := r.chat.request(messages, files.Files)
	out, err := r.chat.Model.complete(ctx, request, completionListener{
		onText: func(text string) { r.answer.log.add(EventText, Delta{Position: r.next, Text: text}) },
		onCall: func(tool string) { r.answer.log.add(EventCall, CallBegan{r.next, tool}) },
	})
	m := sandbox.ChatMessage{Role: sandbox.MessageAssistant, Text: out.text.String(), LeftOut: leftOut}
	if err != nil {
		if m.Status = sandbox.MessageCut; m.Text == "" {
			return nil, err
		}
		_, putErr := r.add(ctx, m) // calls that broke off are not run
		return nil, errors.Join(err, putErr)
	}
	for n, call := range out.calls {
		// The endpoint's ids are not unique in every server.
		id := fmt.Sprintf("call_%d_%d", r.next, n+1)
		m.Calls = append(m.Calls, sandbox.ToolCall{ID: id, Tool: call.name, Arguments: call.arguments.String()})
	}
	if m.Text == "" && len(m.Calls) == 0 {
		return nil, r.chat.Model.errorf("ended its answer without text and without a call. Send your message again.")
	}
	if m, err = r.add(ctx, m); err != nil {
		return nil, err
	}
	switch out.finish {
	case "length":
		return nil, r.chat.Model.errorf("cut the answer at its own limit of tokens. Ask it to go on, or begin a new " +
			"conversation: this one may be too long for the model.")
	case "content_filter":
		return nil, r.chat.Model.errorf("ended the answer with its content filter. Rephrase your message, or " +
			"begin a new conversation.")
	}
	return m.Calls, nil
}

// checkSession notes that the session has ended, before the model writes code that needs its variables.
func (r *replyWriter) checkSession(ctx context.Context) error {
	if r.conversation.SandboxID == "" || r.chat.isLive(ctx, r.caller, r.conversation.SandboxID) {
		return nil
	}
	r.conversation.SandboxID = ""
	if err := r.chat.History.UpdateConversation(ctx, r.conversation); err != nil {
		return err
	}
	_, err := r.add(ctx, newSessionNote(r.chat.Live.Clock()))
	return err
}

// openSession makes a session if the conversation has none, or its session has ended.
func (r *replyWriter) openSession(ctx context.Context) error {
	if err := r.checkSession(ctx); err != nil || r.conversation.SandboxID != "" {
		return err
	}
	created, err := r.chat.Live.Create(ctx, r.caller, nil)
	if err != nil {
		return err
	}
	r.conversation.SandboxID, r.conversation.UpdatedAt = created.ID, r.chat.Live.Clock()
	return r.chat.History.UpdateConversation(ctx, r.conversation)
}

// callTool calls a tool and stores its answer. The model reads a mistake in its call, and can repair it.
func (r *replyWriter) callTool(ctx context.Context, call sandbox.ToolCall) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tool := r.chat.tool(call.Tool)
	if tool != nil && tool.inSession {
		if err := r.openSession(ctx); err != nil {
			return err
		}
	}
	m, err := r.add(ctx, sandbox.ChatMessage{
		Role: sandbox.MessageTool, Status: sandbox.MessageRunning, CallID: call.ID, Tool: call.Tool,
	})
	if err != nil {
		return err
	}
	answer := r.toolAnswer(ctx, tool, call, &m)
	switch m.Text, m.Status = answer.Text, sandbox.MessageComplete; {
	case ctx.Err() != nil:
		m.Text, m.Status = "The run was stopped.", sandbox.MessageCut
	case answer.IsError:
		m.Status = sandbox.MessageFailed
	}
	return errors.Join(r.put(ctx, m), context.Cause(ctx))
}

// question returns the last message of the user as a title: one line of text.
func (r *replyWriter) question() string {
	text := r.conversation.Title
	for _, m := range slices.Backward(r.messages) {
		if m.Role == sandbox.MessageUser {
			text = m.Text
			break
		}
	}
	isBetween := func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }
	line := []rune(strings.Join(strings.FieldsFunc(text, isBetween), " "))
	return string(line[:min(len(line), sandbox.MaxTitleChars)])
}

// toolAnswer calls a tool. It sets the execution of m, and stores m with it as soon as it is known: so a link to the
// run is there while it runs and after a kill of the service.
func (r *replyWriter) toolAnswer(
	ctx context.Context, tool *modelTool, call sandbox.ToolCall, m *sandbox.ChatMessage,
) run.ToolResult {
	if err := r.chat.Access.Count(r.caller); err != nil { // a client of MCP needs a request for each call
		return run.ToolResult{Text: err.Error(), IsError: true}
	}
	arguments := []byte(call.Arguments)
	if tool != nil {
		var named string
		var err error
		if arguments, named, err = tool.arguments(call.Arguments, r.conversation.SandboxID, r.question()); err != nil {
			return run.ToolResult{Text: err.Error(), IsError: true}
		}
		if r.isOwn(ctx, named) {
			m.ExecutionID = named
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan struct{})
	close(followed)
	answer := r.chat.Tools.CallTool(ctx, r.caller, call.Tool, arguments, func(run run.ToolRun) {
		m.ExecutionID = run.ExecutionID
		if err := r.put(ctx, *m); err != nil {
			r.chat.Log.WithError(err).WithField("conversation_id", r.conversation.ID).
				Warn("could not note the execution of a tool; it is noted with the tool's answer")
		}
		if run.Log != nil {
			followed = make(chan struct{})
			go func(position int, done chan struct{}) {
				defer close(done)
				r.followRun(ctx, position, run.Log)
			}(m.Position, followed)
		}
	})
	cancel()
	<-followed
	return answer
}

// isOwn reports whether the caller may read the execution with an id that the model wrote. Erasing an execution also
// erases the messages that have its id, so a message must not have the id of another user's execution.
func (r *replyWriter) isOwn(ctx context.Context, execution string) bool {
	const maxIDBytes = 64
	if execution == "" || len(execution) > maxIDBytes {
		return false
	}
	_, err := r.chat.Records.Execution(ctx, r.caller, execution)
	return err == nil
}

// maxLiveBytes is the size of the output of a run that readers get while it runs. The rest is in the execution.
const maxLiveBytes = 64 << 10

// followRun sends what the code prints to the readers until the run ends, ctx does, or maxLiveBytes are sent.
func (r *replyWriter) followRun(ctx context.Context, position int, log *run.EventLog) {
	sent := 0
	for after := int64(0); ; after++ {
		e, err := log.Next(ctx, after)
		if err != nil {
			return
		}
		text, isText := e.Data.(run.Text)
		if !isText {
			continue
		}
		delta := Delta{Position: position, Text: text.Text}
		if left := maxLiveBytes - sent; len(delta.Text) > left {
			delta.Text, delta.Truncated = strings.ToValidUTF8(delta.Text[:left], ""), true
		}
		sent += len(delta.Text)
		r.answer.log.add(e.Name, delta)
		if delta.Truncated { // smaller pieces that come later would hide the gap
			return
		}
	}
}
