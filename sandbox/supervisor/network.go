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

const maxConnections = 1000 // kept with one execution; more are counted

// network is the way out of one run: a broker at the listener of its child's own
// network. It ends with the run, and ends every connection, so each belongs to
// exactly one execution, whose record of it is complete.
type network struct {
	stop  context.CancelFunc
	ended chan error
	desk  RequestHandler

	mu       sync.Mutex
	seen     []sandbox.Connection
	known    map[string]bool // where the kept ones were to go
	more     int64
	sent     int64
	received int64
}

// open starts the broker of one run; nil where the child has no network.
func (h *Supervisor) open(socket *os.File, allowed []string, desk RequestHandler) (*network, error) {
	if socket == nil {
		return nil, nil
	}
	config := h.Network
	var err error
	if config.Hosts, err = policy.ParseHosts(allowed); err != nil {
		return nil, err
	}
	listener, err := net.FileListener(socket) // a descriptor of its own: the next run has the same socket
	if err != nil {
		return nil, fmt.Errorf("the sandbox's listener: %w", err)
	}
	n := &network{ended: make(chan error, 1), desk: desk, known: map[string]bool{}}
	config.OnRequest, config.OnConnect, config.OnEnd = n.asked, n.opened, n.note
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	go func() { n.ended <- egress.New(config).Serve(ctx, listener) }()
	return n, nil
}

// asked says whether a connection may be made: of those that are counted, and not kept, none
// goes where no kept one was to go, so that history has every host.
func (n *network) asked(number int64, c sandbox.Connection) error {
	place := fmt.Sprint(c.Host, " ", c.Port)
	n.mu.Lock()
	defer n.mu.Unlock()
	if number < maxConnections {
		n.known[place] = true
	}
	if !n.known[place] {
		return errMany
	}
	return nil
}

// opened tells of a connection that is to be used now.
func (n *network) opened(number int64, c sandbox.Connection) error {
	if number < maxConnections && n.desk.Connection(number, c) != nil {
		return errUnkept
	}
	return nil
}

// These are told to the code, in one line.
var (
	errUnkept = errors.New("history does not take it, and nothing runs without history; try again soon")
	errMany   = fmt.Errorf("this run has asked for %d connections already, and not for one to there", maxConnections)
)

// note keeps what a connection came to.
func (n *network) note(number int64, c sandbox.Connection) {
	n.mu.Lock()
	n.sent += c.BytesSent
	n.received += c.BytesReceived
	kept := number < maxConnections
	if kept {
		n.seen = append(n.seen, c)
	} else {
		n.more++
	}
	n.mu.Unlock()
	if kept {
		_ = n.desk.Connection(number, c) // the execution has it at its end
	}
}

// close ends every connection and writes them all into the execution.
func (n *network) close(e *sandbox.Execution) error {
	if n == nil {
		return nil
	}
	n.stop()
	if err := <-n.ended; err != nil {
		return fmt.Errorf("the sandbox's network: %w", err)
	}
	slices.SortStableFunc(n.seen, func(a, b sandbox.Connection) int { return a.StartedAt.Compare(b.StartedAt) })
	e.Connections = append(e.Connections, n.seen...)
	e.Usage.NetworkSent, e.Usage.NetworkReceived = n.sent, n.received
	if n.more > 0 {
		cut(e, "connections", n.more)
	}
	return nil
}
