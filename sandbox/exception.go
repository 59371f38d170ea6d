package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Exception is an exception that the code raised. Its traceback has only the user's lines. The last frame of a syntax
// error is the place that Python could not parse.
type Exception struct {
	Type      string   `json:"type"`
	Message   string   `json:"message"`
	Notes     []string `json:"notes,omitempty"`  // that add_note has added
	Line      int      `json:"line"`             // in the submitted code, from 1; 0 if it is not known
	Column    int      `json:"column,omitempty"` // from 1, for a syntax error
	Traceback []Frame  `json:"traceback"`        // outermost first
	Hint      string   `json:"hint,omitempty"`
	Nearest   string   `json:"nearest,omitempty"` // the name, key or column that was probably meant
	Queries   []Query  `json:"queries,omitempty"` // the last statements before the exception, from the service's record

	// Chain has the exceptions that led to this one, in the order in which they were raised. They have no chain, hint,
	// nearest name or statements.
	Chain []Exception `json:"chain,omitempty"`
	// IsCause tells of an exception in a chain that the next one was raised from it. Otherwise the next one was raised
	// while this one was handled.
	IsCause bool `json:"is_cause,omitempty"`
}

// Summary returns the type and the message in the form of the last line of a Python traceback.
func (x *Exception) Summary() string {
	if x.Message == "" {
		return x.Type
	}
	return x.Type + ": " + x.Message
}

// Text returns the summary and the notes, in the form of the last lines of a Python traceback.
func (x *Exception) Text() string {
	return strings.Join(append([]string{x.Summary()}, x.Notes...), "\n")
}

// TracebackText returns the exception as Python prints it, after those that led to it, and its hint. file is the name
// of the submitted code. The text begins with "Traceback" also for a syntax error: clients recognise a failure by this
// word.
func (x *Exception) TracebackText(file string) string {
	var b strings.Builder
	for n := range x.Chain {
		x.Chain[n].writeTraceback(&b, file)
		if x.Chain[n].IsCause {
			b.WriteString("\nThe above exception was the direct cause of the following exception:\n\n")
		} else {
			b.WriteString("\nDuring handling of the above exception, another exception occurred:\n\n")
		}
	}
	x.writeTraceback(&b, file)
	if x.Hint != "" {
		b.WriteString("Hint: " + x.Hint + "\n")
	}
	return b.String()
}

// writeTraceback writes one exception.
func (x *Exception) writeTraceback(b *strings.Builder, file string) {
	if len(x.Traceback) > 0 || x.Line > 0 {
		b.WriteString("Traceback (most recent call last):\n")
	}
	for _, f := range x.Traceback {
		fmt.Fprintf(b, "  File %q, line %d", cmp.Or(f.File, file), f.Line)
		if f.Function != "" {
			b.WriteString(", in " + f.Function)
		}
		b.WriteString("\n")
		for _, line := range f.Source() {
			b.WriteString("    " + line + "\n")
		}
	}
	if len(x.Traceback) == 0 && x.Line > 0 {
		fmt.Fprintf(b, "  File %q, line %d\n", file, x.Line)
	}
	b.WriteString(x.Text() + "\n")
}

// EndText returns what Python would print about the end of an execution, with file as the name of its code: a
// traceback, or the limit that ended it; nothing if it completed or called sys.exit, whose message is in Stderr.
func (e *Execution) EndText(file string) string {
	switch {
	case e.Status == StatusFailed && e.Exception != nil:
		if e.Exception.Type == "SystemExit" {
			return ""
		}
		return e.Exception.TracebackText(file)
	case e.Status == StatusCompleted || e.Error == nil:
		return ""
	}
	return *e.Error + "\n"
}

// ExitCode returns the exit status that a process would have that ended as the execution did.
func (e *Execution) ExitCode() int {
	if e.Status == StatusCompleted {
		return 0
	}
	if e.Exception != nil && e.Exception.Type == "SystemExit" {
		if code, err := strconv.Atoi(e.Exception.Message); err == nil && code&0xff != 0 {
			return code & 0xff
		}
	}
	return 1
}

// Frame is one of the user's own frames in a traceback.
type Frame struct {
	Line     int    `json:"line"`
	Function string `json:"function"` // "" for the place of a syntax error
	Code     string `json:"code"`
	Column   int    `json:"column,omitempty"` // in Code, from 1, of a syntax error
	File     string `json:"file,omitempty"`   // "" for the submitted code

	// Variables has previews at the time of the exception. Only the innermost frames have them.
	Variables map[string]string `json:"variables,omitempty"`
}

// Source returns the code of a frame, if it is known, and below the place of a syntax error a line with a caret.
func (f Frame) Source() []string {
	if f.Code == "" {
		return nil
	}
	lines := []string{f.Code}
	if runes := []rune(f.Code); f.Column > 0 && f.Column <= len(runes)+1 {
		before := slices.Clone(runes[:f.Column-1])
		for n, r := range before {
			if r != '\t' {
				before[n] = ' '
			}
		}
		lines = append(lines, string(before)+"^")
	}
	return lines
}
