// Package supervisor is the trusted end of the hatch. A Session is one sandbox's live
// Python: at most one child behind the wall, one run at a time, one deadline a
// run. What the child says is bounded and checked here; how a run ended comes
// from the clock and from the kernel.
//
// A run is read from its hatch by the caller's own goroutine. Two timers, for the
// deadline and for a cancel, interrupt the child and then kill it, which ends the
// reading. Output waits in the pipes; only where a run lasts does a goroutine for
// each pipe copy it into a tape. What the recorder of a debugged run writes is in memory that
// the child shares, a ring; a goroutine looks there now and then. Where the sandbox has the network on, a broker (package
// egress) serves the child's listener. All of it ends with the run: between runs the child
// is frozen, nothing of it executes, and no connection is open.
package supervisor
