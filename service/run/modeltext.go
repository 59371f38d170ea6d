package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"glasshouse/sandbox"
)

// The text form of an execution has at most DefaultModelTextChars characters unless the caller asks for another
// number, which must be at least MinModelTextChars. The MCP server and the clients' Execution.text use it.
const (
	DefaultModelTextChars = 8000
	MinModelTextChars     = 1000
)

// The maximum numbers of characters of the parts of a model text that are never cut further.
const (
	maxModelError   = 2000 // the error with its traceback, hint and variables
	maxModelOutputs = 1200 // one line for each rich output and artifact
)

// ModelText returns the text of an execution, in words that a language model reads, in about maxChars characters: what
// it printed, its result, its error with a hint, a line for each rich output and artifact, and last the ids and the
// status. A part that is too long keeps its beginning and its end, and says how to read the rest.
func ModelText(e *sandbox.Execution, maxChars int) string {
	maxChars = max(maxChars, MinModelTextChars)
	parts := []*textPart{
		{name: "stdout", text: strings.TrimRight(TerminalText(e.Stdout), "\n")},
		{name: "stderr", title: "stderr:", text: strings.TrimRight(TerminalText(e.Stderr), "\n")},
		{name: "result", title: "result:", text: ModelResult(e)},
		{title: "", text: shortenMiddle(TerminalText(modelError(e)), maxModelError)},
		{title: "", text: shortenMiddle(modelOutputs(e), maxModelOutputs)},
		{text: modelFooter(e)},
	}
	parts = slices.DeleteFunc(parts, func(p *textPart) bool { return p.text == "" })
	fixed := 0
	var flexible []*textPart
	for _, p := range parts {
		if p.name == "" {
			fixed += utf8.RuneCountInString(p.text) + 1
		} else {
			flexible = append(flexible, p)
		}
	}
	shareChars(flexible, max(maxChars-fixed, MinModelTextChars/2), e.ID)
	var lines []string
	for _, p := range parts {
		if p.title != "" {
			p.text = p.title + "\n" + p.text
			if !strings.Contains(p.text[len(p.title)+1:], "\n") {
				p.text = p.title + " " + p.text[len(p.title)+1:]
			}
		}
		lines = append(lines, p.text)
	}
	return strings.Join(lines, "\n")
}

// textPart is a part of a model text. A part with a name may be cut; get_execution reads it by this name.
type textPart struct {
	name, title, text string
}

// shareChars cuts parts so that they have at most maxChars characters together. Short parts stay whole.
func shareChars(parts []*textPart, maxChars int, executionID string) {
	byLength := slices.Clone(parts)
	slices.SortStableFunc(byLength, func(a, b *textPart) int { return len(a.text) - len(b.text) })
	for i, p := range byLength {
		share := maxChars / (len(byLength) - i)
		n := utf8.RuneCountInString(p.text)
		if n > share {
			p.text = CutMiddle(p.text, share, func(head, left int) string {
				return fmt.Sprintf("[%d of %d characters left out; get_execution(execution_id=%q, part=%q, offset=%d)]",
					left, n, executionID, p.name, head)
			})
			n = share
		}
		maxChars -= n
	}
}

// CutMiddle returns the first five and the last three eighths of maxChars characters of a text, and between them, on a
// line of its own, what note returns for the number of characters at the beginning and the number left out. It cuts at
// the ends of lines, unless a line there is long: half a number would be read as a whole one.
func CutMiddle(text string, maxChars int, note func(head, left int) string) string {
	runes := []rune(text)
	if len(runes) <= maxChars {
		return text
	}
	head := maxChars * 5 / 8
	tail := len(runes) - (maxChars - head) // where it begins
	for at := head; at > head*3/4; at-- {
		if runes[at] == '\n' {
			head = at
			break
		}
	}
	for at := tail; at < len(runes)-(len(runes)-tail)*3/4; at++ {
		if runes[at-1] == '\n' {
			tail = at
			break
		}
	}
	return string(runes[:head]) + "\n" + note(head, tail-head) + "\n" + string(runes[tail:])
}

func shortenMiddle(text string, maxChars int) string {
	return CutMiddle(text, maxChars, func(_, left int) string { return fmt.Sprintf("[%d characters left out]", left) })
}

// shortenLine cuts a text in its line, if what is cut is longer than the words that say so.
func shortenLine(text string, maxChars int) string {
	runes := []rune(text)
	if note := fmt.Sprintf("... (%d more characters)", len(runes)-maxChars); len(runes) > maxChars+len(note) {
		return string(runes[:maxChars]) + note
	}
	return text
}

// ModelResult returns the result as text, as a terminal shows it: that of a table or another rich value, a string
// without quotes, the repr of a value that JSON cannot hold, or else JSON. It returns "" for null.
func ModelResult(e *sandbox.Execution) string {
	for _, o := range e.Outputs {
		if o.Role == sandbox.RoleResult {
			var text string
			if json.Unmarshal(o.Data["text/plain"], &text) == nil && text != "" {
				return TerminalText(text)
			}
		}
	}
	return TerminalText(resultText(e.Result))
}

