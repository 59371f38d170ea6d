package mcpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"

	"glasshouse/sandbox"
)

// A client of a version before 2026-07-28 cancels a call with a notification, which is an HTTP request of its own. The
// server keeps no session that would connect the two, so it finds the call by its id and by its client.

// callID identifies a running call. Clients count their ids from 0 or 1, so two of them may use the same one at a time:
// the key, the address and the name of the client tell most of them apart.
type callID struct {
	key, address, agent string
	id                  string // as JSON
}

type clientMessageKey struct{}

// clientMessage is the body of a request. It keeps what the SDK has read, so that the id of a call can be found.
type clientMessage struct {
	io.ReadCloser
	client callID // without the id

	mu   sync.Mutex
	read bytes.Buffer
}

func newClientMessage(r *http.Request, caller sandbox.Key) *clientMessage {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return &clientMessage{ReadCloser: r.Body, client: callID{key: caller.ID, address: address, agent: r.UserAgent()}}
}

func (m *clientMessage) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read.Write(p[:n])
	return n, err
}

// callID returns the identity of the call in the message, once, and forgets the message. ok is false if it is not a
// call.
func (m *clientMessage) callID() (id callID, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var call struct {
		ID any `json:"id"`
	}
	err := json.Unmarshal(m.read.Bytes(), &call)
	m.read = bytes.Buffer{}
	if err != nil || call.ID == nil {
		return callID{}, false
	}
	return m.client.with(call.ID), true
}

// cancelled returns the identity of the call that the message cancels. ok is false if it is another message.
func (m *clientMessage) cancelled() (id callID, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var notification struct {
		Method string
		Params struct {
			ID any `json:"requestId"`
		}
	}
	const method = "notifications/cancelled"
	if !bytes.Contains(m.read.Bytes(), []byte(method)) || json.Unmarshal(m.read.Bytes(), &notification) != nil ||
		notification.Method != method {
		return callID{}, false
	}
	return m.client.with(notification.Params.ID), true
}

func (c callID) with(id any) callID {
	text, _ := json.Marshal(id) // it was JSON
	c.id = string(text)
	return c
}

// runningCalls are the calls that can be cancelled.
type runningCalls struct {
	mu    sync.Mutex
	calls map[callID]map[*func()]bool
}

// add keeps the cancel function of the call that a request has, until forget is called.
func (r *runningCalls) add(request context.Context, cancel func()) (forget func()) {
	message, ok := request.Value(clientMessageKey{}).(*clientMessage)
	if !ok {
		return func() {}
	}
	id, ok := message.callID()
	if !ok {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[callID]map[*func()]bool{}
	}
	if r.calls[id] == nil {
		r.calls[id] = map[*func()]bool{}
	}
	r.calls[id][&cancel] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.calls[id], &cancel); len(r.calls[id]) == 0 {
			delete(r.calls, id)
		}
	}
}

// cancel cancels a call, unless several have its identity.
func (r *runningCalls) cancel(id callID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.calls[id]) == 1 {
		for cancel := range r.calls[id] {
			(*cancel)()
		}
	}
}
