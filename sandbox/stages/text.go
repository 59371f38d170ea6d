package stages

import (
	"fmt"
	"strconv"
	"strings"
)

// Options says what an answer has in addition to the counts.
type Options struct {
	Name    string // of the statement, such as "Query 1"; "": "Statement"
	Samples bool   // a few rows after each stage
	All     bool   // also what takes longer than the statement; in the text, findings that are only possible
}

// maxClauseChars bounds a clause in a text.
const maxClauseChars = 60

// Render returns the stages and findings as a text for a language model: one line for each block, with the line and the
// rows of each stage.
func (s *Stages) Render(o Options) string {
	var w strings.Builder
	name := o.Name
	if name == "" {
		name = "Statement"
	}
	fmt.Fprintf(&w, "%s, %s, ", name, plural(int64(s.Lines), "line"))
	if s.Truncated {
		w.WriteString("more than ")
	}
	w.WriteString(plural(s.Rows, "row"))
	if same := DescribeSame(s.SameResult); same != "" {
		w.WriteString(", " + same)
	}
	if s.SchemaChanged {
		w.WriteString(", schema changed since")
	}
	w.WriteString(". Rows after each stage:\n")
	for i := range s.Blocks {
		s.renderBlock(&w, &s.Blocks[i])
	}
	more := 0
	for i, f := range s.Findings {
		if f.Score < ScoreLikely && i > 0 && !o.All { // the best one is shown even if it is only possible
			more++
			continue
		}
		fmt.Fprintf(&w, "%s (%d): l%d: %s\n", certainty(f.Score), f.Score, f.Line, f.Text)
	}
	for _, n := range s.NotLooked {
		w.WriteString("Not looked at: " + n + "\n")
	}
	w.WriteString("Not known: what was meant.")
	if more > 0 {
		fmt.Fprintf(&w, " Possible: %d more (ask with all=true).", more)
	}
	return w.String() + "\n"
}

func certainty(score int) string {
	switch {
	case score >= ScoreCertain:
		return "Likely"
	case score >= ScoreLikely:
		return "Perhaps"
	}
	return "Possible"
}

func (s *Stages) renderBlock(w *strings.Builder, b *Block) {
	name := b.Name
	switch {
	case b.Kind == BlockMain:
		name = "main"
	case b.Kind == BlockArm:
		name = "arm"
	case b.Kind == BlockView || b.Kind == BlockCorrelated:
		name = b.Kind + " " + name
	case name == "":
		name = "subquery"
	}
	fmt.Fprintf(w, "  l%d %s:", b.FromLine, name)
	if len(b.Stages) == 0 || b.Reason != "" {
		fmt.Fprintf(w, " no stages (%s)\n", b.Reason)
		return
	}
	line := b.FromLine
	isFirst := true
	for _, stage := range b.Stages {
		if stage.PartOf >= 0 {
			continue
		}
		if !isFirst {
			w.WriteString(" ->")
		}
		isFirst = false
		if stage.FromLine != line {
			fmt.Fprintf(w, " l%d", stage.FromLine)
			line = stage.FromLine
		}
		w.WriteString(" " + stage.describe())
	}
	for _, stage := range b.Stages {
		if stage.PartOf >= 0 {
			fmt.Fprintf(w, " | l%d %s", stage.FromLine, stage.describe())
		}
	}
	w.WriteString("\n")
}

// describe returns a stage with its rows.
func (s *Stage) describe() string {
	text := Clip(s.Text)
	switch s.Kind {
	case KindFrom:
		if s.Reads >= 0 && s.Name != "" {
			text = s.Name
		}
	case KindGroup:
		if s.RowsOut != nil {
			return plural(*s.RowsOut, "group")
		}
		text = "groups"
	case KindDistinct:
		text = "DISTINCT"
	case KindSet:
		text = s.Name
	case KindProject:
		text = "SELECT"
	case KindHaving:
		text = "HAVING " + text
	case KindGroupingSet:
		return Clip(s.Name) + " " + s.groups()
	case KindFilter:
		return text + " " + s.rows() + s.of() + s.details()
	case KindWindow:
		return text + ": " + s.partitions()
	case KindSubquery:
		if s.RowsIn != nil {
			text += fmt.Sprintf(" runs at most %s, gives", times(*s.RowsIn))
		}
	}
	return text + " " + s.rows() + s.details()
}

// rows returns the rows after a stage, or why they are not known.
func (s *Stage) rows() string {
	switch {
	case s.RowsOut != nil:
		return strconv.FormatInt(*s.RowsOut, 10)
	case s.EstimatedOut != nil:
		return "about " + strconv.FormatInt(*s.EstimatedOut, 10)
	case s.Reason != "":
		return "? (" + s.Reason + ")"
	}
	return "?"
}

// groups returns the number of groups of a grouping set, or why it is not known.
func (s *Stage) groups() string {
	if s.RowsOut != nil {
		return plural(*s.RowsOut, "group")
	}
	return s.rows()
}

// of returns the rows that come to a filter.
func (s *Stage) of() string {
	if s.RowsIn == nil {
		return ""
	}
	return fmt.Sprintf(" of %d", *s.RowsIn)
}

// partitions returns how a window divides rows, or why it is not known.
func (s *Stage) partitions() string {
	if s.Window == nil {
		return s.rows()
	}
	text := fmt.Sprintf("%s of up to %s", plural(s.Window.Partitions, "partition"), plural(s.Window.Largest, "row"))
	if s.Window.Tied != nil && *s.Window.Tied > 0 {
		text += fmt.Sprintf(", %d tied in the order", *s.Window.Tied)
	}
	return text
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return plural(n, "time")
}

// details returns what else is worth a word: rows without a match, and conditions that are NULL.
func (s *Stage) details() string {
	var list []string
	if s.Null != nil && *s.Null > 0 {
		list = append(list, fmt.Sprintf("%d NULL", *s.Null))
	}
	if s.EmptyGroups != nil && *s.EmptyGroups > 0 {
		list = append(list, "none in "+plural(*s.EmptyGroups, "group"))
	}
	if m := s.Multiplied; m != nil {
		add := func(n *int64, format string, least int64) {
			if n != nil && *n > least {
				list = append(list, fmt.Sprintf(format, *n))
			}
		}
		if s.JoinKind == "left" || s.JoinKind == "right" {
			unmatched := m.LeftUnmatched
			if s.JoinKind == "right" {
				unmatched = m.RightUnmatched
			}
			add(unmatched, "%d unmatched", 0)
		} else {
			add(m.LeftUnmatched, "%d left unmatched", 0)
			add(m.RightUnmatched, "%d right unmatched", 0)
		}
		add(m.MaxLeft, "up to %d left rows a key", 1)
		add(m.MaxRight, "up to %d right rows a key", 1)
		add(m.NullKeys, "%d NULL keys", 0)
	}
	if len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

func plural(n int64, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.FormatInt(n, 10) + " " + word
}

// Clip returns a clause in one line, shortened.
func Clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxClauseChars {
		return string(r[:maxClauseChars-3]) + "..."
	}
	return text
}
