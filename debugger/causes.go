package debugger

import (
	"fmt"
	"regexp"
	"strings"

	"glasshouse/debugger/recording"
)

const (
	maxCauses    = 12
	causePreview = 160 // bytes of a value
)

// codeStep is a step and its line.
type codeStep struct {
	step int
	line int64
}

// causes returns the steps that a step depends on, as lines of text: the last changes of the variables that the step's
// line names, then the changes of the variables that those lines name, and so on. It compares names and does not parse
// the code. So it may list too many steps, and it misses values that passed through a library.
func (r *Recording) causes(reader *recording.Reader, failed codeStep) ([]string, error) {
	type cause struct {
		frame  uint64
		change change
	}
	table := reader.Table()
	listed, queued := map[cause]bool{}, map[int]bool{failed.step: true}
	queue := []codeStep{failed}
	var out []string
	for len(queue) > 0 && len(out) < maxCauses {
		current := queue[0]
		queue = queue[1:]
		s, err := reader.State(current.step)
		if err != nil {
			return out, nil // the step was lost
		}
		for _, name := range namesIn(SourceLine(r.Source, current.line)) {
			if s.CurrentFrame() == nil {
				continue
			}
			v := resolve(s, table, name)
			var c change
			found, err := lastChange(reader, v, current.step, func(_ *recording.State, seen change) { c = seen })
			if err != nil {
				return nil, err
			}
			key := cause{v.Frame, change{seenAt: c.seenAt, object: c.object, value: c.value}}
			if !found || listed[key] || len(out) >= maxCauses || s.IsDefinition(table, c.value) {
				continue
			}
			listed[key] = true
			if e := r.edit(c.edit, c.seenAt); e != nil {
				out = append(out, "  "+describeEdit(*e))
				continue
			}
			at, call := codeStep{c.madeBy, c.line}, ""
			if c.madeBy == 0 { // an argument, or a variable of an earlier run
				if at, call = callOf(reader, v.Frame, c.seenAt); at.step == 0 {
					out = append(out, fmt.Sprintf("  %s existed before", name))
					continue
				}
			}
			seen, err := reader.State(c.seenAt)
			if err != nil {
				continue
			}
			code := strings.TrimSpace(SourceLine(r.Source, at.line))
			out = append(out, fmt.Sprintf("  step %d, line %d: %s%s   # %s = %s",
				at.step, at.line, code, call, name, seen.Preview(table, c.value, causePreview)))
			if !queued[at.step] {
				queued[at.step] = true
				queue = append(queue, at)
			}
		}
	}
	return out, nil
}

// callOf returns the step whose line called a frame that exists at a step, and a note that names the function.
func callOf(reader *recording.Reader, frame uint64, step int) (at codeStep, note string) {
	s, err := reader.State(step)
	if err != nil || s.Frames[frame] == nil {
		return at, ""
	}
	f := s.Frames[frame]
	if caller := s.Frames[f.Parent]; caller != nil {
		at = codeStep{caller.Step, caller.Line}
	}
	return at, " (calls " + reader.Table().FunctionName(f.Code) + ")"
}

var (
	literalOrComment = regexp.MustCompile(`[fFrRbBuU]{0,2}('(\\.|[^'\\])*'|"(\\.|[^"\\])*")|#.*$`)
	nameNotAttribute = regexp.MustCompile(`(^|[^.\w])([A-Za-z_]\w*)`)
	fStringField     = regexp.MustCompile(`\{([^{}]*)\}`)

	// notVariables are keywords and common builtins.
	notVariables = map[string]bool{}
)

func init() {
	for word := range strings.FieldsSeq(`
		False None True and as assert async await break class continue def del elif else except finally for from
		global if import in is lambda nonlocal not or pass raise return try while with yield match case print len
		range str int float list dict set tuple sum min max abs sorted enumerate zip map filter isinstance type open`) {
		notVariables[word] = true
	}
}

// namesIn returns the names in a line of code that may be variables, in order.
func namesIn(line string) []string {
	line = literalOrComment.ReplaceAllStringFunc(line, func(literal string) string {
		if !strings.ContainsAny(literal[:1], "fF") {
			return " "
		}
		var fields []string
		for _, found := range fStringField.FindAllStringSubmatch(literal, -1) {
			fields = append(fields, found[1])
		}
		return " " + strings.Join(fields, " ") + " "
	})
	var out []string
	seen := map[string]bool{}
	for _, found := range nameNotAttribute.FindAllStringSubmatch(line, -1) {
		if name := found[2]; !notVariables[name] && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
