package debugger

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	maxLinks = 12
	linkText = 160
)

// chain follows what a line depends on, back in time: the last changes of the variables
// that it names, then those that these lines name. It looks at names, not at the
// language: it can tell of more than mattered, and not of what went through a library.
func (j *Journal) chain(step int, line int64, source []string) ([]string, error) {
	asked, told := map[Change]bool{}, map[int]bool{step: true}
	queue := []question{{step, line}}
	var out []string
	for len(queue) > 0 && len(out) < maxLinks {
		q := queue[0]
		queue = queue[1:]
		s, err := j.state(q.step)
		if err != nil {
			return out, nil // it is among the lost
		}
		for _, name := range namesIn(SourceLine(source, q.line)) {
			v := Variable{s.Current, name}
			if f := s.Frames[s.Current]; f == nil {
				continue
			} else if _, local := f.Variables[j.table.byName[name]]; !local {
				v.Frame = 0
			}
			c, found, err := j.lastChange(v, q.step)
			if err != nil {
				return nil, err
			}
			key := Change{Seen: c.Seen, Object: c.Object, Value: c.Value, Line: int64(v.Frame)}
			if !found || asked[key] || len(out) >= maxLinks || hidden(s, &j.table, c.Value) {
				continue
			}
			asked[key] = true
			at, where := question{c.By, c.Line}, ""
			if c.By == 0 { // an argument, or what was there before
				if at, where = j.caller(v, c.Seen); at.step == 0 {
					out = append(out, fmt.Sprintf("  %s was there before", name))
					continue
				}
			}
			seen, err := j.state(c.Seen)
			if err != nil {
				continue
			}
			out = append(out, fmt.Sprintf("  step %d, line %d: %s%s   # %s = %s", at.step, at.line, strings.TrimSpace(SourceLine(source, at.line)), where, name, seen.Preview(&j.table, c.Value, linkText)))
			if !told[at.step] {
				told[at.step] = true
				queue = append(queue, at)
			}
		}
	}
	return out, nil
}

// question is a step whose line is to be explained.
type question struct {
	step int
	line int64
}

// caller is the step whose line called the frame that a variable is an argument of.
func (j *Journal) caller(v Variable, seen int) (at question, where string) {
	s, err := j.state(seen)
	if err != nil || s.Frames[v.Frame] == nil {
		return at, ""
	}
	if parent := s.Frames[s.Frames[v.Frame].Parent]; parent != nil {
		at.step, at.line = parent.Step, parent.Line
	}
	return at, " (calls " + j.table.Name(j.table.Code(s.Frames[v.Frame].Code).Name) + ")"
}

var (
	literals = regexp.MustCompile(`[fFrRbBuU]{0,2}('(\\.|[^'\\])*'|"(\\.|[^"\\])*")|#.*$`)
	names    = regexp.MustCompile(`(^|[^.\w])([A-Za-z_]\w*)`)
	filled   = regexp.MustCompile(`\{([^{}]*)\}`)
	pythons  = map[string]bool{}
)

func init() {
	for _, word := range strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case print len range str int float list dict set tuple sum min max abs sorted enumerate zip map filter isinstance type open") {
		pythons[word] = true
	}
}

// namesIn returns the names in a line of code that may be variables, in order.
func namesIn(line string) []string {
	line = literals.ReplaceAllStringFunc(line, func(literal string) string {
		if strings.ContainsAny(literal[:1], "fF") { // its expressions count
			var inner []string
			for _, found := range filled.FindAllStringSubmatch(literal, -1) {
				inner = append(inner, found[1])
			}
			return " " + strings.Join(inner, " ") + " "
		}
		return " "
	})
	var out []string
	seen := map[string]bool{}
	for _, found := range names.FindAllStringSubmatch(line, -1) {
		if name := found[2]; !pythons[name] && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
