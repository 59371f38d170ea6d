// Package debugger steps through a debugged run, forward and back, while the run goes on or later.
//
// A Recording holds the stream of the recorder in the guest, and answers questions about any step: the state, the last
// change of a variable, where a move stops, and why the run failed (Explain). A Session is a client's position in one
// Recording. At the live position it drives the program, which has stopped there; at any other step it reads the
// recording. Breakpoints are checked in the guest while the program runs, and in the recording when a session moves
// through the past.
//
// The package starts no goroutine and does no I/O. The goroutine of the run calls Session.Begin, Stopped and Ended;
// while the program is stopped, this goroutine executes the commands of the session's clients.
//
// Package dap translates the Debug Adapter Protocol and the HTTP API to methods of Session. Package recording has the
// format of recordings, and package expr the conditions that are evaluated over recorded states.
package debugger
