// Package host is the trusted end of the hatch. A Session is one sandbox's live
// Python: at most one child behind the wall, one run at a time, one deadline a
// run. What the child says is bounded and checked here; how a run ended comes
// from the clock and from the kernel.
//
// For each run two goroutines copy stdout and stderr into tapes, one reads the
// hatch, and the caller's own waits for the first of: outcome, exit, deadline,
// cancel. They all end with the run: between runs the child is frozen, and
// nothing of it executes.
package host
