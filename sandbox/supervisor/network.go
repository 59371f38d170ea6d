package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
)

// maxConnections is how many connections one execution records; more are counted.
const maxConnections = 1000

// runNetwork is the network of one run: an egress broker on the listener in the guest's
// network namespace. It ends with the run and then closes every connection, so each
// connection belongs to exactly one execution, and its record is complete.
type runNetwork struct {
	cancel   context.CancelFunc
	ended    chan error
	recorder Recorder                 // nil: connections are not recorded while they are open
	notify   func(sandbox.Connection) // called when a connection has ended; nil: not

	mu           sync.Mutex
	connections  []sandbox.Connection // connections that have ended
	destinations map[string]bool      // of the recorded connections, as "host port"
	unrecorded   int64                // connections beyond maxConnections
	sent         int64                // bytes
	received     int64                // bytes
}

// openNetwork starts the broker of one run; it returns nil if the guest has no network.
func (s *Supervisor) openNetwork(socket *os.File, allowedHosts []string, recorder Recorder) (*runNetwork, error) {
	if socket == nil {
		return nil, nil
	}
	config := s.Network
	var err error
	if config.Hosts, err = policy.ParseHosts(allowedHosts); err != nil {
		return nil, err
	}
	listener, err := net.FileListener(socket) // a duplicate: the next run needs the socket too
	if err != nil {
		return nil, fmt.Errorf("open the sandbox's network listener: %w", err)
	}
	n := &runNetwork{
		ended: make(chan error, 1), recorder: recorder, notify: s.ConnectionEnded, destinations: map[string]bool{},
	}
	config.OnRequest, config.OnConnect, config.OnEnd = n.admit, n.opened, n.closed
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	go func() { n.ended <- egress.New(config).Serve(ctx, listener) }()
	return n, nil
}

// User code sees these errors. Each is one line.
var (
	errNotRecorded = errors.New(
		"history cannot record the connection, and connections without a record are not allowed; try again later",
	)
	errTooManyDestinations = fmt.Errorf(
		"this run has made %d connections; more are allowed only to hosts and ports that it has connected to",
		maxConnections,
	)
)

// admit returns an error if the connection must not be made. Connections beyond
// maxConnections are allowed only to recorded destinations, so history has every host.
func (n *runNetwork) admit(number int64, c sandbox.Connection) error {
	destination := fmt.Sprint(c.Host, " ", c.Port)
	n.mu.Lock()
	defer n.mu.Unlock()
	if number < maxConnections {
		n.destinations[destination] = true
	}
	if !n.destinations[destination] {
		return errTooManyDestinations
	}
	return nil
}

// opened records a connection before any byte passes.
func (n *runNetwork) opened(number int64, c sandbox.Connection) error {
	if number < maxConnections && n.record(number, c) != nil {
		return errNotRecorded
	}
	return nil
}

func (n *runNetwork) record(number int64, c sandbox.Connection) error {
	if n.recorder == nil {
		return nil
	}
	return n.recorder.Connection(number, c)
}

// closed records how a connection ended.
func (n *runNetwork) closed(number int64, c sandbox.Connection) {
	if n.notify != nil {
		n.notify(c)
	}
	n.mu.Lock()
	n.sent += c.BytesSent
	n.received += c.BytesReceived
	isRecorded := number < maxConnections
	if isRecorded {
		n.connections = append(n.connections, c)
	} else {
		n.unrecorded++
	}
	n.mu.Unlock()
	if isRecorded {
		_ = n.record(number, c) // if it fails, the execution's record at the end of the run has the connection
	}
}

// close ends every connection and adds them to the outcome.
func (n *runNetwork) close(o *sandbox.Outcome) error {
	if n == nil {
		return nil
	}
	n.cancel()
	if err := <-n.ended; err != nil {
		return fmt.Errorf("the sandbox's network: %w", err)
	}
	slices.SortStableFunc(n.connections, func(a, b sandbox.Connection) int { return a.StartedAt.Compare(b.StartedAt) })
	o.Connections = append(o.Connections, n.connections...)
	o.Usage.NetworkSent, o.Usage.NetworkReceived = n.sent, n.received
	if n.unrecorded > 0 {
		o.Truncated["connections"] += n.unrecorded
	}
	return nil
}
