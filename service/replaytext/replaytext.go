// Package replaytext describes the replay of an execution in words, for people and for language models.
package replaytext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// sources says what each source of differences means.
var sources = map[string]string{
	run.SourceClock:       "readings of clocks that the log does not have",
	run.SourceDatabase:    "rows as they are in the database now",
	run.SourceDebugger:    "changes that a person made in the debugger",
	run.SourceEdits:       "an edit was not used: the code did not send that statement as the original did",
	run.SourceEnded:       "a limit or a caller ended the original",
	run.SourceEnvironment: "other packages, or another Python",
	run.SourceFiles:       "files of the session that its code did not write",
	run.SourceNetwork:     "the original had a network and randomness of its own; a replay has no network",
	run.SourceRights:      "answers of a database that the caller or the owner may no longer read",
	run.SourceRows:        "answers that were too large for the log",
	run.SourceThreads:     "the order of threads, and their clocks and randomness",
	run.SourceUnknown:     "something that the log does not have, such as the number of the process's user",
	run.SourceSession:     "earlier executions of the session that did not run again in the same way",
}

// Describe returns what an execution that is a replay says about its original, in lines without control characters of
// the code: the grade, with the error if both failed, what differs, what may differ without a change of the code, and
// the executions that ran before.
func Describe(e *sandbox.Execution) string {
	r := e.Replay
	lines := []string{summary(r) + bothFailed(e)}
	for _, d := range r.Differences {
		lines = append(lines, pair(placeOf(&d), d.Original, d.Replay)...)
	}
	if d := r.Diverged; d != nil {
		place := fmt.Sprintf("request %d of the code", d.Request)
		lines = append(lines, pair(place, orNoMore(d.Original), d.Replay)...)
	}
	if list := describeSources(r.Sources); len(list) > 0 {
		lines = append(lines, "What may differ although the code is the same:")
		lines = append(lines, list...)
	}
	if r.Restored != nil {
		lines = append(lines, restored(r.Restored)...)
	}
	return strings.Join(lines, "\n")
}

// maxLineChars is the maximum number of characters of each text in the line of FirstDifference.
const maxLineChars = 60

// FirstDifference returns what differs first in a replay, on one line; "" if it is identical. It prefers what the code
// did to rows that are others now.
func FirstDifference(r *sandbox.Replay) string {
	if d := r.Diverged; d != nil {
		return fmt.Sprintf("request %d: %s -> %s", d.Request, short(orNoMore(d.Original)), short(d.Replay))
	}
	if r.Grade == sandbox.ReplayIdentical {
		return ""
	}
	if len(r.Differences) == 0 {
		return fewerRequests
	}
	first := max(0, slices.IndexFunc(r.Differences, func(d sandbox.Difference) bool {
		return !strings.HasPrefix(d.Part, "statements[")
	}))
	d := r.Differences[first]
	text := fmt.Sprintf("%s: %s -> %s", placeOf(&d), short(d.Original), short(d.Replay))
	if more := len(r.Differences) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// short returns the beginning of a text on one line.
func short(text string) string { return cut(orEmpty(text), maxLineChars) }

// cut returns the first characters of a text, at most limit.
func cut(text string, limit int) string {
	chars := []rune(text)
	if len(chars) > limit {
		chars = append(chars[:limit-3], '.', '.', '.')
	}
	return string(chars)
}

// maxErrorChars is the maximum number of characters of the error in the first line of a description.
const maxErrorChars = 200

// maxStatements is the maximum number of statements that the first line of a description names.
const maxStatements = 20

const fewerRequests = "the code sent fewer requests than the original"

// placeOf returns the part that differs, with its line.
func placeOf(d *sandbox.Difference) string {
	if d.Line > 0 {
		return fmt.Sprintf("%s, line %d", printable(d.Part), d.Line)
	}
	return printable(d.Part)
}

func orNoMore(request string) string {
	if request == "" {
		return "(no more requests)"
	}
	return request
}

// summary returns the line with the grade.
func summary(r *sandbox.Replay) string {
	text := ""
	switch r.Grade {
	case sandbox.ReplayIdentical:
		text = "identical: the same output, result, error, files and statements"
	case sandbox.ReplayDiverged:
		text = "diverged: the code sent another request than the original, and got no answer"
	default:
		text = "differs: not all is as in the original"
		if len(r.Differences) == 0 {
			text = "differs: " + fewerRequests
		}
	}
	rows := map[string]string{"now": "the rows of now", "mixed": "some rows of now" + statements(r)}[r.Rows]
	switch {
	case r.IsEdited && rows != "":
		text += " (with other code or rows, and " + rows + ")"
	case r.IsEdited:
		text += " (with other code or rows)"
	case rows != "":
		text += " (with " + rows + ")"
	}
	if r.Environment != "" {
		text += " (in the environment " + r.Environment + ")"
	}
	return text
}

// bothFailed returns how a replay ended that is identical with its original and did not complete: "identical" alone
// would look like a success.
func bothFailed(e *sandbox.Execution) string {
	if e.Replay.Grade != sandbox.ReplayIdentical {
		return ""
	}
	switch e.Status {
	case sandbox.StatusCompleted:
		return ""
	case sandbox.StatusFailed:
		text := ""
		if e.Error != nil && *e.Error != "" {
			text = ": " + cut(printable(*e.Error), maxErrorChars)
		}
		return " (both failed" + text + ")"
	}
	return " (both ended with the status " + string(e.Status) + ")"
}

// statements names the statements of a replay that the database of now answered.
func statements(r *sandbox.Replay) string {
	numbers := make([]string, 0, len(r.StatementsNow))
	for _, n := range r.StatementsNow {
		if len(numbers) == maxStatements {
			numbers = append(numbers, "...")
			break
		}
		numbers = append(numbers, strconv.Itoa(n))
	}
	switch len(numbers) {
	case 0:
		return ""
	case 1:
		return ": statement " + numbers[0]
	}
	return ": statements " + strings.Join(numbers, ", ")
}

// pair returns the lines of a part that differs, which is printable.
func pair(part, original, replay string) []string {
	return []string{"  " + part, "    original  " + orEmpty(original), "    replay    " + orEmpty(replay)}
}

func orEmpty(text string) string {
	if text == "" {
		return "(empty)"
	}
	return printable(text)
}

// printable returns a text on one line in which control characters are visible, because a difference may consist of
// them, and because a terminal would obey those of hostile code.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func describeSources(names []string) (lines []string) {
	for _, name := range slices.Sorted(slices.Values(names)) {
		lines = append(lines, fmt.Sprintf("  %-12s%s", name, sources[name]))
	}
	return lines
}

func restored(r *sandbox.Restored) []string {
	noun, end := "execution", "with the same end as at first"
	if r.Executions != 1 {
		noun = "executions"
	}
	if !r.IsExact {
		end = "not with the same end as at first"
	}
	lines := []string{fmt.Sprintf("Before it ran %d earlier %s of the session (%.0f ms of CPU time), %s.", r.Executions,
		noun, r.CPUMS, end)}
	if r.Left > 0 {
		lines = append(lines, fmt.Sprintf("  left out: %d that a limit or a caller had ended", r.Left))
	}
	if list := describeSources(r.Sources); len(list) > 0 {
		lines = append(append(lines, "What may differ in them:"), list...)
	}
	return lines
}
