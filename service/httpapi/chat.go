package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/chat"
)

// InConversation is the path of a conversation. It is exported because huma reads exported embedded fields only.
type InConversation struct {
	ID string `path:"id"`
}

type conversationsInput struct {
	Page
	OfUser
	Text string `query:"text" maxLength:"200" doc:"Text in the title"`
}

type conversationList struct {
	Conversations []sandbox.Conversation `json:"conversations"`
	Next          string                 `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type sendInput struct {
	InConversation
	Body struct {
		Text string `json:"text" maxLength:"4000000" doc:"At most max_input_chars characters"`
	}
}

type sentMessage struct {
	Message sandbox.ChatMessage `json:"message" doc:"The message as it is stored; the answer comes as events"`
}

type conversationSession struct {
	SandboxID string `json:"sandbox_id"`
}

func (a *api) routeChat(r *routes) {
	busy := http.StatusConflict
	route(a, r, r.describe("GET", "/chat", "getChat", tagChat,
		"Get whether a language model is configured, where it is, and the limits of conversations"),
		func(context.Context, sandbox.Key, *struct{}) (*chat.ModelStatus, error) {
			return new(a.chat.Status()), nil
		})
	route(a, r, r.describe("POST", "/chat/conversations", "createConversation", tagChat,
		"Begin a conversation with the language model", busy),
		func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*sandbox.Conversation, error) {
			c, err := a.chat.Create(ctx, caller)
			return &c, err
		})
	route(a, r, r.describe("GET", "/chat/conversations", "listConversations", tagChat,
		"List conversations, the one with the newest message first"),
		func(ctx context.Context, caller sandbox.Key, in *conversationsInput) (*conversationList, error) {
			f := filterOf(in.Page, in.OfUser, OfExecution{})
			f.Text = in.Text
			list, next, err := a.records.Conversations(ctx, caller, f)
			return &conversationList{list, next}, err
		})
	route(a, r, r.describe("GET", "/chat/conversations/{id}", "getConversation", tagChat,
		"Get a conversation with its messages"),
		func(ctx context.Context, caller sandbox.Key, in *InConversation) (*chat.ConversationView, error) {
			if err := a.access.HoldLarge(ctx, caller.User); err != nil {
				return nil, err
			}
			view, err := a.chat.View(ctx, caller, in.ID)
			return &view, err
		})
	route(a, r, r.describe("DELETE", "/chat/conversations/{id}", "eraseConversation", tagChat,
		"Erase a conversation from history, without its executions; needs an admin's key", http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, in *InConversation) (*message, error) {
			return &message{"the conversation is erased; its executions stay"},
				a.records.EraseConversation(ctx, caller, in.ID)
		})
	send := r.describe("POST", "/chat/conversations/{id}/messages", "sendMessage", tagChat,
		"Send a message; the language model answers it by events", busy, http.StatusForbidden)
	send.DefaultStatus = http.StatusAccepted
	route(a, r, send, a.sendMessage)
	route(a, r, r.describe("POST", "/chat/conversations/{id}/stop", "stopAnswer", tagChat,
		"Stop the answer that is being written, and the execution that it runs", busy, http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, in *InConversation) (*message, error) {
			return &message{"the answer is being stopped"}, a.chat.Stop(ctx, caller, in.ID)
		})
	route(a, r, r.describe("POST", "/chat/conversations/{id}/session", "openConversationSession", tagChat,
		"Get the live sandbox of a conversation, for uploads; it is created if there is none", busy,
		http.StatusForbidden),
		func(ctx context.Context, caller sandbox.Key, in *InConversation) (*conversationSession, error) {
			id, err := a.chat.Session(ctx, caller, in.ID)
			return &conversationSession{id}, err
		})

	op := r.describe("GET", "/chat/conversations/{id}/events", "followConversation", tagChat,
		"Follow the answer that is being written, from its beginning; Last-Event-ID resumes")
	op.Parameters = []*huma.Param{
		stringParam("path", "id", ""), stringParam("header", "Last-Event-ID", "Resume after this event"),
	}
	op.Responses["200"] = &huma.Response{
		Description: "Events: text, stdout and stderr, with a piece of text of the message at a position; call, when " +
			"the model begins to write a call of a tool; message, when a message is stored or changed, with the " +
			"message; problem; reload, if events are missing: get the conversation again; end, after which the " +
			"stream ends",
		Content: map[string]*huma.MediaType{"text/event-stream": eventSchema("An object, as JSON")},
	}
	r.handle(r.keyed, op, a.followConversation)
}

func (a *api) sendMessage(ctx context.Context, caller sandbox.Key, in *sendInput) (*sentMessage, error) {
	secret := infoFrom(ctx).caller.Secret
	whileValid := func(ctx context.Context) (context.Context, func()) { return a.access.WhileValid(ctx, secret) }
	m, err := a.chat.Send(ctx, caller, in.ID, in.Body.Text, whileValid)
	return &sentMessage{m}, err
}

func (a *api) followConversation(g *gin.Context) {
	client := g.Request.Context()
	reader, err := a.chat.Follow(client, callerFrom(client), g.Param("id"), g.GetHeader("Last-Event-ID"))
	if err != nil {
		a.fail(g, err)
		return
	}
	stream := newEventStream(g)
	defer stream.close()
	if stream.text(": open") != nil || stream.flush() != nil { // the first event may be far away
		return
	}
	for {
		ctx, cancel := context.WithTimeout(client, heartbeatInterval)
		event, err := reader.Next(ctx)
		late := ctx.Err() != nil
		cancel()
		switch {
		case access.LostKey(client) != nil: // first: later text is not for this client
			stream.problem(access.LostKey(client))
			return
		case err == nil:
			err = stream.event(event.ID, event.Name, event.Data)
		case errors.Is(err, io.EOF) || client.Err() != nil:
			return
		case late:
			err = stream.text(": still open")
		default:
			a.logInternal(client, stream.problem(err), err)
			return
		}
		if err != nil || stream.flush() != nil {
			return
		}
	}
}
