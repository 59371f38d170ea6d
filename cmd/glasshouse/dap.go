package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"glasshouse/debugger/dap"
	"glasshouse/policy/limit"
)

// maxEditors bounds the concurrent DAP connections, since they need no key to connect.
const maxEditors = 100

// acceptRetryInterval is the pause after a failed Accept, which fails while no file descriptor is free.
const acceptRetryInterval = 100 * time.Millisecond

// serveDAP serves clients of the Debug Adapter Protocol until ctx ends. It returns the address and a
// function that waits until all connections are closed. Addresses beyond loopback are refused: the token of
// a client would cross the network in clear text.
func serveDAP(
	ctx context.Context, address string, open dap.Opener, debugf func(string, ...any),
) (net.Addr, func(), error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, nil, fmt.Errorf("--dap-listen %q: %w", address, err)
	}
	if !isLoopback(address) {
		return nil, nil, fmt.Errorf(
			"--dap-listen %s is beyond loopback: use a loopback address, and a tunnel for editors elsewhere",
			address,
		)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: choose another address with --dap-listen", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	var connections sync.WaitGroup
	connections.Go(func() {
		defer stop()
		slots := limit.NewSlots(maxEditors)
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				select {
				case <-ctx.Done():
				case <-time.After(acceptRetryInterval):
				}
				continue
			}
			release, err := slots.Acquire(ctx, 0)
			if err != nil {
				_ = conn.Close()
				continue
			}
			connections.Go(func() {
				defer release()
				if err := dap.Serve(ctx, conn, open); err != nil && ctx.Err() == nil {
					debugf("DAP client %s: %v", conn.RemoteAddr(), err)
				}
			})
		}
	})
	return listener.Addr(), connections.Wait, nil
}
