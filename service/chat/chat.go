// Package chat lets a person talk with a language model that runs code in the person's sandbox.
//
//	model := &chat.Model{URL: url, Name: name, Key: key}
//	c := chat.New(chat.Config{Service: s, Tools: mcpServer, Model: model, Log: log})
//	conversation, err := c.Create(ctx, caller)
//	message, err := c.Send(ctx, caller, conversation.ID, "How many customers are there?", whileValid)
//	events, err := c.Follow(ctx, caller, conversation.ID, "")
//	c.Drain()
//
// Send stores the message and starts a goroutine that writes the answer: it asks the model, runs the tools that the
// model calls with the rights of the person, and asks again, until the model calls no tool. Each message is on disk
// before its event says that it is there. An answer does not need a reader: any number of readers may follow it.
// Drain ends all answers and waits for their goroutines.
//
// The endpoint gets the conversation, and with it what code printed and rows of the database. It gets no key of
// Glasshouse. Its own key is in no message, log or error.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

// Limits of conversations.
const (
	MaxInputChars   = 32_000  // of one message of a person
	MaxRounds       = 20      // requests to the model for one message of a person
	MaxContextChars = 120_000 // of a conversation that the model reads; about 30 000 tokens

	// maxConversationBytes is the size from which a conversation takes no further message.
	maxConversationBytes = 8 << 20

	answersPerUser = 4  // at the same time
	answersInAll   = 40 // of all users, at the same time
	titleChars     = 80
)

// Tools are the functions that the model may call.
type Tools interface {
	Tools() []run.Tool
	CallTool(ctx context.Context, caller sandbox.Key, name string, arguments json.RawMessage,
		onRun func(run.ToolRun)) run.ToolResult
}

// History stores conversations.
type History interface {
	Messages(ctx context.Context, conversation string) ([]sandbox.ChatMessage, error)
	Message(ctx context.Context, conversation string, position int) (sandbox.ChatMessage, error)
	CreateConversation(context.Context, sandbox.Conversation) error
	UpdateConversation(context.Context, sandbox.Conversation) error
	PutMessages(ctx context.Context, conversation string, at time.Time, list ...sandbox.ChatMessage) error
}

// Config configures a Chat.
type Config struct {
	Live    *live.Service
	Records *records.Service
	History History
	Access  *access.Service // of callers
	Tools   Tools
	Model   *Model // nil: conversations can be read, and nobody answers
	Log     logrus.FieldLogger
}

// Chat answers messages.
type Chat struct {
	Config
	tools   []modelTool
	perUser *limit.Keyed
	inAll   *limit.Shared

	mu        sync.Mutex
	busy      map[string]bool    // the conversations to which an answer or Session adds messages
	answers   map[string]*answer // by conversation; all of them are busy
	isStopped bool
	work      sync.WaitGroup
}

// answer is an answer that is being written.
type answer struct {
	id     string // of its events
	log    *answerLog
	cancel context.CancelCauseFunc
}

// New returns a Chat.
func New(c Config) *Chat {
	return &Chat{
		Config: c, tools: modelTools(c.Tools.Tools()), busy: map[string]bool{}, answers: map[string]*answer{},
		perUser: limit.NewKeyed(answersPerUser), inAll: limit.NewShared(answersInAll, c.Access.Users),
	}
}

// ModelStatus describes the configured model and the limits of conversations.
type ModelStatus struct {
	Configured bool   `json:"configured" doc:"False: the settings --model-url and --model-name are not set"`
	Model      string `json:"model,omitempty"`
	Host       string `json:"host,omitempty" doc:"Where messages, results and rows of the database are sent"`
	MaxInput   int    `json:"max_input_chars"`
	MaxRounds  int    `json:"max_rounds" doc:"Requests to the model for one message"`
	MaxContext int    `json:"max_context_chars" doc:"Of a conversation that the model reads"`
}

// Status returns the status of the chat.
func (c *Chat) Status() ModelStatus {
	s := ModelStatus{MaxInput: MaxInputChars, MaxRounds: MaxRounds, MaxContext: MaxContextChars}
	if c.Model != nil {
		s.Configured, s.Model, s.Host = true, c.Model.Name, c.Model.Host()
	}
	return s
}

func (c *Chat) requireModel() error {
	if c.Model == nil {
		return sandbox.Errorf(sandbox.FaultNotConfigured, "no model is configured: the operator starts the service "+
			"with --model-url and --model-name, and with --model-key-file if the endpoint needs a key (docs/chat.md)")
	}
	return nil
}

