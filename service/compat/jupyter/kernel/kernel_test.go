package kernel

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/socket"
)

// A request that panics ends the connections of its kernel, and nothing else.
func TestKernelGoesOnAfterAPanic(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	keys := access.New(access.Config{Log: log})
	defer keys.Close()
	k := &Kernel{
		config: compat.Config{Log: log}, limits: socket.NewLimits(keys, nil),
		ended: make(chan struct{}),
		queue: make(chan func(), 2), slots: limit.NewSlots(1),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := k.Connect(w, r, sandbox.Key{}, ""); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseNow()
	answered := make(chan bool, 1)
	k.queue <- func() { panic("in a request") }
	k.queue <- func() { answered <- true }
	for isConnected := false; !isConnected; {
		k.eachClient(func(*socket.Client) { isConnected = true })
	}
	go k.serve()
	<-answered
	if _, _, err := client.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusInternalError {
		t.Errorf("got %v for the connection, want the close code %d", err, websocket.StatusInternalError)
	}
	if entry := logged.LastEntry(); entry == nil || entry.Data["panic"] != "in a request" {
		t.Errorf("got the log entry %v, want the panic", entry)
	}
}
