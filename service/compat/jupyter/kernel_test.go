package jupyter

import (
	"context"
	"errors"
	"testing"

	"github.com/coder/websocket"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"glasshouse/service/compat"
)

// A request that panics ends the connections of its kernel, and nothing else.
func TestKernelGoesOnAfterAPanic(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	ended := make(chan struct{})
	k := &kernel{server: &server{Config: compat.Config{Log: log}}, ended: ended, queue: make(chan func(), 2)}
	ctx, cancel := context.WithCancelCause(t.Context())
	k.clients = []*client{{cancel: cancel, wake: make(chan struct{}, 1)}}
	answered := make(chan bool, 1)
	k.queue <- func() { panic("in a request") }
	k.queue <- func() { answered <- true }
	go k.serve()
	<-answered
	reason, ok := errors.AsType[*closeError](context.Cause(ctx))
	if !ok || reason.code != websocket.StatusInternalError {
		t.Errorf("got %v for the connection, want the close code %d", context.Cause(ctx), websocket.StatusInternalError)
	}
	if entry := logged.LastEntry(); entry == nil || entry.Data["panic"] != "in a request" {
		t.Errorf("got the log entry %v, want the panic", entry)
	}
}
