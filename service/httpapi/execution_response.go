package httpapi

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/run"
	"glasshouse/service/webui"
)

const (
	maxPreferWait = 300 // seconds
	// outputInterval is the time between two output events, so that many small writes become one event.
	outputInterval = 20 * time.Millisecond
)

// ExecutionForm has the headers that choose the form of an execution: whole, as events, or later. It is exported as
// huma reads exported embedded fields only.
type ExecutionForm struct {
	Accept string `header:"Accept" doc:"text/event-stream: stream the execution's events"`
	Prefer string `header:"Prefer" doc:"respond-async: answer 202 with Location, immediately or after wait=SECONDS"`

	Include []string `query:"include" enum:"code,context,enforced_by,environment,kind,text,user_id" doc:"Parts to add"`
}

func (f ExecutionForm) wantsEvents() bool {
	if !strings.Contains(strings.ToLower(f.Accept), "event-stream") { // of nearly all requests
		return false
	}
	for _, item := range listItems(f.Accept, ',') {
		kind, parameters, err := mime.ParseMediaType(item)
		if quality, _ := strconv.ParseFloat(cmp.Or(parameters["q"], "1"), 64); err == nil && quality > 0 &&
			kind == "text/event-stream" {
			return true
		}
	}
	return false
}

func (f ExecutionForm) wantsAsync() bool {
	_, given := f.preference("respond-async")
	return given
}

// wait returns how long the client waits for the end before it wants 202.
func (f ExecutionForm) wait() time.Duration {
	text, _ := f.preference("wait")
	seconds, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(seconds, 0), maxPreferWait)) * time.Second
}

// preference returns the value of a preference (RFC 7240). Names have no case, and the first of two counts.
func (f ExecutionForm) preference(name string) (value string, given bool) {
	if f.Prefer == "" {
		return "", false
	}
	for _, item := range listItems(f.Prefer, ',') {
		first := listItems(item, ';')[0] // the others are parameters
		if key, value, _ := strings.Cut(first, "="); strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.Trim(strings.TrimSpace(value), `"`), true
		}
	}
	return "", false
}

// listItems returns the items of a header, at least one, which a separator outside of quoted strings separates.
func listItems(header string, separator byte) (items []string) {
	begin, quoted := 0, false
	for i := 0; i < len(header); i++ {
		switch c := header[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			items, begin = append(items, strings.TrimSpace(header[begin:i])), i+1
		}
	}
	return append(items, strings.TrimSpace(header[begin:]))
}

// executionResponse writes an execution in the form that was asked for.
type executionResponse struct{ Body func(huma.Context) }

// acceptedExecution is the body of 202.
type acceptedExecution struct {
	ExecutionID string         `json:"execution_id"`
	SandboxID   string         `json:"sandbox_id"`
	Status      sandbox.Status `json:"status"`
	Location    string         `json:"location" doc:"GET it, with ?wait=SECONDS to wait for the end"`
}

// routeExecution registers an operation that answers with an execution in any form.
func routeExecution[I any](
	a *api, r *routes, op huma.Operation, handle func(context.Context, sandbox.Key, *I) (*executionResponse, error),
) {
	ok := &huma.Response{
		Description: "The execution; or events with ids: started; stdout, stderr, debug, output and query; result; " +
			"and done with the execution. An answer to POST has no empty part",
		Content: jsonContent[sandbox.ExecutionAnswer](r),
	}
	ok.Content["text/event-stream"] = eventSchema("JSON; docs/api.md lists the events")
	op.Responses["200"] = ok
	if op.Method == http.MethodPost {
		op.Responses["202"] = &huma.Response{
			Description: "The execution is running",
			Headers: map[string]*huma.Param{
				"Location": {Description: "The execution", Schema: &huma.Schema{Type: huma.TypeString}},
			},
			Content: jsonContent[acceptedExecution](r),
		}
	} else {
		op.Responses["204"] = &huma.Response{Description: "No events after Last-Event-ID; an EventSource stops here"}
	}
	registerResponse(a, r, op, handle)
}

