package nemo

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"glasshouse/service/compat"
)

// The NeMo Agent Toolkit sends the requests of a Piston server since version 1.9: POST /api/v2/execute with the code as
// a file. Its answer has the output and an exit status.

// pistonAnswer is the body of an answer to such a request. Message is the error of a request that was not run; the
// client reads the run even then.
type pistonAnswer struct {
	Language string           `json:"language"`
	Version  string           `json:"version"`
	Message  string           `json:"message,omitempty"`
	Run      compat.PistonRun `json:"run"`
}

// isPiston reports whether a body is a request of a client of Piston.
func isPiston(body map[string]json.RawMessage) bool {
	return body["files"] != nil && body["generated_code"] == nil
}

// parsePiston parses such a request. It returns FaultMalformed.
func parsePiston(raw []byte) (in request, err error) {
	var body struct {
		Language string `json:"language"`
		Files    []struct {
			Content string `json:"content"`
		} `json:"files"`
		RunTimeout float64 `json:"run_timeout"` // milliseconds
	}
	in.isPiston, in.maxOutputChars = true, math.MaxInt // the client cuts its output itself
	if json.Unmarshal(raw, &body) != nil || len(body.Files) == 0 {
		return in, malformed("Invalid field: files must be a list of files with content, and run_timeout a number")
	}
	if len(body.Files) > 1 {
		return in, malformed("Only one file can be run; write it so that it needs no other")
	}
	if !isPython(body.Language) {
		return in, malformed("Only python execution is supported")
	}
	in.code, in.timeout = body.Files[0].Content, maxTimeout
	if body.RunTimeout > 0 {
		milliseconds := math.Min(body.RunTimeout, float64(maxTimeout.Milliseconds()))
		in.timeout = max(time.Duration(milliseconds*float64(time.Millisecond)), 1)
	}
	return in, nil
}

// newPistonAnswer answers such a request. problem is the message of a request that was not run.
func newPistonAnswer(out answer, problem string) pistonAnswer {
	a := pistonAnswer{Language: "python", Version: "3", Message: problem}
	a.Run = compat.PistonRun{Stdout: out.Stdout, Stderr: out.Stderr, Output: out.Stdout + out.Stderr}
	if out.Status != "completed" {
		a.Run.Code = 1
	}
	if out.Status == "timeout" {
		a.Run.Signal = new("SIGKILL")
	}
	return a
}

func isPython(language string) bool {
	switch strings.ToLower(language) {
	case "", "python", "python3", "py":
		return true
	}
	return false
}