// Create makes a conversation of the caller without messages. It returns FaultNotConfigured without a model.
func (c *Chat) Create(ctx context.Context, caller sandbox.Key) (sandbox.Conversation, error) {
	if err := c.requireModel(); err != nil {
		return sandbox.Conversation{}, err
	}
	now := c.Live.Clock()
	conversation := sandbox.Conversation{
		ID: c.Live.NewID(), User: caller.User, Model: c.Model.Name, CreatedAt: now, UpdatedAt: now,
	}
	return conversation, c.History.CreateConversation(ctx, conversation)
}

// ConversationView is a conversation with its messages.
type ConversationView struct {
	sandbox.Conversation
	Messages  []sandbox.ChatMessage `json:"messages"`
	Answering bool                  `json:"answering" doc:"An answer is being written: follow the events"`
}

// View returns a conversation that the caller may see. A conversation whose answer the end of the service interrupted
// has a note that says so.
func (c *Chat) View(ctx context.Context, caller sandbox.Key, id string) (ConversationView, error) {
	conversation, err := c.Records.Conversation(ctx, caller, id)
	if err != nil {
		return ConversationView{}, err
	}
	view := ConversationView{Conversation: conversation, Answering: c.answerOf(id) != nil}
	if view.Messages, err = c.History.Messages(ctx, id); err != nil {
		return ConversationView{}, err
	}
	if !view.Answering && c.answerOf(id) == nil { // an answer may have begun after the messages were read
		view.Messages = append(view.Messages, c.interruption(view.Messages)...)
	}
	return view, nil
}

// interruption returns a note if the conversation ends without a whole answer. It sets the status of interrupted runs
// in list to cut.
func (c *Chat) interruption(list []sandbox.ChatMessage) []sandbox.ChatMessage {
	for n := range list {
		if list[n].Status == sandbox.MessageRunning {
			list[n].Status = sandbox.MessageCut
		}
	}
	end := len(list)
	for end > 0 && list[end-1].Note == sandbox.NoteNewSession { // also written when there is no answer
		end--
	}
	if end == 0 {
		return nil
	}
	last := list[end-1]
	if last.Role == sandbox.MessageNote || last.Role == sandbox.MessageAssistant && len(last.Calls) == 0 {
		return nil
	}
	return []sandbox.ChatMessage{{
		Position: list[len(list)-1].Position + 1, Role: sandbox.MessageNote, Note: sandbox.NoteInterrupted,
		Status: sandbox.MessageComplete, CreatedAt: last.CreatedAt,
		Text: interruptedText,
	}}
}

const interruptedText = "The service was stopped while this answer was written. What was finished is kept. Send a " +
	"message to go on."

func (c *Chat) answerOf(conversation string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers[conversation]
}

// own returns a conversation of the caller. Nobody writes into the conversation of another user.
func (c *Chat) own(ctx context.Context, caller sandbox.Key, id string) (sandbox.Conversation, error) {
	conversation, err := c.Records.Conversation(ctx, caller, id)
	if err == nil && conversation.User != caller.User {
		err = sandbox.Errorf(sandbox.FaultForbidden, "this conversation belongs to %s: you may read it; begin one of "+
			"your own to write", conversation.User)
	}
	return conversation, err
}

// WhileValid returns a context that ends when the key of the caller becomes invalid. The caller calls stop.
type WhileValid func(context.Context) (_ context.Context, stop func())

