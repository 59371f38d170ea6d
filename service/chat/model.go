package chat

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Bounds of one answer of the endpoint.
const (
	// DefaultStallTimeout is how long the endpoint may send nothing. A model on a machine without a GPU reads a long
	// conversation for a minute before it writes.
	DefaultStallTimeout = 2 * time.Minute
	maxAnswerTime       = 15 * time.Minute
	maxAnswerBytes      = 16 << 20
	maxEventBytes       = 1 << 20
	maxAnswerChars      = 200_000 // of the text and of all calls
	maxNameBytes        = 64      // of a tool; the protocol has the same limit
	maxCalls            = 32
	maxErrorBytes       = 64 << 10
)

// Model is a language model at an endpoint that speaks the protocol of OpenAI's chat completions.
type Model struct {
	URL  string // of the API, such as http://127.0.0.1:11434/v1
	Name string
	Key  string // sent as a bearer token; "": none

	StallTimeout time.Duration // 0: DefaultStallTimeout
}

// completionRequest is the body of a request.
type completionRequest struct {
	Model    string            `json:"model"`
	Messages []completionInput `json:"messages"`
	Tools    []completionTool  `json:"tools,omitempty"`
	Stream   bool              `json:"stream"`
}

// completionInput is one message that the model reads.
type completionInput struct {
	Role    string           `json:"role"`
	Content *string          `json:"content"`
	Calls   []completionCall `json:"tool_calls,omitempty"`
	CallID  string           `json:"tool_call_id,omitempty"`
}

type completionCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type completionTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// chunk is the data of one event of the answer.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string      `json:"content"`
			Refusal string      `json:"refusal"`
			Calls   []callDelta `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Error json.RawMessage `json:"error"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// completion is what the model wrote for one request.
type completion struct {
	text   strings.Builder
	calls  []*completionCallBuilder
	size   int
	finish string // the endpoint's reason for the end; "" if the answer broke off
}

type completionCallBuilder struct {
	index     int
	id, name  string // id is the endpoint's
	arguments strings.Builder
}

// completionListener hears of an answer while it comes.
type completionListener struct {
	onText func(string)
	onCall func(tool string)
}

var errStalled = errors.New("the endpoint sent nothing for too long")

// complete sends a request and reads the answer. It returns what came also with an error, which is an *endpointError
// unless ctx has ended.
func (m *Model) complete(
	ctx context.Context, request completionRequest, listener completionListener,
) (*completion, error) {
	out := &completion{}
	stall := cmp.Or(m.StallTimeout, DefaultStallTimeout)
	outer := ctx
	ctx, cancelTime := context.WithTimeout(ctx, maxAnswerTime)
	defer cancelTime()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer timer.Stop()
	err := m.read(ctx, request, func() { timer.Reset(stall) }, out, listener)
	switch {
	case err == nil:
		return out, nil
	case outer.Err() != nil:
		return out, outer.Err()
	case errors.Is(context.Cause(ctx), errStalled):
		return out, m.errorf("sent nothing for %s. Send your message again; if the model needs longer to begin, "+
			"use a smaller one or a faster machine.", stall)
	case ctx.Err() != nil:
		return out, m.errorf("took longer than %s for one answer. Ask for less at once.", maxAnswerTime)
	}
	var known *endpointError
	if errors.As(err, &known) {
		return out, known
	}
	return out, m.connectionError(err, out)
}

func (m *Model) read(
	ctx context.Context, request completionRequest, onBytes func(), out *completion, listener completionListener,
) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimRight(m.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	if m.Key != "" {
		r.Header.Set("Authorization", "Bearer "+m.Key)
	}
	client := http.Client{
		// A redirect would send the conversation to a host that the page does not name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	onBytes()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBytes)) // what came is enough
		return m.statusError(response, text)
	}
	return m.readEvents(&countingReader{response.Body, onBytes, maxAnswerBytes}, out, listener)
}

// countingReader calls onBytes for each read, and fails after a number of bytes.
type countingReader struct {
	io.Reader
	onBytes func()
	left    int
}

var errTooLong = errors.New("the answer is too long")

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.onBytes()
	}
	if r.left -= n; r.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// readEvents reads server-sent events until the endpoint says that the answer is complete, or closes the connection.
