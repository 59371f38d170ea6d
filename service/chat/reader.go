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

// EventReader gives the events of the answer of one conversation to one reader.
type EventReader struct {
	chat         *Chat
	conversation string
	answer       *answer // nil: no answer is being written
	after        int
	isLost       bool // the reader has read events that are not there any more
	isOver       bool
}

// Follow returns a reader of the events of the answer that is being written in a conversation that the caller may see;
// with an id, of those after that event. If no answer is being written, the only event is the end.
func (c *Chat) Follow(ctx context.Context, caller sandbox.Key, id, after string) (*EventReader, error) {
	if _, err := c.Records.Conversation(ctx, caller, id); err != nil {
		return nil, err
	}
	r := &EventReader{chat: c, conversation: id, answer: c.answerOf(id)}
	if after == "" || r.answer == nil {
		return r, nil
	}
	answer, number, _ := strings.Cut(after, ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID",
			Detail: "no event has this id; leave the header out to get all events of the answer"}
	}
	if answer == r.answer.id && n <= r.answer.log.count() {
		r.after = n
	} else {
		r.isLost = true
	}
	return r, nil
}

// Next waits for the next event. It returns io.EOF after the end of the answer, and ctx.Err() if ctx ends first.
func (r *EventReader) Next(ctx context.Context) (Event, error) {
	if r.isLost {
		r.isLost = false
		return Event{Name: EventReload, Data: struct{}{}}, nil
	}
	if r.answer == nil {
		if r.isOver {
			return Event{}, io.EOF
		}
		r.isOver = true
		return Event{Name: EventEnd, Data: struct{}{}}, nil
	}
	e, number, err := r.answer.log.next(ctx, r.after)
	if err != nil {
		return Event{}, err
	}
	out := Event{r.answer.id + "." + strconv.Itoa(number), e.name, e.data}
	if position, ok := e.data.(int); ok {
		m, err := r.chat.History.Message(ctx, r.conversation, position)
		if err != nil {
			return Event{}, err
		}
		out.Data = m
	}
	r.after = number
	return out, nil
}
