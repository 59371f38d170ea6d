package sandbox

import (
	"encoding/json"
	"time"
)

// InputLog says what history keeps of an execution's inputs, from which it can be replayed.
type InputLog struct {
	Kept  string `json:"kept" enum:"rows,hashes" doc:"rows: with the rows that the code got"`
	Bytes int64  `json:"bytes,omitempty" doc:"Of the answers to the code's requests"`
	// IsStored is false if nothing entered the run but its code, its context and the seed of its randomness.
	IsStored bool `json:"stored,omitempty"`
	// Unlogged lists the sources of differences that the log does not have: "network", "clock", "rows", "requests",
	// "files", "threads", "ended", "seed".
	Unlogged []string `json:"unlogged,omitempty" doc:"What another run may have in another way"`
	IsFirst  bool     `json:"first,omitempty" doc:"It was the first run of its process"`
	// Policy is the policy of a sandbox that existed for this run only, if it was not the default.
	Policy json.RawMessage `json:"policy,omitempty"`
	Scope  *Scope          `json:"scope,omitempty"`
	Base   *Base           `json:"base,omitempty"`
}

// Base is the state that a session had before a time. A session that was forked or rolled back continues from it.
type Base struct {
	SandboxID string    `json:"sandbox_id"`
	Before    time.Time `json:"before"`
}

// ReplayGrade says how a replay compares with its original.
type ReplayGrade string

// The grades.
const (
	ReplayIdentical ReplayGrade = "identical" // output, result, error, outputs, files and statements are equal
	ReplayDiffers   ReplayGrade = "differs"   // at least one of them is another
	ReplayDiverged  ReplayGrade = "diverged"  // the code sent another request than the original
)

// Replay says what a replay was compared with, and how it compares.
type Replay struct {
	Of          string       `json:"of" doc:"The execution that ran again"`
	Grade       ReplayGrade  `json:"grade" enum:"identical,differs,diverged"`
	Differences []Difference `json:"differences,omitempty" doc:"The first twenty"`
	Diverged    *Divergence  `json:"diverged,omitempty"`
	Sources     []string     `json:"sources,omitempty" doc:"What may be another in two equal runs"`
	Rows        string       `json:"rows" enum:"log,now,mixed" doc:"Where the rows came from; mixed: the log and now"`
	IsEdited    bool         `json:"edited,omitempty" doc:"The caller gave other code or other rows"`
	Environment string       `json:"environment,omitempty" doc:"The name of the one that the caller chose"`
	Restored    *Restored    `json:"restored,omitempty" doc:"The earlier executions of the session, which ran first"`
	// StatementsNow has at most 100 numbers, and only if Rows is mixed.
	StatementsNow []int `json:"statements_now,omitempty" doc:"Of mixed rows: those that the database answered now"`
}

// Difference is a part of an execution that is another in a replay.
type Difference struct {
	Part     string `json:"part" doc:"Such as stdout, result, error, outputs[0].text/html"`
	Line     int    `json:"line,omitempty" doc:"Of a text: the first line that differs, from 1"`
	Original string `json:"original"`
	Replay   string `json:"replay"`
}

// Divergence is the first request of a replay that the original did not send.
type Divergence struct {
	Request  int    `json:"request" doc:"Its number, from 1"`
	Original string `json:"original,omitempty" doc:"What the original asked; empty: it asked no more"`
	Replay   string `json:"replay"`
}

// Restored says how earlier executions of a session were run again.
type Restored struct {
	Executions int      `json:"executions"`
	Left       int      `json:"left_out,omitempty" doc:"Executions that were ended by a limit, and did not run again"`
	CPUMS      float64  `json:"cpu_ms"`
	Sources    []string `json:"sources,omitempty" doc:"What they may have in another way than at first"`
	IsExact    bool     `json:"exact" doc:"Each ended as it did at first"`
}
