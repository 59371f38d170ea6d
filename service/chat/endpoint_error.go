package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// endpointError says in the conversation what is wrong with the endpoint and what to do.
type endpointError struct{ text string }

func (e *endpointError) Error() string { return e.text }

// Host returns the host and the port of the endpoint, which people see.
func (m *Model) Host() string {
	if u, err := url.Parse(m.URL); err == nil {
		return u.Host
	}
	return "the endpoint"
}

const (
	maxQuotedChars = 500
	maxRetryAfter  = 24 * 60 * 60 // seconds; a header with anything else is not repeated: it could have the key
)

// quote returns a text of the endpoint for a message. An endpoint may repeat the key in its error. The key is searched
// in the text that people read: without the characters that nobody sees, which could split it.
func (m *Model) quote(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if m.Key != "" {
		text = strings.ReplaceAll(text, m.Key, "***")
	}
	if runes := []rune(text); len(runes) > maxQuotedChars {
		text = string(runes[:maxQuotedChars]) + "…"
	}
	return "“" + strings.TrimRight(text, ".") + "”"
}

// errorText returns the message in the field error of an answer, which is an object or a text, or "".
func errorText(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var object struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Message != "" {
		return object.Message
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// statusError returns the error for a response that is not 200.
func (m *Model) statusError(r *http.Response, body []byte) error {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	said := strings.TrimSpace(string(body))
	if json.Unmarshal(body, &answer) == nil {
		if text := errorText(answer.Error); text != "" {
			said = text
		}
	}
	if said != "" {
		said = " It said: " + m.quote(said) + "."
	}
	status := fmt.Sprintf("(HTTP %d)", r.StatusCode)
	switch {
	case r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden:
		return m.errorf("refused the key of the service %s.%s The operator sets another with --model-key-file and "+
			"restarts the service.", status, said)
	case r.StatusCode == http.StatusNotFound:
		return m.errorf("knows no such address or model %s.%s The operator checks --model-url, which ends with /v1 "+
			"for most servers, and --model-name.", status, said)
	case r.StatusCode == http.StatusTooManyRequests:
		when := "later"
		if after, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && after > 0 && after <= maxRetryAfter {
			when = fmt.Sprintf("after %d s", after)
		}
		return m.errorf("takes no more requests now %s.%s Send your message again %s.", status, said, when)
	case r.StatusCode >= 300 && r.StatusCode < 400:
		return m.errorf("redirects to another address %s, to which the conversation is not sent. The operator sets "+
			"--model-url to the address to which it leads.", status)
	case r.StatusCode >= 500:
		return m.errorf("failed %s.%s Send your message again in a moment.", status, said)
	}
	return m.errorf("refused the request %s.%s If the conversation is too long for the model, begin a new one; if the "+
		"model takes no tools, the operator sets another with --model-name.", status, said)
}

// connectionError returns the error for a connection that failed. out has what came before.
func (m *Model) connectionError(err error, out *completion) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return m.errorf("refuses connections. The operator starts the model's server there, or sets another " +
			"--model-url.")
	case errors.As(err, &dns):
		return m.errorf("cannot be found: there is no such host. The operator checks --model-url.")
	case out.text.Len() > 0 || len(out.calls) > 0:
		return m.errorf("closed the connection before the end of its answer. The text so far is kept. " +
			"Send “go on”.")
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET):
		return m.errorf("closed the connection without an answer. Send your message again.")
	}
	var wrapped *url.Error // it names the method and the address
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return m.errorf("cannot be reached: %s. The operator checks --model-url.", m.quote(err.Error()))
}
