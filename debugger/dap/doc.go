// Package dap is the Debug Adapter Protocol (DAP) of a debugger's Session. One table, in requests.go, lists all
// requests with their handlers and the capabilities that announce them. Do executes one request of a session; the
// HTTP API uses the same requests. Serve speaks the protocol with one client over a stream.
//
// Messages use the types of github.com/google/go-dap, except where they cannot express what is needed; such types say
// why. The framing is our own, because that of go-dap reads a header of any length into memory, and accepts messages of
// 4 MiB from clients that have not shown a key.
//
// Serve starts two goroutines besides its caller's: the caller's reads requests, the second executes them one after
// the other, and the third sends the session's events. All end with the stream, which Serve closes. A cancel request
// does not wait for its turn: it ends the context of the request that it names. Before it has attached with a token,
// a client may send only a few requests, in small messages, and for attachTimeout; then the connection ends.
package dap
