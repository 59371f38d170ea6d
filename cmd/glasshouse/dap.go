package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"glasshouse/debugger/dap"
)

// maxEditors is how many connections there may be at a time: they come without a key.
const maxEditors = 100

// serveDAP takes clients of the Debug Adapter Protocol until ctx ends, and waits for
// those that are there. at is the address. Only on loopback: a token would cross the network readable.
func serveDAP(ctx context.Context, address string, open dap.Opener, debugf func(string, ...any)) (at net.Addr, wait func(), err error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("--dap-listen %q: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, nil, fmt.Errorf("--dap-listen %s is beyond loopback: editors elsewhere come through a tunnel", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: choose another address with --dap-listen", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	var all sync.WaitGroup
	all.Add(1)
	go func() {
		defer all.Done()
		defer stop()
		places := make(chan struct{}, maxEditors)
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // as when no descriptor is left, which passes
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
				continue
			}
			select {
			case places <- struct{}{}:
			default:
				_ = conn.Close()
				continue
			}
			all.Add(1)
			go func() {
				defer all.Done()
				defer func() { <-places }()
				if err := dap.Serve(ctx, conn, open); err != nil && ctx.Err() == nil {
					debugf("a debugger's client at %s: %v", conn.RemoteAddr(), err)
				}
			}()
		}
	}()
	return listener.Addr(), all.Wait, nil
}
