package sandbox

import (
	"encoding/json"
	"time"
)

// Outcome is how one run of code ended, as the supervisor found it out: the status, the
// usage and the error come from the clock and the kernel, not from the code. The service
// makes an Execution of it.
type Outcome struct {
	Status    Status
	Result    json.RawMessage // any JSON; null if there is none
	Stdout    string          // valid UTF-8, cut in its middle at max_output_size
	Stderr    string          // likewise
	Error     *string         // "TypeError: ...", or the limit that ended the run
	Exception *Exception

	Duration     time.Duration // wall-clock time, without the time in which a debugger held the program
	Usage        Usage
	DebugInfo    DebugInfo
	Outputs      []Output
	Connections  []Connection
	Truncated    map[string]int64 // what was cut; see Execution.Truncated
	Isolation    Isolation
	Environment  *EnvironmentVersion
	SessionReset bool // the process ended, and the session's variables with it
}
