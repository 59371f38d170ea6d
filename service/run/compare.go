package run

import (
	"bytes"
	"context"
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

// identifiers are addresses of objects, also as id prints them, and UUIDs of version 1, which have numbers of the
// kernel. They differ between processes, and are not compared.
var identifiers = regexp.MustCompile(`\b(0[xX][0-9a-fA-F]{6,16}|1(?:39[6-9]|40[0-7])[0-9]{11}|` +
	`[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\b`)

func withoutIdentifiers(text string) string {
	return identifiers.ReplaceAllString(text, "…")
}

// text compares two texts, and names the first line that differs.
func (c *comparison) text(part, was, is string) {
	if was == is {
		return
	}
	if was, is = withoutIdentifiers(was), withoutIdentifiers(is); was == is {
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
		d.Original = shorten(before[line])
	}
	if line < len(after) {
		d.Replay = shorten(after[line])
	}
	c.list = append(c.list, d)
}

// json compares two JSON texts value by value, so that a table is compared cell by cell.
func (c *comparison) json(part string, was, is json.RawMessage) {
	if bytes.Equal(was, is) {
		return
	}
	var before, after any
	if decodeNumbers(was, &before) != nil || decodeNumbers(is, &after) != nil {
		c.text(part, string(was), string(is))
		return
	}
	c.value(part, before, after)
}

// decodeNumbers decodes JSON, and keeps all digits of its numbers.
func decodeNumbers(text []byte, v *any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(v)
}

// value compares two values of JSON. The part of a value in a list or an object has its index or its name.
func (c *comparison) value(part string, was, is any) {
	if len(c.list) > maxDifferences {
		return
	}
	if before, ok := was.([]any); ok {
		if after, ok := is.([]any); ok {
			c.items(part, before, after)
			return
		}
	}
	if before, ok := was.(map[string]any); ok {
		if after, ok := is.(map[string]any); ok {
			names := maps.Clone(before)
			maps.Copy(names, after)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				c.member(part+"."+name, before, after, name)
			}
			return
		}
	}
	c.text(part, valueText(was), valueText(is))
}

// items compares two lists item by item, and then their lengths.
func (c *comparison) items(part string, was, is []any) {
	for n := range min(len(was), len(is)) {
		c.value(fmt.Sprintf("%s[%d]", part, n), was[n], is[n])
	}
	if len(was) != len(is) {
		c.text(part+" (number of items)", fmt.Sprint(len(was)), fmt.Sprint(len(is)))
	}
}

func (c *comparison) member(part string, was, is map[string]any, name string) {
	before, wasThere := was[name]
	after, isThere := is[name]
	switch {
	case wasThere && isThere:
		c.value(part, before, after)
	case wasThere:
		c.list = append(c.list, sandbox.Difference{Part: part, Original: shorten(valueText(before))})
	default:
		c.list = append(c.list, sandbox.Difference{Part: part, Replay: shorten(valueText(after))})
	}
}

func shorten(text string) string { return sandbox.Shorten(text, maxDifferentText) }

// valueText returns a value as JSON, and a text as itself.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, _ := json.Marshal(v)
	return string(text)
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
	c.json("result", was.Result, is.Result)
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

// isSame reports whether a run that was restored ended, printed and returned what it did at first.
func isSame(was *sandbox.Execution, is *sandbox.Outcome) bool {
	c := &comparison{}
	c.text("status", string(was.Status), string(is.Status))
	c.text("error", errorText(was.Error), errorText(is.Error))
	c.text("stdout", was.Stdout, is.Stdout)
	c.text("result", string(was.Result), string(is.Result))
	return len(c.list) == 0
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
			c.part(fmt.Sprintf("outputs[%d].%s", n, kind), kind, was[n], is[n])
		}
	}
}

// part compares the parts of two outputs with a MIME type.
func (c *comparison) part(name, kind string, was, is sandbox.Output) {
	if kind == sandbox.ArtifactMIME {
		c.text(name, storedParts(was), storedParts(is))
		return
	}
	if was.Data[kind] == nil || is.Data[kind] == nil {
		c.text(name, shorten(string(was.Data[kind])), shorten(string(is.Data[kind])))
		return
	}
	c.json(name, was.Data[kind], is.Data[kind])
}

// storedParts returns the hashes of the parts of an output that became artifacts.
func storedParts(o sandbox.Output) string {
	var references map[string]sandbox.Artifact
	_ = json.Unmarshal(o.Data[sandbox.ArtifactMIME], &references)
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

// Diff returns how an execution differs from another one, as a replay differs from its original: at most twenty
// differences. The caller must be allowed to see both.
func (s *Service) Diff(ctx context.Context, caller sandbox.Key, id, other string) ([]sandbox.Difference, error) {
	was, err := s.Records.Execution(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	is, err := s.Records.Execution(ctx, caller, other)
	if err != nil {
		return nil, err
	}
	if was.CompletedAt == nil || is.CompletedAt == nil {
		return nil, sandbox.Errorf(sandbox.FaultBusy, "one of the executions runs: wait for its end")
	}
	list := compareExecutions(&was, &is, is.Queries)
	return list[:min(len(list), maxDifferences)], nil
}
