// Package chattest has an endpoint that speaks the protocol of OpenAI's chat completions and answers as a script says.
package chattest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Message is a message that the endpoint has received.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	CallID  string `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// Request is a request that the endpoint has received.
type Request struct {
	Header   http.Header `json:"-"`
	Path     string      `json:"-"`
	Model    string      `json:"model"`
	Stream   bool        `json:"stream"`
	Messages []Message   `json:"messages"`
	Tools    []struct {
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
}

// Call is a call of a tool in a reply.
type Call struct{ Tool, Arguments string }

// Python returns a call of run_python.
func Python(code string) Call {
	arguments, _ := json.Marshal(map[string]string{"code": code})
	return Call{"run_python", string(arguments)}
}

// Reply is one answer.
type Reply struct {
	Status int               // 0: 200 and a stream; else Body with Header
	Header map[string]string // of a status
	Body   string
	Chunks []string // pieces of text
	Calls  []Call
	Raw    []string // lines that are sent as they are, before the chunks
	Hold   bool     // wait after the chunks until Release, or until the client leaves
	After  []string // pieces of text after Hold
	Break  bool     // close the connection after the chunks
	Finish string   // "": stop, or tool_calls
}

// Endpoint is the server. Its methods are safe for concurrent use.
type Endpoint struct {
	server *httptest.Server

	mu       sync.Mutex
	scripts  map[string][]Reply
	requests []Request
	release  chan struct{}
	left     chan struct{} // has a value for each client that left a reply that was held
}

// Start starts an endpoint. scripts has the replies to each message of a person: the first reply comes first, the next
// one after the results of its tools, and so on. To any other message the endpoint replies with a text that repeats it.
func Start(scripts map[string][]Reply) *Endpoint {
	e := &Endpoint{scripts: scripts, release: make(chan struct{}), left: make(chan struct{}, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", e.complete)
	mux.HandleFunc("POST /release", func(http.ResponseWriter, *http.Request) { e.Release() })
	e.server = httptest.NewServer(mux)
	return e
}

// URL returns the base URL.
func (e *Endpoint) URL() string { return e.server.URL + "/v1" }

// Host returns the host and the port.
func (e *Endpoint) Host() string { return strings.TrimPrefix(e.server.URL, "http://") }

// Close ends the endpoint and its streams.
func (e *Endpoint) Close() {
	e.server.CloseClientConnections()
	e.Release()
	e.server.Close()
}

// Release lets the replies that are held go on.
func (e *Endpoint) Release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.release)
	e.release = make(chan struct{})
}

// Left receives a value when a client leaves a reply that is held.
func (e *Endpoint) Left() <-chan struct{} { return e.left }

// Requests returns the requests so far.
func (e *Endpoint) Requests() []Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

func (e *Endpoint) complete(w http.ResponseWriter, r *http.Request) {
	request := Request{Header: r.Header, Path: r.URL.Path}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if problem := check(request); problem != "" {
		http.Error(w, `{"error":{"message":"`+problem+`"}}`, http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.requests = append(e.requests, request)
	release := e.release
	e.mu.Unlock()
	reply := e.reply(request)
	if reply.Status != 0 {
		for name, value := range reply.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(reply.Status)
		_, _ = w.Write([]byte(reply.Body))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send(w, reply)
	if reply.Hold {
		select {
		case <-release:
		case <-r.Context().Done():
			e.left <- struct{}{}
			return
		}
	}
	send(w, Reply{Chunks: reply.After})
	if reply.Break {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			if tcp, ok := connection.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = connection.Close()
		}
		return
	}
	finish := reply.Finish
	if finish == "" {
		finish = "stop"
		if len(reply.Calls) > 0 {
			finish = "tool_calls"
		}
	}
	event(w, map[string]any{}, finish)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// check returns what is wrong with a request: the protocol wants one result for each call, right after it.
func check(r Request) string {
	for n, m := range r.Messages {
		for i, call := range m.Calls {
			if at := n + 1 + i; at >= len(r.Messages) || r.Messages[at].CallID != call.ID {
				return fmt.Sprintf("message %d: the call %s has no result", n, call.ID)
			}
		}
		if m.Role == "tool" && m.CallID == "" {
			return fmt.Sprintf("message %d: the result has no call", n)
		}
	}
	return ""
}

// reply returns the reply to the last message of a person.
func (e *Endpoint) reply(r Request) Reply {
	text, rounds := "", 0
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			text, rounds = m.Content, 0
		case "assistant":
			rounds++
		}
	}
	if strings.HasPrefix(text, "[") { // a remark of the service about the session
		_, text, _ = strings.Cut(text, "\n")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	script := e.scripts[text]
	if len(script) == 0 {
		return Reply{Chunks: []string{"You said: ", text}}
	}
	return script[min(rounds, len(script)-1)]
}

func send(w http.ResponseWriter, reply Reply) {
	for _, line := range reply.Raw {
		fmt.Fprintln(w, line)
	}
	for _, text := range reply.Chunks {
		event(w, map[string]any{"content": text}, nil)
	}
	for n, call := range reply.Calls {
		half := len(call.Arguments) / 2
		for i, part := range []string{call.Arguments[:half], call.Arguments[half:]} {
			function := map[string]any{"arguments": part}
			delta := map[string]any{"index": n, "function": function}
			if i == 0 {
				function["name"], delta["id"], delta["type"] = call.Tool, fmt.Sprintf("c%d", n), "function"
			}
			event(w, map[string]any{"tool_calls": []any{delta}}, nil)
		}
	}
	_ = http.NewResponseController(w).Flush()
}

func event(w http.ResponseWriter, delta map[string]any, finish any) {
	data, _ := json.Marshal(map[string]any{
		"object": "chat.completion.chunk", "choices": []any{map[string]any{
			"index": 0, "delta": delta, "finish_reason": finish,
		}},
	})
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}
