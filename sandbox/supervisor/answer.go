package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// answerRequest answers one request of the code. The run loop reads no frame until it
// returns, so answerRequest itself cancels the request when the process ends.
func (l *runLoop) answerRequest(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.process.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	conn, inputs := l.process.Conn, l.callbacks.Inputs
	if inputs == nil {
		return answer(ctx, conn, l.callbacks.Requests, body, l.meter)
	}
	frames, err := inputs.Request(ctx, body)
	if err != nil || frames != nil {
		return l.replay(ctx, body, frames, err)
	}
	conn.Sent = func(frames net.Buffers) {
		size := 0
		for _, part := range frames {
			size += len(part)
		}
		inputs.Answered(size, func() []byte { return protocol.JoinAnswer(frames) })
	}
	defer func() { conn.Sent = nil }()
	return answer(ctx, conn, l.callbacks.Requests, body, l.meter)
}

// replay answers a request with the frames of an earlier run, or refuses it with an error.
func (l *runLoop) replay(ctx context.Context, body, frames []byte, refusal error) error {
	var request protocol.Request
	err := l.meter.parse(len(body), func() error { return l.process.Conn.Decode(protocol.KindRequest, body, &request) })
	if err != nil {
		return err
	}
	return l.meter.measure(len(frames), func() error {
		if refusal != nil {
			return writeAnswer(ctx, l.process.Conn, protocol.Answer{ID: request.ID}, refusal)
		}
		return l.process.Conn.WriteFrames(frames, request.ID)
	})
}

// answer parses a request, calls the handler and writes its answer. It charges meter for all but
// the running of a statement. An error means that the guest broke the protocol or has ended.
func answer(
	ctx context.Context, conn *protocol.Conn, handler RequestHandler, body []byte, meter *workMeter,
) error {
	var request protocol.Request
	err := meter.parse(len(body), func() error { return conn.Decode(protocol.KindRequest, body, &request) })
	if err != nil {
		return err
	}
	if len(request.Types) > 0 && request.Params == nil {
		return &protocol.IllegalFrame{Why: "a request has types of parameters, but no parameters"}
	}
	reply := protocol.Answer{ID: request.ID}
	if handler == nil && slices.Contains([]string{"query", "stages", "tables", "schema", "history"}, request.What) {
		reply.Refused = &sandbox.Refusal{Reason: "no-database", Message: "this sandbox has no database"}
		return conn.WriteAnswer(reply)
	}
	for name, kind := range request.Types {
		request.Params[name] = sandbox.TypedParameter{Type: kind, Value: request.Params[name]}
	}
	switch request.What {
	case "stages":
		meter.add(time.Duration(queryByteWork * len(body)))
		meter.waitForStatement(ctx)
		reply.Value, err = handler.Stages(ctx, request.Database, request.SQL, request.Params)
	case "query":
		meter.add(time.Duration(queryByteWork * len(body)))
		meter.waitForStatement(ctx)
		rows := conn.RowWriter(request.ID, request.Form, request.Exact)
		var summary sandbox.QuerySummary
		summary, err = handler.Query(ctx, request.Database, request.SQL, request.Params, rows.WriteBatch)
		if err == nil {
			return rows.End(summary.Truncated)
		}
	case "tables", "schema", "history":
		return meter.measure(minMeasuredBytes, func() error {
			switch request.What {
			case "tables":
				reply.Value, err = handler.Tables(ctx, request.Database)
			case "schema":
				reply.Value, err = handler.Schema(ctx, request.Database, request.Table)
			default:
				reply.Value, err = handler.History(ctx)
			}
			return writeAnswer(ctx, conn, reply, err)
		})
	default:
		return &protocol.IllegalFrame{Why: fmt.Sprintf("there is no request %.20q", request.What)}
	}
	return writeAnswer(ctx, conn, reply, err)
}

// writeAnswer writes an answer, or the refusal for an error.
func writeAnswer(ctx context.Context, conn *protocol.Conn, reply protocol.Answer, err error) error {
	if err != nil && !errors.As(err, &reply.Refused) {
		reply.Refused = unavailable(ctx, err)
	}
	return conn.WriteAnswer(reply)
}

// unavailable returns the refusal that code gets for an internal error. Its text does not
// reveal the error.
func unavailable(ctx context.Context, err error) *sandbox.Refusal {
	message := "the database could not answer: the reason is in the service's log"
	if known, ok := errors.AsType[*sandbox.Error](err); ok {
		message = known.Detail
	} else if ctx.Err() != nil {
		message = "the run was interrupted"
	}
	return &sandbox.Refusal{Reason: "unavailable", Message: message, Failed: true}
}