// Send stores a message of the caller and begins the answer. It returns FaultBusy if an answer is being written,
// FaultNotConfigured without a model, FaultInvalid for a message that is empty or too long, FaultLimit and FaultFull
// if too many answers are being written.
func (c *Chat) Send(
	ctx context.Context, caller sandbox.Key, id, text string, whileValid WhileValid,
) (sandbox.ChatMessage, error) {
	if err := c.requireModel(); err != nil {
		return sandbox.ChatMessage{}, err
	}
	if err := checkInput(text); err != nil {
		return sandbox.ChatMessage{}, err
	}
	conversation, err := c.own(ctx, caller, id)
	if err != nil {
		return sandbox.ChatMessage{}, err
	}
	release, err := c.acquire(ctx, caller)
	if err != nil {
		return sandbox.ChatMessage{}, err
	}
	// The answer continues when the request has ended.
	running, cancel := context.WithCancelCause(limit.WithUser(context.WithoutCancel(ctx), caller.User))
	a := &answer{id: c.Live.NewID(), log: newAnswerLog(), cancel: cancel}
	if err := c.register(id, a); err != nil {
		cancel(nil)
		release()
		return sandbox.ChatMessage{}, err
	}
	unregister := func() {
		cancel(nil)
		release()
		c.unregister(id, a)
	}
	message, next, err := c.storeInput(ctx, &conversation, text)
	if err != nil {
		unregister()
		return sandbox.ChatMessage{}, err
	}
	valid, stop := whileValid(running)
	r := &replyWriter{chat: c, answer: a, caller: toolCaller(caller), conversation: conversation, next: next}
	go func() {
		defer unregister()
		defer stop()
		defer func() {
			if panicked := recover(); panicked != nil {
				c.Log.WithField("panic", panicked).WithField("conversation_id", id).Error("an answer panicked")
			}
		}()
		r.write(valid)
	}()
	return message, nil
}

func checkInput(text string) error {
	problem := ""
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		problem = "the message is empty"
	case n > MaxInputChars:
		problem = fmt.Sprintf("the message has %d characters, and at most %d are allowed; upload long text as a file",
			n, MaxInputChars)
	default:
		return nil
	}
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "text", Detail: problem}
}

// acquire takes a slot for an answer.
func (c *Chat) acquire(ctx context.Context, caller sandbox.Key) (release func(), err error) {
	releaseUser, err := c.perUser.Acquire(ctx, caller.User, 0)
	if errors.Is(err, limit.ErrFull) {
		return nil, &sandbox.Error{Fault: sandbox.FaultLimit, RetryAfter: 5, Detail: fmt.Sprintf(
			"%d of your conversations are being answered, the maximum for one user; wait for one, or stop one",
			answersPerUser)}
	}
	if err != nil {
		return nil, err
	}
	releaseAll, err := c.inAll.Acquire(ctx, caller.User, 0)
	if err != nil {
		releaseUser()
		if errors.Is(err, limit.ErrFull) {
			err = &sandbox.Error{Fault: sandbox.FaultFull, RetryAfter: 5,
				Detail: "the service answers as many conversations as it can; try again soon"}
		}
		return nil, err
	}
	return func() { releaseAll(); releaseUser() }, nil
}

// register makes a conversation busy, and its answer known; nil: there is none. Each conversation has one writer at a
// time.
func (c *Chat) register(conversation string, a *answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isStopped {
		return access.ErrStopping()
	}
	switch {
	case c.answers[conversation] != nil:
		return &sandbox.Error{Fault: sandbox.FaultBusy, RetryAfter: 2,
			Detail: "this conversation is being answered: wait for the end of the answer, or stop it"}
	case c.busy[conversation]:
		return &sandbox.Error{Fault: sandbox.FaultBusy, RetryAfter: 2,
			Detail: "this conversation is getting a session: try again in a moment"}
	}
	c.busy[conversation] = true
	if a != nil {
		c.answers[conversation] = a
	}
	c.work.Add(1)
	return nil
}

// unregister undoes register, and ends the events of the answer. A reader of the last one may send the next message.
func (c *Chat) unregister(conversation string, a *answer) {
	c.mu.Lock()
	delete(c.busy, conversation)
	delete(c.answers, conversation)
	c.mu.Unlock()
	if a != nil {
		a.log.end()
	}
	c.work.Done()
}

// storeInput stores the message of a person, and before it the note of an interruption. It returns the position of the
// next message.
func (c *Chat) storeInput(
	ctx context.Context, conversation *sandbox.Conversation, text string,
) (m sandbox.ChatMessage, next int, err error) {
	list, err := c.History.Messages(ctx, conversation.ID)
	if err != nil {
		return m, 0, err
	}
	if size(list) > maxConversationBytes {
		return m, 0, sandbox.Errorf(sandbox.FaultInvalid, "this conversation has more than %d MiB: begin a new one",
			maxConversationBytes>>20)
	}
	changed := slices.Clone(list)
	note := c.interruption(changed)
	var put []sandbox.ChatMessage
	for n := range changed {
		if changed[n].Status != list[n].Status {
			put = append(put, changed[n])
		}
	}
	put = append(put, note...)
	now := c.Live.Clock()
	m = sandbox.ChatMessage{
		Position: 1, Role: sandbox.MessageUser, Status: sandbox.MessageComplete, Text: text, CreatedAt: now,
	}
	if len(list) > 0 {
		m.Position = list[len(list)-1].Position + len(note) + 1
	}
	if conversation.Title == "" {
		conversation.Title = title(text)
	}
	conversation.Model, conversation.UpdatedAt = c.Model.Name, now
	if err := c.History.UpdateConversation(ctx, *conversation); err != nil {
		return m, 0, err
	}
	return m, m.Position + 1, c.History.PutMessages(ctx, conversation.ID, now, append(put, m)...)
}

