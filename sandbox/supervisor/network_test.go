package supervisor

import (
	"errors"
	"fmt"
	"testing"

	"glasshouse/sandbox"
)

// ledger is a desk that keeps what it is told of connections, or does not take it.
type ledger struct {
	RequestHandler
	told map[int64]sandbox.ConnectionStatus
	fail error
}

func (l *ledger) Connection(number int64, c sandbox.Connection) error {
	if l.fail == nil {
		l.told[number] = c.Status
	}
	return l.fail
}

// What was told of while it was open is in the record at the end, whatever ended first; and
// no connection is used that goes where none on record goes.
func TestConnectionsOnRecord(t *testing.T) {
	desk := &ledger{told: map[int64]sandbox.ConnectionStatus{}}
	n := &network{desk: desk, known: map[string]bool{}, ended: make(chan error, 1), stop: func() {}}
	to := func(host string, port int, status sandbox.ConnectionStatus) sandbox.Connection {
		return sandbox.Connection{Host: host, Port: port, Status: status}
	}
	use := func(number int64, c sandbox.Connection) error {
		return errors.Join(n.asked(number, c), n.opened(number, c))
	}
	if err := use(0, to("long.example", 443, sandbox.ConnectionOpen)); err != nil {
		t.Fatal(err)
	}
	for i := range int64(maxConnections + 10) {
		if err := use(i+1, to("a.example", 443, sandbox.ConnectionOpen)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		n.note(i+1, to("a.example", 443, sandbox.ConnectionAllowed))
	}
	for _, c := range []sandbox.Connection{to("b.example", 443, sandbox.ConnectionOpen), to("a.example", 80, sandbox.ConnectionOpen)} {
		if err := n.asked(maxConnections+20, c); !errors.Is(err, errMany) {
			t.Errorf("%s:%d is used off the record: %v", c.Host, c.Port, err)
		}
	}
	n.note(0, to("long.example", 443, sandbox.ConnectionAllowed))
	n.ended <- nil
	e := &sandbox.Execution{Truncated: map[string]int64{}}
	if err := n.close(e); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]int{}
	for _, c := range e.Connections {
		hosts[c.Host]++
	}
	if fmt.Sprint(hosts) != fmt.Sprintf("map[a.example:%d long.example:1]", maxConnections-1) || e.Truncated["connections"] != 11 {
		t.Errorf("kept %v, and %d counted", hosts, e.Truncated["connections"])
	}
	if len(desk.told) != maxConnections || desk.told[0] != sandbox.ConnectionAllowed {
		t.Errorf("told of %d, of the first %s", len(desk.told), desk.told[0])
	}
	if desk.fail = errors.New("no"); !errors.Is(n.opened(5, to("a.example", 443, sandbox.ConnectionOpen)), errUnkept) {
		t.Error("it is used though history has not taken it")
	}
}