// registerResponse registers an operation whose handler writes its response, which op describes.
func registerResponse[I any](
	a *api, r *routes, op huma.Operation, handle func(context.Context, sandbox.Key, *I) (*executionResponse, error),
) {
	if _, hasBody := reflect.TypeFor[I]().FieldByName("Body"); hasBody {
		r.describeErrors(&op, bodyStatuses...)
	}
	huma.Register(r.api, op, func(ctx context.Context, in *I) (*executionResponse, error) {
		infoFrom(ctx).decoded()
		out, err := handle(ctx, callerFrom(ctx), in)
		if err := a.humaError(ctx, err); err != nil {
			return nil, err
		}
		return out, nil
	})
}

func jsonResponse(status int, value any, headers ...string) *executionResponse {
	return &executionResponse{func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			ctx.SetHeader(headers[i], headers[i+1])
		}
		ctx.SetStatus(status)
		_ = encodeJSON(ctx.BodyWriter(), value) // fails if the client has left
	}}
}

// encodeJSON writes a value as JSON without HTML escapes.
func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// recordResponse answers with the JSON of an execution, which has textBytes of text. It encodes a large one in the
// caller's turn.
func (a *api) recordResponse(user string, value any, textBytes int) *executionResponse {
	return &executionResponse{func(ctx huma.Context) {
		var body bytes.Buffer
		a.cpu.Compute(user, textBytes, func() { _ = encodeJSON(&body, value) })
		writeJSON(ctx, body.Bytes())
	}}
}

// listResponse answers with a page of executions. It encodes each large one in the caller's turn.
func (a *api) listResponse(user string, page executionList) *executionResponse {
	return &executionResponse{func(ctx huma.Context) {
		var body bytes.Buffer
		body.WriteString(`{"executions":[`)
		for n := range page.Executions {
			if n > 0 {
				body.WriteByte(',')
			}
			e := &page.Executions[n]
			a.cpu.Compute(user, e.TextBytes(), func() { _ = encodeJSON(&body, e) }) // a record can be encoded
			body.Truncate(body.Len() - len("\n"))
		}
		body.WriteByte(']')
		if page.Next != "" {
			body.WriteString(`,"next":`)
			_ = encodeJSON(&body, page.Next)
			body.Truncate(body.Len() - len("\n"))
		}
		body.WriteString("}\n")
		writeJSON(ctx, body.Bytes())
	}}
}

// minCompressedBytes is the size from which on a list of summaries is compressed: it shrinks to a sixth, in less time
// than most networks take for the difference.
const minCompressedBytes = 4 << 10

// summariesResponse answers with a page of summaries, compressed if it is large and the client can read that.
func summariesResponse(page executionSummaryList) *executionResponse {
	return &executionResponse{func(ctx huma.Context) {
		var body bytes.Buffer
		_ = encodeJSON(&body, page) // summaries can be encoded
		ctx.SetHeader("Vary", "Accept-Encoding")
		if body.Len() < minCompressedBytes || !webui.AcceptsGzip(ctx.Header("Accept-Encoding")) {
			writeJSON(ctx, body.Bytes())
			return
		}
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed) // a valid level
		_, _ = w.Write(body.Bytes())                        // a bytes.Buffer takes everything
		_ = w.Close()
		ctx.SetHeader("Content-Encoding", "gzip")
		writeJSON(ctx, small.Bytes())
	}}
}

// writeJSON answers with a JSON text.
func writeJSON(ctx huma.Context, text []byte) {
	ctx.SetHeader("Content-Type", "application/json")
	ctx.SetStatus(http.StatusOK)
	_, _ = ctx.BodyWriter().Write(text) // fails if the client has left
}

// answer answers a run with its execution.
func (a *api) answer(f ExecutionForm, e *sandbox.Execution, err error) (*executionResponse, error) {
	if err != nil {
		return nil, err
	}
	answer := answerOf(e, f.Include)
	if len(f.Include) > 0 || hasRawParts(e) {
		return a.recordResponse(e.User, answer, e.TextBytes()), nil
	}
	return &executionResponse{func(ctx huma.Context) {
		body := make([]byte, 0, usualAnswerBytes+e.TextBytes())
		a.cpu.Compute(e.User, e.TextBytes(), func() {
			body, _ = sandbox.AppendJSON(body, &answer) // a record can be encoded
		})
		writeJSON(ctx, append(body, '\n'))
	}}, nil
}

