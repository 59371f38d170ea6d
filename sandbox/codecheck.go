package sandbox

// CheckResult lists the problems of code that did not run: syntax errors, and code that the
// sandbox's policy refuses.
type CheckResult struct {
	OK       bool          `json:"ok"`
	Problems []CodeProblem `json:"problems"`
	// IsIncomplete tells that the code ends in an open bracket, string or block: a console waits for more lines.
	IsIncomplete bool `json:"incomplete,omitempty"`
}

// CodeProblem is one problem of a CheckResult.
type CodeProblem struct {
	Kind    string `json:"kind"` // "syntax", "policy", or "import" of a module that is not installed
	Line    int    `json:"line"`
	Column  int    `json:"column,omitempty"` // from 1; 0 if it is not known
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Completion lists the possible completions at a cursor. Each match replaces the characters
// from CursorStart to CursorEnd, counted from 0.
type Completion struct {
	Matches     []CompletionMatch `json:"matches"`
	CursorStart int               `json:"cursor_start"`
	CursorEnd   int               `json:"cursor_end"`
}

// CompletionMatch is one match of a Completion.
type CompletionMatch struct {
	Text string `json:"text"`
	Type string `json:"type" doc:"function, class, module, instance, property, param, key, keyword or statement"`
}
