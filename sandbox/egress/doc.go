// Package egress is the broker through which a sandbox with the network
// switched on reaches the hosts of its allowed_hosts, and nothing else does.
//
//	inside, a network of its own          outside
//	user code ── HTTP proxy ──▶ listener ── Broker ── checked address ──▶ host
//	             127.0.0.1:3128
//
// The sandbox's network namespace has a loopback and no way out. The one listener
// in it was bound before user code was there and is served by Go from outside, so
// whoever connects is that sandbox, and the Broker needs no other proof. User code
// can say anything to it: all that is read is bounded in size and time.
//
// The Broker is an HTTP/1.1 forward proxy. CONNECT, which TLS takes, becomes a
// tunnel of bytes that are not looked into; a request with an absolute http URL is
// sent on over a connection of its own, so no answer can be taken for another's.
// A host is checked against the list before its name is looked up, so no name server
// hears of a name that is not allowed. The Broker itself resolves a name, once,
// checks every address of the answer, and connects to one of exactly these: a name that
// resolves to something else a moment later (rebinding) gains nothing. A redirect is the
// client's to follow, and comes back here as a new request.
//
// A no is an HTTP answer whose status line says why, because that line is what
// Python's libraries show of a proxy's refusal; the body says it at more length.
//
// Serve owns the listener and everything accepted from it. For each connection
// from inside net/http runs one goroutine; a tunnel has one more, a plain request those
// of its transport. Each brokered connection is a flow: it counts bytes and is ended
// by the first of both ends done, idleness, its whole time, the bytes of the broker,
// or the end of Serve's context; ending closes both its sockets. Serve returns when
// every flow has ended and has been logged.
package egress