// hasRawParts reports whether an answer with e may have JSON that encoding/json writes in another way than AppendJSON:
// without spaces. Most runs have none.
func hasRawParts(e *sandbox.Execution) bool {
	return len(e.Outputs)+len(e.Queries)+len(e.Edits)+len(e.DebugInfo.Logs)+len(e.DebugInfo.Variables) > 0 ||
		e.Exception != nil || e.Replay != nil || e.Restored != nil || bytes.ContainsAny(e.Result, " \t\r\n")
}

const usualAnswerBytes = 1 << 10 // more than the size of an answer without its texts

// answerOf returns the answer form of an execution with the parts of include.
func answerOf(e *sandbox.Execution, include []string) sandbox.ExecutionAnswer {
	answer := e.Answer(include...)
	if slices.Contains(include, "text") {
		answer.Text = run.ModelText(e, run.DefaultModelTextChars)
	}
	return answer
}

// startedResponse answers for an execution that continues without its client.
func (a *api) startedResponse(
	ctx context.Context, form ExecutionForm, log *run.EventLog, err error,
) (*executionResponse, error) {
	if err != nil {
		return nil, err
	}
	e, _ := log.Execution()
	location := infoFrom(ctx).prefix + "/executions/" + e.ID
	if form.wantsEvents() {
		return &executionResponse{func(ctx huma.Context) {
			ctx.SetHeader("Location", location)
			a.streamEvents(ctx, log, 0, form.Include)
		}}, nil
	}
	if wait := form.wait(); wait > 0 {
		select {
		case <-log.Over():
			e, _ := log.Execution()
			return a.answer(form, e, log.Err())
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	body := acceptedExecution{e.ID, e.SandboxID, e.Status, location}
	return jsonResponse(http.StatusAccepted, body, "Location", location, "Preference-Applied", "respond-async"), nil
}

// followResponse streams the events of an execution that was started before.
func (a *api) followResponse(
	ctx context.Context, caller sandbox.Key, in *getExecutionInput,
) (*executionResponse, error) {
	after := int64(0)
	if in.LastEventID != "" {
		var err error
		if after, err = strconv.ParseInt(in.LastEventID, 10, 64); err != nil {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID",
				Detail: "no event of this execution has this id; leave the header out to get all events"}
		}
	}
	log, after, err := a.runs.Follow(ctx, caller, in.ID, after)
	if err == nil {
		err = log.Check(after)
	}
	switch {
	case errors.Is(err, io.EOF): // 204 keeps an EventSource from reconnecting
		return &executionResponse{func(ctx huma.Context) { ctx.SetStatus(http.StatusNoContent) }}, nil
	case err != nil:
		return nil, err
	}
	return &executionResponse{func(ctx huma.Context) { a.streamEvents(ctx, log, after, in.Include) }}, nil
}

// streamEvents writes the events after an id, until there are no more or the client stops reading.
// Neither holds up the execution. The last event is the execution with the parts of include.
func (a *api) streamEvents(to huma.Context, log *run.EventLog, after int64, include []string) {
	g := humagin.Unwrap(to)
	stream := newEventStream(g)
	defer stream.close()
	if stream.text("retry: 1000") != nil || stream.flush() != nil {
		return
	}
	client := g.Request.Context()
	for {
		ctx, cancel := context.WithTimeout(client, heartbeatInterval)
		event, err := log.Next(ctx, after)
		cancel()
		switch {
		case access.LostKey(client) != nil: // first: later events are not for this client
			stream.problem(access.LostKey(client))
			return
		case err == nil:
			if e, isExecution := event.Data.(*sandbox.Execution); isExecution {
				event.Data = answerOf(e, include)
			}
			if err := stream.event(strconv.FormatInt(event.ID, 10), event.Name, event.Data); err != nil {
				return
			}
			after = event.ID
		case client.Err() != nil || errors.Is(err, io.EOF):
			return
		case errors.Is(err, context.DeadlineExceeded):
			if stream.text(": still running") != nil {
				return
			}
		default: // an internal error, when the status has been sent
			a.logInternal(client, stream.problem(err), err)
			return
		}
		if stream.flush() != nil {
			return
		}
		if event.Name == "stdout" || event.Name == "stderr" {
			select {
			case <-time.After(outputInterval):
			case <-log.Over():
			case <-client.Done():
				return
			}
		}
	}
}