// size returns about how many bytes messages have.
func size(list []sandbox.ChatMessage) (n int) {
	for _, m := range list {
		n += len(m.Text) + len(m.Tool)
		for _, call := range m.Calls {
			n += len(call.Tool) + len(call.Arguments)
		}
	}
	return n
}

// title returns the beginning of a text on one line.
func title(text string) string {
	runes := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " "))
	if len(runes) > titleChars {
		return string(runes[:titleChars]) + "…"
	}
	return string(runes)
}

var (
	errStopped  = errors.New("the person stopped the answer")
	errDraining = errors.New("the service is stopping")
)

// Stop ends the answer of a conversation of the caller, and the execution that it runs. It returns FaultBusy if no
// answer is being written.
func (c *Chat) Stop(ctx context.Context, caller sandbox.Key, id string) error {
	if _, err := c.own(ctx, caller, id); err != nil {
		return err
	}
	a := c.answerOf(id)
	if a == nil {
		return sandbox.Errorf(sandbox.FaultBusy, "no answer is being written: it has already ended")
	}
	a.cancel(errStopped)
	return nil
}

// Drain ends all answers, refuses new ones, and returns when their goroutines have ended.
func (c *Chat) Drain() {
	c.mu.Lock()
	c.isStopped = true
	for _, a := range c.answers {
		a.cancel(errDraining)
	}
	c.mu.Unlock()
	c.work.Wait()
}

// Session returns the live sandbox of a conversation of the caller, and makes one if there is none.
func (c *Chat) Session(ctx context.Context, caller sandbox.Key, id string) (string, error) {
	if err := c.requireModel(); err != nil {
		return "", err
	}
	conversation, err := c.own(ctx, caller, id)
	if err != nil {
		return "", err
	}
	if c.isLive(ctx, caller, conversation.SandboxID) {
		return conversation.SandboxID, nil
	}
	if err := c.register(id, nil); err != nil { // an answer makes sessions itself
		return "", err
	}
	defer c.unregister(id, nil)
	hadOne := conversation.SandboxID != ""
	created, err := c.Live.Create(ctx, caller, nil)
	if err != nil {
		return "", err
	}
	conversation.SandboxID, conversation.UpdatedAt = created.ID, c.Live.Clock()
	if err := c.History.UpdateConversation(ctx, conversation); err != nil {
		return "", err
	}
	if !hadOne {
		return created.ID, nil
	}
	list, err := c.History.Messages(ctx, id)
	if err != nil {
		return "", err
	}
	note := append(c.interruption(list), newSessionNote(c.Live.Clock()))
	for n := range note {
		note[n].Position = len(list) + n + 1
	}
	return created.ID, c.History.PutMessages(ctx, id, conversation.UpdatedAt, note...)
}

// isLive reports whether the caller has a live sandbox with an id.
func (c *Chat) isLive(ctx context.Context, caller sandbox.Key, id string) bool {
	if id == "" {
		return false
	}
	_, err := c.Live.Files(ctx, caller, id)
	fault := sandbox.FaultOf(err)
	return err == nil || fault != sandbox.FaultGone && fault != sandbox.FaultNotFound
}

func newSessionNote(now time.Time) sandbox.ChatMessage {
	return sandbox.ChatMessage{
		Role: sandbox.MessageNote, Note: sandbox.NoteNewSession, Status: sandbox.MessageComplete, CreatedAt: now,
		Text: "The Python session of this conversation has ended. The next run has a new session: variables, imports " +
			"and uploaded files from before are gone.",
	}
}

// toolCaller returns the caller whose rights the tools have. Text in a database or a file can lead a model astray, so a
// model never has the rights of an admin, who may read the records of other users.
func toolCaller(caller sandbox.Key) sandbox.Key {
	if caller.Role == sandbox.RoleAdmin {
		caller.Role = sandbox.RoleDeveloper
	}
	return caller
}
