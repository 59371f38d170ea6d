// Package egress is the proxy through which a sandbox with network access reaches the hosts in its allowed_hosts. The
// sandbox reaches no other host:
//
//	network namespace of the sandbox         outside
//	user code ── HTTP proxy ──▶ listener ── Broker ── checked address ──▶ host
//	             127.0.0.1:3128
//
//	broker := egress.New(egress.Config{Hosts: hosts})
//	err := broker.Serve(ctx, listener) // until ctx ends
//
// The network namespace has a loopback interface and no route out. The listener was bound before user code ran, and the
// service accepts its connections outside the sandbox, so every connection to the listener comes from that sandbox.
// User code may send any bytes, so all reads of the Broker are bounded in size and time.
//
// # Responsibilities
//
//  1. HTTP/1.1 forward proxy. CONNECT, which TLS uses, opens a tunnel of opaque bytes. A request with an absolute http
//     URL is forwarded over its own connection, so no response can be mistaken for the response to another request.
//  2. Checks before any contact. A host is compared with allowed_hosts before its name is resolved, so no name server
//     learns a name that is not allowed. The Broker resolves a name once, checks all its addresses, and connects to one
//     of these. So a name that resolves to another address a moment later (DNS rebinding) does not reach that address.
//     The client follows a redirect with a new request, which is checked in the same way.
//  3. Reasons. A rejection is an HTTP response whose status line has the reason, because Python's libraries show that
//     line; the body has more details.
//  4. Records. Each connection is a flow, which counts bytes. A flow ends when both sides are done, after an idle time,
//     after its maximum duration, when the run has used its bytes, or with the context of Serve. Config.OnEnd gets the
//     record of every flow, rejected ones too.
//
// # Goroutines
//
// Serve owns the listener and its connections. net/http runs one goroutine for each connection of a client. A tunnel
// has one more goroutine, and a forwarded request has the goroutines of its http.Transport. The end of a flow closes
// both its sockets. Serve returns after all flows have ended and OnEnd has been called for each.
package egress
