package sandbox

import "time"

// Conversation is a chat of a person with a language model, which runs code in one sandbox.
type Conversation struct {
	ID        string    `json:"conversation_id"`
	User      string    `json:"user_id"`
	Title     string    `json:"title" doc:"The beginning of the first message"`
	Model     string    `json:"model" doc:"The model that answered last"`
	SandboxID string    `json:"sandbox_id,omitempty" doc:"Where the model runs code; none before the first run"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at" doc:"When the last message was written"`
}

// MessageRole says who wrote a message of a conversation.
type MessageRole string

// The roles. A note is written by the service; it says what happened to the conversation.
const (
	MessageUser      MessageRole = "user"
	MessageAssistant MessageRole = "assistant"
	MessageTool      MessageRole = "tool"
	MessageNote      MessageRole = "note"
)

// MessageStatus says whether a message is whole.
type MessageStatus string

// The states of a message. Only a message of a tool runs.
const (
	MessageComplete MessageStatus = "complete"
	MessageRunning  MessageStatus = "running" // the tool has begun
	MessageFailed   MessageStatus = "failed"  // the tool failed, or its code did
	MessageCut      MessageStatus = "cut"     // the answer was stopped, or broke off
	MessageErased   MessageStatus = "erased"  // the execution that the message was about was erased
)

// NoteKind is the kind of a note.
type NoteKind string

// The kinds of notes.
const (
	NoteProblem     NoteKind = "problem"     // the endpoint failed, or a limit was reached
	NoteStopped     NoteKind = "stopped"     // the person stopped the answer
	NoteInterrupted NoteKind = "interrupted" // the service ended while the answer was written
	NoteNewSession  NoteKind = "new-session" // the sandbox has ended, and its variables and files are gone
)

// ChatMessage is one message of a conversation. Position counts from 1.
type ChatMessage struct {
	Position    int           `json:"position"`
	Role        MessageRole   `json:"role"`
	Status      MessageStatus `json:"status"`
	Note        NoteKind      `json:"note,omitempty" doc:"Of a note: its kind"`
	Text        string        `json:"text" doc:"What somebody wrote, or what the model read of a tool"`
	Calls       []ToolCall    `json:"calls,omitempty" doc:"Of an assistant: the tools that it calls"`
	CallID      string        `json:"call_id,omitempty" doc:"Of a tool: the call that this answers"`
	Tool        string        `json:"tool,omitempty" doc:"Of a tool: its name"`
	ExecutionID string        `json:"execution_id,omitempty" doc:"Of a tool: the execution that it made or read"`
	LeftOut     int           `json:"left_out,omitempty" doc:"Of an assistant: older messages that were cut for it"`
	CreatedAt   time.Time     `json:"created_at"`
}

// ToolCall is a call of a tool by a language model.
type ToolCall struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments" doc:"Usually a JSON object"`
	Erased    bool   `json:"erased,omitempty"`
}

// Erase removes what a message of a tool holds of its execution.
func (m *ChatMessage) Erase() {
	m.Status, m.Text = MessageErased, "This execution was erased from history."
}