func resultText(result json.RawMessage) string {
	var value any
	if len(result) == 0 || string(result) == "null" || json.Unmarshal(result, &value) != nil {
		return ""
	}
	switch value := value.(type) {
	case string:
		return value
	case map[string]any:
		if repr, ok := value["repr"].(string); ok && len(value) == 2 && value["type"] != nil {
			return repr
		}
	}
	readable := jsontext.Value(bytes.Clone(result))
	// Code escapes all but ASCII. A model reads the characters themselves, and counts each of six.
	if readable.Format(jsontext.PreserveRawStrings(false), jsontext.AllowInvalidUTF8(true)) != nil {
		return string(result)
	}
	return string(readable)
}

// modelError returns the error, the user's lines that led to it, the errors before it, the hint, and the variables of
// the innermost frame.
func modelError(e *sandbox.Execution) string {
	if e.Error == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "error: %s", *e.Error)
	if x := e.Exception; x != nil {
		for _, note := range x.Notes {
			b.WriteString("\n" + note)
		}
		writeFrames(&b, x)
		for n := len(x.Chain) - 1; n >= 0; n-- {
			earlier := &x.Chain[n]
			reason := "while handling"
			if earlier.IsCause {
				reason = "from"
			}
			fmt.Fprintf(&b, "\nraised %s %s", reason, earlier.Text())
			writeFrames(&b, earlier)
		}
		if x.Hint != "" {
			fmt.Fprintf(&b, "\nhint: %s", x.Hint)
		} else if x.Nearest != "" {
			fmt.Fprintf(&b, "\nhint: the most similar name is %q", x.Nearest)
		}
		if n := len(x.Traceback); n > 0 && len(x.Traceback[n-1].Variables) > 0 {
			b.WriteString("\nvariables there:")
			variables := x.Traceback[n-1].Variables
			for _, name := range slices.Sorted(maps.Keys(variables)) {
				fmt.Fprintf(&b, "\n  %s = %s", name, shortenLine(variables[name], 200))
			}
		}
	}
	if e.Status == sandbox.StatusTimeout && e.Kind == sandbox.KindExecute && !e.SessionReset {
		b.WriteString("\nThe session's variables stay. Give it a longer timeout, or less to do.")
	}
	if e.SessionReset {
		b.WriteString("\nThe session's variables are lost; its files in /session stay.")
	}
	return b.String()
}

// writeFrames writes the user's lines that led to an exception.
func writeFrames(b *strings.Builder, x *sandbox.Exception) {
	for _, f := range x.Traceback {
		start := fmt.Sprintf("\n  line %d: ", f.Line)
		if f.Function != "" {
			start = fmt.Sprintf("\n  line %d, in %s: ", f.Line, f.Function)
		}
		indent := "\n" + strings.Repeat(" ", utf8.RuneCountInString(start)-1)
		b.WriteString(start + strings.Join(f.Source(), indent))
	}
	if len(x.Traceback) == 0 && x.Line > 0 {
		fmt.Fprintf(b, "\n  line %d", x.Line)
	}
}

func modelOutputs(e *sandbox.Execution) string {
	var lines []string
	for i, o := range e.Outputs {
		if o.Role != sandbox.RoleResult && !isUpdated(o, e.Outputs[i+1:]) { // the result has its text
			lines = append(lines, fmt.Sprintf("output:%d %s", i+1, o.Summary))
		}
	}
	for _, a := range e.Artifacts {
		lines = append(lines, fmt.Sprintf("artifact: %s (%d bytes, %s, artifact_id=%s)", a.Path, a.Size, a.MIME, a.ID))
	}
	lines = append(lines, e.Notes...)
	if e.Restored != nil {
		lines = append(lines, restoredText(e.Restored))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Truncated)) {
		lines = append(lines, fmt.Sprintf("%s was cut in the sandbox: %d missing for good", name, e.Truncated[name]))
	}
	return strings.Join(lines, "\n")
}

// restoredText says how a session came back.
func restoredText(r *sandbox.Restored) string {
	text := fmt.Sprintf("the session had ended; its %d earlier executions ran again first", r.Executions)
	if r.IsExact {
		text += ", and its variables and files are as they were"
	} else {
		text += ", but some of them ended in another way or were left out: check the variables that you use"
	}
	if len(r.Sources) > 0 {
		text += "; what may be different: " + strings.Join(r.Sources, ", ")
	}
	return text
}

// isUpdated reports whether one of the later outputs has a newer state of an output.
func isUpdated(o sandbox.Output, later []sandbox.Output) bool {
	return o.DisplayID != "" && slices.ContainsFunc(later, func(l sandbox.Output) bool {
		return l.IsUpdate && l.DisplayID == o.DisplayID
	})
}

func modelFooter(e *sandbox.Execution) string {
	session := ""
	if e.Kind == sandbox.KindExecute || e.Kind == sandbox.KindDebug { // the sandbox lives on
		session = "session_id=" + e.SandboxID + " "
	}
	return fmt.Sprintf("%sexecution_id=%s status=%s", session, e.ID, e.Status)
}
