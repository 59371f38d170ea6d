package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// comparison collects the differences between two executions.
type comparison struct{ list []sandbox.Difference }

// addresses are the addresses of objects in texts. They differ between processes, and are not compared.
var addresses = regexp.MustCompile(`\b0x[0-9a-f]{6,16}\b`)

func withoutAddresses(text string) string {
	if !strings.Contains(text, "0x") {
		return text
	}
	return addresses.ReplaceAllString(text, "0x…")
}

// text compares two texts, and names the first line that differs.
func (c *comparison) text(part, was, is string) {
	was, is = withoutAddresses(was), withoutAddresses(is)
	if was == is {
		return
	}
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	line := 0
	for line < len(before) && line < len(after) && before[line] == after[line] {
		line++
	}
	d := sandbox.Difference{Part: part}
	if len(before) > 1 || len(after) > 1 {
		d.Line = line + 1
	}
	if line < len(before) {
		d.Original = sandbox.Shorten(before[line], maxDifferentText)
	}
	if line < len(after) {
		d.Replay = sandbox.Shorten(after[line], maxDifferentText)
	}
	c.list = append(c.list, d)
}

func errorText(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// compareExecutions returns how an execution differs from an original with the same inputs. queries are those of its
// own code. Times, usage and ids always differ and are not compared.
func compareExecutions(was, is *sandbox.Execution, queries []sandbox.Query) []sandbox.Difference {
	c := &comparison{}
	c.text("status", string(was.Status), string(is.Status))
	c.text("result", string(was.Result), string(is.Result))
	c.text("stdout", was.Stdout, is.Stdout)
	c.text("stderr", was.Stderr, is.Stderr)
	if !was.Status.IsCut() || !is.Status.IsCut() {
		c.text("error", errorText(was.Error), errorText(is.Error))
	}
	if was.Exception != nil && is.Exception != nil {
		c.text("exception", traceOf(was.Exception), traceOf(is.Exception))
	}
	c.outputs(was.Outputs, is.Outputs)
	c.notes(was.DebugInfo, is.DebugInfo)
	c.artifacts(was.Artifacts, is.Artifacts)
	c.queries(was.Queries, queries)
	return c.list
}

// traceOf returns the lines of a traceback, without values.
func traceOf(x *sandbox.Exception) string {
	var lines []string
	for _, f := range x.Traceback {
		lines = append(lines, fmt.Sprintf("%s line %d in %s", f.File, f.Line, f.Function))
	}
	return strings.Join(append(lines, x.Summary()), "\n")
}

func (c *comparison) outputs(was, is []sandbox.Output) {
	c.text("outputs", fmt.Sprint(len(was)), fmt.Sprint(len(is)))
	for n := range min(len(was), len(is)) {
		kinds := map[string]bool{}
		for kind := range was[n].Data {
			kinds[kind] = true
		}
		for kind := range is[n].Data {
			kinds[kind] = true
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			c.text(fmt.Sprintf("outputs[%d].%s", n, kind), partOf(was[n], kind), partOf(is[n], kind))
		}
	}
}

// partOf returns the part of an output with a MIME type. A part that became an artifact is its hash.
func partOf(o sandbox.Output, kind string) string {
	if kind != sandbox.ArtifactMIME {
		return string(o.Data[kind])
	}
	var references map[string]sandbox.Artifact
	_ = json.Unmarshal(o.Data[kind], &references)
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(references)) {
		lines = append(lines, name+" "+references[name].SHA256)
	}
	return strings.Join(lines, "\n")
}

func (c *comparison) notes(was, is sandbox.DebugInfo) {
	describe := func(d sandbox.DebugInfo) string {
		var lines []string
		for _, note := range d.Logs {
			lines = append(lines, fmt.Sprintf("%s %s %s", note.Level, note.Message, note.Data))
		}
		for _, name := range slices.Sorted(maps.Keys(d.Variables)) {
			for _, note := range d.Variables[name] {
				lines = append(lines, fmt.Sprintf("%s %s %s", name, note.Type, note.Repr))
			}
		}
		return strings.Join(lines, "\n")
	}
	c.text("debug_info", describe(was), describe(is))
}

func (c *comparison) artifacts(was, is []sandbox.Artifact) {
	sums := func(list []sandbox.Artifact) map[string]string {
		out := map[string]string{}
		for _, a := range list {
			out[a.Path] = a.SHA256
		}
		return out
	}
	before, after := sums(was), sums(is)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		c.text("artifacts/"+path, before[path], after[path])
	}
}

func (c *comparison) queries(was, is []sandbox.Query) {
	describe := func(list []sandbox.Query) string {
		var lines []string
		for _, q := range list {
			text, _ := json.Marshal([]any{q.Database, q.SQL, q.Status, q.Rows})
			lines = append(lines, string(text))
		}
		return strings.Join(lines, "\n")
	}
	c.text("statements", describe(was), describe(is))
}
