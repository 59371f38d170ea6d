package sandbox

import (
	"encoding/json"
	"time"
)

// Outcome says how one run of code ended. The supervisor takes the status, the usage and the
// error from the clock and the kernel, not from the code. The service makes an Execution of
// the Outcome.
type Outcome struct {
	Status    Status
	Result    json.RawMessage // any JSON; null if there is none
	Stdout    string          // valid UTF-8, cut in its middle at max_output_size
	Stderr    string          // in the same form as Stdout
	Error     *string         // "TypeError: ...", or the limit that ended the run
	Exception *Exception

	Start        *GuestStart   // of the guest, if no earlier run had it
	Began        time.Time     // when the guest got the code; zero if it did not
	Duration     time.Duration // wall-clock time, without the time that the program was stopped in a debugger
	CompileTime  time.Duration // to compile and check the code, as the guest claims; part of Duration
	Usage        Usage
	DebugInfo    DebugInfo
	Outputs      []Output
	Connections  []Connection
	Truncated    map[string]int64 // what was cut; see Execution.Truncated
	Isolation    Isolation
	Environment  *EnvironmentVersion
	SessionReset bool // the process ended, and the session's variables with it
}

// GuestStart says how long a guest took to start.
type GuestStart struct {
	At       time.Time
	Took     time.Duration
	FromPool bool // it was waiting; otherwise it was forked for this sandbox
}
