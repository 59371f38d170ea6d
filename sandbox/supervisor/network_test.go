package supervisor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"glasshouse/sandbox"
)

// connectionRecorder keeps the last status of each connection, or fails.
type connectionRecorder struct {
	statuses map[int64]sandbox.ConnectionStatus
	err      error
}

func (r *connectionRecorder) Show(_ context.Context, o sandbox.Output) sandbox.Output { return o }

func (r *connectionRecorder) Connection(number int64, c sandbox.Connection) error {
	if r.err == nil {
		r.statuses[number] = c.Status
	}
	return r.err
}

// The outcome has each connection that was recorded while it was open, in whatever order
// connections end. Each connection goes to a host and port of a recorded connection.
func TestEveryDestinationIsRecorded(t *testing.T) {
	t.Parallel()
	recorder := &connectionRecorder{statuses: map[int64]sandbox.ConnectionStatus{}}
	n := &runNetwork{recorder: recorder, destinations: map[string]bool{}, ended: make(chan error, 1), cancel: func() {}}
	to := func(host string, port int, status sandbox.ConnectionStatus) sandbox.Connection {
		return sandbox.Connection{Host: host, Port: port, Status: status}
	}
	connect := func(number int64, c sandbox.Connection) error {
		return errors.Join(n.admit(number, c), n.opened(number, c))
	}
	if err := connect(0, to("long.example", 443, sandbox.ConnectionOpen)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(maxConnections + 10) {
		if err := connect(i+1, to("a.example", 443, sandbox.ConnectionOpen)); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		n.closed(i+1, to("a.example", 443, sandbox.ConnectionAllowed))
	}
	for _, c := range []sandbox.Connection{to("b.example", 443, sandbox.ConnectionOpen), to("a.example", 80, sandbox.ConnectionOpen)} {
		if err := n.admit(maxConnections+20, c); !errors.Is(err, errTooManyDestinations) {
			t.Errorf("%s:%d: got error %v, want %v", c.Host, c.Port, err, errTooManyDestinations)
		}
	}
	n.closed(0, to("long.example", 443, sandbox.ConnectionAllowed))
	n.ended <- nil
	o := &sandbox.Outcome{Truncated: map[string]int64{}}
	if err := n.close(o); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]int{}
	for _, c := range o.Connections {
		hosts[c.Host]++
	}
	if got, want := fmt.Sprint(hosts), fmt.Sprintf("map[a.example:%d long.example:1]", maxConnections-1); got != want {
		t.Errorf("got connections %s, want %s", got, want)
	}
	if got, want := o.Truncated["connections"], int64(11); got != want {
		t.Errorf("got %d connections that are only counted, want %d", got, want)
	}
	if got := len(recorder.statuses); got != maxConnections || recorder.statuses[0] != sandbox.ConnectionAllowed {
		t.Errorf(
			"got %d recorded connections, the first %s; want %d, %s",
			got,
			recorder.statuses[0],
			maxConnections,
			sandbox.ConnectionAllowed,
		)
	}
	recorder.err = errors.New("history is full")
	if err := n.opened(5, to("a.example", 443, sandbox.ConnectionOpen)); !errors.Is(err, errNotRecorded) {
		t.Errorf("history does not record the connection: got error %v, want %v", err, errNotRecorded)
	}
}