func (m *Model) readEvents(r io.Reader, out *completion, listener completionListener) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEventBytes)
	var data []byte
	other := "" // the first line that belongs to no event
	for lines.Scan() {
		line := lines.Bytes()
		if field, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(field, []byte(" "))...), '\n')
			continue
		}
		if len(line) > 0 {
			if name, _, _ := bytes.Cut(line, []byte(":")); other == "" && !isEventField(string(name)) {
				other = string(line)
			}
			continue
		}
		done, err := m.readEvent(bytes.TrimSpace(data), out, listener)
		if data = data[:0]; done || err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, errTooLong) || errors.Is(err, bufio.ErrTooLong) {
		return m.errorf("sent an answer of more than %d MiB, or an event of more than %d KiB. Ask for less at once.",
			maxAnswerBytes>>20, maxEventBytes>>10)
	} else if err != nil {
		return err
	}
	if _, err := m.readEvent(bytes.TrimSpace(data), out, listener); err != nil { // without an empty line at the end
		return err
	}
	if out.finish != "" {
		return nil
	}
	if other != "" && out.text.Len() == 0 && len(out.calls) == 0 {
		return m.errorf("answered with no stream of events, but with: %s. Check --model-url: it ends with /v1 for "+
			"most servers.", m.quote(other))
	}
	return io.ErrUnexpectedEOF
}

// isEventField reports whether a line of server-sent events begins with a field's name or is a comment.
func isEventField(name string) bool {
	return name == "" || name == "event" || name == "id" || name == "retry"
}

func (m *Model) readEvent(data []byte, out *completion, listener completionListener) (done bool, err error) {
	if len(data) == 0 { // a comment, which keeps the connection open
		return false, nil
	}
	if string(data) == "[DONE]" {
		if out.finish == "" && (out.text.Len() > 0 || len(out.calls) > 0) {
			out.finish = "stop"
		}
		return true, nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, m.errorf("sent an event that is not a chat completion in JSON: %s. Check --model-url.",
			m.quote(string(data)))
	}
	if text := errorText(c.Error); text != "" {
		return false, m.errorf("ended its answer with an error: %s. Send your message again.", m.quote(text))
	}
	for _, choice := range c.Choices[:min(len(c.Choices), 1)] {
		if text := choice.Delta.Content + choice.Delta.Refusal; text != "" {
			if err := m.addSize(out, len(text)); err != nil {
				return false, err
			}
			out.text.WriteString(text)
			listener.onText(text)
		}
		for _, delta := range choice.Delta.Calls {
			if err := m.addCall(out, delta, listener); err != nil {
				return false, err
			}
		}
		if choice.FinishReason != "" {
			out.finish = choice.FinishReason
		}
	}
	return false, nil
}

// addCall adds a part of a call. Some servers give every call the index 0, and some give none: a new id begins a call.
func (m *Model) addCall(out *completion, delta callDelta, listener completionListener) error {
	if len(delta.Function.Name) > maxNameBytes {
		return m.errorf("called a tool whose name has more than %d bytes. Send your message again.", maxNameBytes)
	}
	var call *completionCallBuilder
	for _, c := range out.calls {
		if delta.Index == nil || c.index == *delta.Index {
			call = c
		}
	}
	if call == nil || delta.ID != "" && call.id != "" && delta.ID != call.id {
		if len(out.calls) == maxCalls {
			return m.errorf("called more than %d tools at once. Ask for less at once.", maxCalls)
		}
		call = &completionCallBuilder{index: len(out.calls)}
		if delta.Index != nil {
			call.index = *delta.Index
		}
		out.calls = append(out.calls, call)
		if delta.Function.Name != "" {
			listener.onCall(delta.Function.Name)
		}
	}
	call.id = cmp.Or(call.id, delta.ID)
	call.name = cmp.Or(call.name, delta.Function.Name)
	call.arguments.WriteString(delta.Function.Arguments)
	return m.addSize(out, len(delta.ID)+len(delta.Function.Name)+len(delta.Function.Arguments))
}

// addSize counts what the model writes. A conversation is read whole in each round.
func (m *Model) addSize(out *completion, n int) error {
	if out.size += n; out.size > maxAnswerChars {
		return m.errorf("wrote more than %d characters in one answer. Ask for less at once.", maxAnswerChars)
	}
	return nil
}

func (m *Model) errorf(format string, args ...any) *endpointError {
	return &endpointError{m.Host() + " " + fmt.Sprintf(format, args...)}
}
