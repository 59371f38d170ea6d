// Package dap speaks the Debug Adapter Protocol with one client at a time for each
// connection, over a debugger's Session.
//
// Serve reads a connection's requests in its caller's goroutine, one after the other, and
// has one goroutine more that tells the session's events. Both end with the connection,
// which Serve closes. A client first sends initialize, then attach with its token and
// what to attach to; until then it is answered nothing else.
package dap
