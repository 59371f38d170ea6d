package chat

import (
	"context"
	"io"
	"strconv"
	"strings"

	"glasshouse/sandbox"
)

// Event is an event of an answer for a reader.
type Event struct {
	ID   string // the reader continues after it
	Name string
	Data any
}

// Feed gives the events of the answer of one conversation to one reader.
type Feed struct {
	chat         *Chat
	conversation string
	answer       *answer // nil: no answer is being written
	after        int
	isLost       bool // the reader has read events that are not there any more
	isOver       bool
}

// Follow returns a reader of the events of the answer that is being written in a conversation that the caller may see;
// with an id, of those after that event. If no answer is being written, the only event is the end.
func (c *Chat) Follow(ctx context.Context, caller sandbox.Key, id, after string) (*Feed, error) {
	if _, err := c.Service.Conversation(ctx, caller, id); err != nil {
		return nil, err
	}
	f := &Feed{chat: c, conversation: id, answer: c.answerOf(id)}
	if after == "" || f.answer == nil {
		return f, nil
	}
	answer, number, _ := strings.Cut(after, ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID",
			Detail: "no event has this id; leave the header out to get all events of the answer"}
	}
	if answer == f.answer.id && n <= f.answer.log.count() {
		f.after = n
	} else {
		f.isLost = true
	}
	return f, nil
}

// Next waits for the next event. It returns io.EOF after the end of the answer, and ctx.Err() if ctx ends first.
func (f *Feed) Next(ctx context.Context) (Event, error) {
	if f.isLost {
		f.isLost = false
		return Event{Name: EventReload, Data: struct{}{}}, nil
	}
	if f.answer == nil {
		if f.isOver {
			return Event{}, io.EOF
		}
		f.isOver = true
		return Event{Name: EventEnd, Data: struct{}{}}, nil
	}
	e, number, err := f.answer.log.next(ctx, f.after)
	if err != nil {
		return Event{}, err
	}
	out := Event{f.answer.id + "." + strconv.Itoa(number), e.name, e.data}
	if position, ok := e.data.(int); ok {
		m, err := f.chat.Service.History.Message(ctx, f.conversation, position)
		if err != nil {
			return Event{}, err
		}
		out.Data = m
	}
	f.after = number
	return out, nil
}
