// Package supervisor is the trusted side of a sandbox. It runs code in a guest process and
// determines how each run ended.
//
//	s := supervisor.New(isolator, queueTimeout)
//	session, err := s.Open(ctx, sandbox, "")
//	outcome, err := session.Run(ctx, executionID, sandbox.Request{Code: "1 + 1"}, supervisor.Callbacks{})
//	files, missed, err := session.CollectArtifacts(store)
//	session.Close()
//
// A Session is one sandbox's Python: at most one guest process, which keeps the variables
// between runs, and the files of /session and /data. The caller runs one thing at a time
// in it. The package has these responsibilities:
//
//  1. Start a guest when there is none, and freeze it between runs (session.go).
//  2. Send the code, and read the guest's frames until its outcome comes. The calling
//     goroutine does it. Each frame is bounded and checked, because the user's code can
//     forge any of them (run.go, loop.go, answer.go).
//  3. End a run at its deadline or on cancellation: interrupt it, and kill it after a
//     short time (watchdog.go). Killing the process also ends the reading of frames.
//  4. Keep the program's output. Output waits in the pipes; if a run takes longer, a
//     goroutine for each pipe copies it (output.go).
//  5. Read the records of a debugged run from memory that the guest shares (pump.go, ring.go).
//  6. Serve the guest's network listener with an egress broker (network.go).
//  7. Collect the artifacts of a run, and keep uploads within their limits (collect.go,
//     uploads.go).
//  8. Answer questions about variables and code between runs (inspect.go).
//
// All goroutines, connections and timers of a run end with it. Between runs the guest is
// frozen and executes no code.
package supervisor
