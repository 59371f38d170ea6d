// Package dap implements the Debug Adapter Protocol (DAP) for a debugger's Session. One table, in requests.go, lists
// all requests with their handlers and the capabilities that announce them. Do executes one request of a session; the
// HTTP API uses the same requests. Serve speaks the protocol with one client over a stream.
//
// Messages use the types of github.com/google/go-dap. Where one of them lacks a field, this package declares its own
// type and says why. The package also has its own framing, because go-dap reads a header of any length into memory, and
// accepts messages of 4 MiB from clients that have not attached.
//
// Serve starts two goroutines besides its caller's: the caller's reads requests, the second executes them one after
// the other, and the third sends the session's events. All end with the stream, which Serve closes. A cancel request
// is executed at once: it ends the context of the request that it names. Until a client has attached with a token, it
// may send only a few small messages. If it does not attach within attachTimeout, the connection ends.
package dap
