// Package egress is the proxy through which a sandbox with network access reaches the hosts of its allowed_hosts, and
// no others:
//
//	network namespace of the sandbox         outside
//	user code ── HTTP proxy ──▶ listener ── Broker ── checked address ──▶ host
//	             127.0.0.1:3128
//
//	broker := egress.New(egress.Config{Hosts: hosts})
//	err := broker.Serve(ctx, listener) // until ctx ends
//
// The network namespace has a loopback interface and no route out. The listener was bound before user code ran and is
// served by Go from outside, so every connection to it comes from that sandbox. User code may send anything: everything
// that the Broker reads is bounded in size and time.
//
// # Responsibilities
//
//  1. HTTP/1.1 forward proxy. CONNECT, which TLS uses, opens a tunnel of opaque bytes. A request with an absolute http
//     URL is forwarded over a connection of its own, so no response can be taken for another's.
//  2. Checks before any contact. A host is compared with allowed_hosts before its name is resolved, so no name server
//     learns a name that is not allowed. The Broker resolves a name once, checks all its addresses, and connects to one
//     of these: a name that resolves to another address a moment later (DNS rebinding) gains nothing. The client
//     follows a redirect with a new request, which is checked as the first was.
//  3. Reasons. A rejection is an HTTP response whose status line has the reason, because Python's libraries show that
//     line; the body has more details.
//  4. Records. Each connection is a flow, which counts bytes. A flow ends when both sides are done, after an idle time,
//     after its maximum duration, when the run has used its bytes, or with the context of Serve. Config.OnEnd gets the
//     record of every flow, rejected ones too.
//
// # Goroutines
//
// Serve owns the listener and the connections from it. net/http runs one goroutine for each connection of a client. A
// tunnel has one more, a forwarded request those of its transport. The end of a flow closes both its sockets. Serve
// returns after all flows have ended and OnEnd has been called for each.
package egress
