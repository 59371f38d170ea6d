// Package dap speaks the Debug Adapter Protocol with one client at a time for each
// connection, over a debugger's Session.
//
// Serve reads a connection's requests in its caller's goroutine; another answers them, one
// after the other, and a third tells the session's events. All end with the connection,
// which Serve closes. A cancel is answered ahead of its turn: it ends the context of the
// request that it names. A client first sends initialize, then attach with its token and
// what to attach to; until then it is answered nothing else, and may send little, for attachTime; then its connection ends.
package dap
