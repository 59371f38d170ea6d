package debugger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox/stages"
)

// walkOf returns a walk through blocks, written as "kind name: stage stage>block".
func walkOf(blocks ...string) *sqlWalk {
	s := &stages.Stages{}
	for id, text := range blocks {
		head, rest, _ := strings.Cut(text, ":")
		kind, name, _ := strings.Cut(head, " ")
		b := stages.Block{ID: id, Parent: -1, Kind: kind, Name: name}
		if kind == stages.BlockArm {
			b.Parent = len(blocks) - 1
		}
		for i, one := range strings.Fields(rest) {
			stage := &stages.Stage{ID: i, Block: id, Text: one, Reads: -1}
			if _, reads, found := strings.Cut(one, ">"); found {
				_, _ = fmt.Sscan(reads, &stage.Reads)
			}
			b.Stages = append(b.Stages, stage)
		}
		s.Blocks = append(s.Blocks, b)
	}
	return newSQLWalk(s)
}

func (w *sqlWalk) textOf(path sqlPath) string {
	var texts []string
	for _, place := range path {
		if s := w.stage(place); s != nil {
			texts = append(texts, s.Text)
		} else {
			texts = append(texts, "?")
		}
	}
	return strings.Join(texts, "/")
}

// walked returns the places that a move reaches, from the start to the end.
func (w *sqlWalk) walked(move func(sqlPath) sqlPath) string {
	var texts []string
	for path := w.start(); path != nil && len(texts) < 100; path = move(path) {
		texts = append(texts, w.textOf(path))
	}
	return strings.Join(texts, " ")
}

func TestWalkThroughBlocks(t *testing.T) {
	w := walkOf("cte a: orders where", "cte b: a>0 group", "main: b>1 a>0 join")
	if got, want := w.walked(w.next), "b>1 a>0 join"; got != want {
		t.Errorf("next: got %s, want %s", got, want)
	}
	in := func(p sqlPath) sqlPath { return w.in(p, 0) }
	want := "b>1 b>1/a>0 b>1/a>0/orders b>1/a>0/where b>1/group a>0 a>0/orders a>0/where join"
	if got := w.walked(in); got != want {
		t.Errorf("in: got %s, want %s", got, want)
	}
	inner := sqlPath{{2, 0}, {1, 0}, {0, 1}}
	if got := w.textOf(w.out(inner, false)); got != "b>1/group" {
		t.Errorf("out: got %s, want the stage after the one that reads the block", got)
	}
	if got := w.out(sqlPath{{2, 1}}, false); got != nil {
		t.Errorf("out of the statement: got %v, want nil", got)
	}
	var back []string
	for path := inner; path != nil; path = w.back(path) {
		back = append(back, w.textOf(path))
	}
	if got, want := strings.Join(back, " "), "b>1/a>0/where b>1/a>0/orders b>1/a>0 b>1"; got != want {
		t.Errorf("back: got %s, want %s", got, want)
	}
}

// The sides of a set operation come one after the other, and then the operation.
func TestWalkThroughSetOperations(t *testing.T) {
	w := walkOf("arm: x where", "arm: y", "main: union order")
	if got, want := w.walked(w.next), "union order"; got != want {
		t.Errorf("next: got %s, want %s", got, want)
	}
	first := w.in(w.start(), 0)
	if got := w.textOf(first); got != "union/x" {
		t.Fatalf("in: got %s, want the first side", got)
	}
	var rest []string
	for path := first; path != nil; path = w.next(path) {
		rest = append(rest, w.textOf(path))
	}
	if got, want := strings.Join(rest, " "), "union/x union/where union/y union order"; got != want {
		t.Errorf("next in a side: got %s, want %s", got, want)
	}
	var all []string
	for _, path := range w.all() {
		all = append(all, w.textOf(path))
	}
	if got, want := strings.Join(all, " "), "union union/x union/where union/y union order"; got != want {
		t.Errorf("all: got %s, want %s", got, want)
	}
}

// Blocks that read each other, which a damaged answer could have, are not entered again.
func TestWalkEnds(t *testing.T) {
	w := walkOf("cte a: b>1", "cte b: a>0", "main: a>0 x")
	in := func(p sqlPath) sqlPath { return w.in(p, 0) }
	if got := w.walked(in); got != "a>0 a>0/b>1 a>0/b>1/a>0 x" {
		t.Errorf("got %s, want each block once", got)
	}
	empty := newSQLWalk(&stages.Stages{})
	if empty.stage(empty.start()[0]) != nil || empty.next(empty.start()) != nil || len(empty.all()) != 1 {
		t.Error("a statement without blocks has stages")
	}
}

// A number that is not known is not 0: a condition about it does not hold.
func TestConditionsAboutStages(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	join := &stages.Stage{
		Kind: stages.KindJoin, JoinKind: "inner", RowsIn: n(10), RowsOut: n(25), Lost: n(2), State: stages.Counted,
		Multiplied: &stages.Matches{MaxRight: n(4)}, FromLine: 3,
	}
	left := &stages.Stage{Kind: stages.KindJoin, JoinKind: "left", RowsIn: n(10), RowsOut: n(20), Lost: n(0)}
	where := &stages.Stage{Kind: stages.KindWhere, State: stages.Skipped}
	for _, c := range []struct {
		stage     *stages.Stage
		condition string
		want      bool
	}{
		{join, "rows == 25 and lost == 2 and repeated == 17", true}, {join, "multiplied > 3", true},
		{join, "multiplied > 4", false}, {left, "multiplied > 1", true}, {left, "repeated == 10", true},
		{where, "rows == 0", false}, {where, "not rows", false}, {where, "state == 'skipped'", true},
		{where, "lost < 1 or state == 'skipped'", false}, {where, "multiplied > 1", false},
	} {
		condition, message := stageCondition(c.condition)
		if message != "" {
			t.Fatalf("%s: %s", c.condition, message)
		}
		line := c.stage.FromLine
		got := hitIDs(c.stage, []sqlBreakpoint{{id: 7, line: line, condition: condition}})
		if slices.Contains(got, 7) != c.want {
			t.Errorf("%s: got %v, want %v for %+v", c.condition, got, c.want, c.stage)
		}
	}
}

// A name that two columns of a join have means none of them.
func TestColumnsOfASample(t *testing.T) {
	columns := []string{"id", "city", "id", "Total", "a.b"}
	for name, want := range map[string]int{
		"city": 1, "c.city": 1, "o.total": 3, `o."Total"`: 3, "id": -1, "o.id": -1, "a.b": 4, "none": -1, "c.none": -1,
	} {
		if got := sampleColumn(columns, name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
