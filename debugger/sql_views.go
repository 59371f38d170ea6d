package debugger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// The numbers of frames of SQL, and of the references to their variables, begin where no others are. A reference is at
// most 2^31-1.
const (
	firstSQLFrame     = 1 << 41
	firstSQLReference = 1 << 30

	// A reference to variables of SQL has the depth of the frame, the scope, and a number in it, 0 for the scope.
	sqlDepthShift = 18
	sqlScopeShift = 16
	maxSQLItems   = 1<<sqlScopeShift - 1
)

// The scopes of a frame of SQL.
const (
	sqlStage = iota
	sqlSample
	sqlParameters
	sqlFindings
)

var sqlScopes = []string{sqlStage: "Stage", sqlSample: "Sample", sqlParameters: "Parameters", sqlFindings: "Findings"}

// SQLFrameView is a frame of a statement: of the main block, or of a block that was entered from there.
type SQLFrameView struct {
	Frame         uint64
	Name          string
	Statement     int // its number, from 1
	Line, EndLine int // of the stage, in the statement
	Column        int
}

// SQLStack returns the frames of the statement in which the session is, the innermost first. It is empty for a thread
// other than the one that sent the statement; thread 0 is that one.
func (s *Session) SQLStack(ctx context.Context, thread uint64) ([]SQLFrameView, error) {
	f := s.currentSQL()
	if f == nil || thread != 0 && thread != max(s.Position().Thread, 1) {
		return nil, nil
	}
	a, err := f.answerFor(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	path := f.pathIn(a)
	s.mu.Unlock()
	var frames []SQLFrameView
	for depth, place := range path {
		view := SQLFrameView{
			Frame: firstSQLFrame + uint64(depth), Name: f.nameOf(a, depth, place), Statement: f.number, Line: 1,
			EndLine: 1, Column: 1,
		}
		if a.walk != nil {
			view.place(a.walk, place, f.query.SQL)
		}
		frames = append(frames, view)
	}
	slices.Reverse(frames)
	return frames, nil
}

// nameOf returns the name of a frame. That of a statement without stages has the reason.
func (f *sqlFrame) nameOf(a *sqlAnswer, depth int, place sqlPlace) string {
	name := sqlFrameName(f.number)
	if a.err != nil {
		reason, _ := whyNoStages(a.err)
		return name + " (" + reason + ")"
	}
	if depth == 0 || a.walk.blocks[place.block] == nil {
		return name
	}
	b := a.walk.blocks[place.block]
	if b.Name != "" {
		return name + ", " + b.Name
	}
	return name + ", " + b.Kind
}

func sqlFrameName(number int) string { return fmt.Sprintf("SQL: query %d", number) }

// place sets the lines of a view, and the column if the text of the stage begins in that line.
func (v *SQLFrameView) place(w *sqlWalk, at sqlPlace, sql string) {
	stage := w.stage(at)
	if stage == nil {
		if b := w.blocks[at.block]; b != nil {
			v.Line, v.EndLine = b.FromLine, b.ToLine
		}
		return
	}
	v.Line, v.EndLine = stage.FromLine, stage.ToLine
	lines := strings.Split(sql, "\n")
	first, _, _ := strings.Cut(stage.Text, "\n")
	if v.Line < 1 || v.Line > len(lines) || first == "" {
		return
	}
	if before, _, found := strings.Cut(lines[v.Line-1], first); found {
		v.Column = len([]rune(before)) + 1
	}
}

// whyNoStages returns the reason and the message of an error.
func whyNoStages(err error) (reason, message string) {
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return no.Reason, no.Message
	}
	if failed, ok := errors.AsType[*sandbox.Error](err); ok {
		return string(failed.Fault), err.Error()
	}
	return "failed", err.Error()
}

// StatementText returns the text of the statement with a number.
func (s *Session) StatementText(number int) (string, error) {
	q, err := s.statement(number)
	return q.SQL, err
}

// SQLStatement returns the number of the statement in which the session is, or 0.
func (s *Session) SQLStatement() int {
	if f := s.currentSQL(); f != nil {
		return f.number
	}
	return 0
}

// IsSQLFrame reports whether a frame is one of a statement.
func IsSQLFrame(frame uint64) bool {
	return frame >= firstSQLFrame && frame < firstSQLFrame+maxSQLDepth
}

// sqlView is what a frame of SQL shows.
type sqlView struct {
	frame  *sqlFrame
	answer *sqlAnswer
	path   sqlPath // up to the frame
}

// stage returns the stage of the view, or nil.
func (v sqlView) stage() *stages.Stage {
	if v.answer.walk == nil {
		return nil
	}
	return v.answer.walk.stage(v.path[len(v.path)-1])
}

// viewSQL returns what the frame of SQL at a depth shows.
func (s *Session) viewSQL(ctx context.Context, depth int) (v sqlView, err error) {
	f := s.currentSQL()
	if f == nil {
		return v, fmt.Errorf("%w: the session is not in a statement; frames are valid until the next move", ErrRequest)
	}
	a, err := f.answerFor(ctx)
	if err != nil {
		return v, err
	}
	s.mu.Lock()
	path := f.pathIn(a)
	s.mu.Unlock()
	if depth >= len(path) {
		return v, fmt.Errorf("%w: unknown frame; frames are valid until the next move", ErrRequest)
	}
	return sqlView{f, a, path[:depth+1]}, nil
}

// SQLScopes returns the scopes of a frame of SQL.
func (s *Session) SQLScopes(ctx context.Context, frame uint64) ([]ScopeView, error) {
	depth := int(frame - firstSQLFrame)
	v, err := s.viewSQL(ctx, depth)
	if err != nil {
		return nil, err
	}
	list := []ScopeView{}
	for scope, name := range sqlScopes {
		list = append(list, ScopeView{
			Name: name, Reference: firstSQLReference + depth<<sqlDepthShift + scope<<sqlScopeShift,
			Variables: len(v.variables(scope)),
		})
	}
	return list, nil
}

// isSQLReference reports whether a reference leads to variables of a frame of SQL.
func isSQLReference(number int) bool { return number >= firstSQLReference }

// sqlVariables returns a page of the variables that a reference of a frame of SQL opens.
func (s *Session) sqlVariables(ctx context.Context, number, start, count int) ([]ValueView, error) {
	number -= firstSQLReference
	depth, scope := number>>sqlDepthShift, number>>sqlScopeShift&3
	v, err := s.viewSQL(ctx, depth)
	if err != nil {
		return nil, err
	}
	list := v.variables(scope)
	if item := number & maxSQLItems; item > len(list) {
		return nil, fmt.Errorf("%w: reference %d does not exist; references are valid until the next move", ErrRequest,
			firstSQLReference+number)
	} else if item > 0 {
		list = list[item-1].parts
	}
	out := []ValueView{}
	for i, one := range page(list, max(start, 0), count) {
		view := ValueView{Name: one.name, Value: one.value, Type: one.kind}
		if len(one.parts) > 0 && number&maxSQLItems == 0 {
			view.Reference = firstSQLReference + number + max(start, 0) + i + 1
			view.Attributes = int64(len(one.parts))
		}
		out = append(out, view)
	}
	return out, nil
}

// sqlVariable is a variable of a frame of SQL.
type sqlVariable struct {
	name, value, kind string
	parts             []sqlVariable
}

func (v sqlView) variables(scope int) []sqlVariable {
	switch scope {
	case sqlSample:
		return v.sample()
	case sqlParameters:
		return parametersOf(&v.frame.query)
	case sqlFindings:
		return v.findings()
	}
	return v.stageVariables()
}

func (v sqlView) stageVariables() (list []sqlVariable) {
	add := func(name, value, kind string) {
		if value != "" {
			list = append(list, sqlVariable{name: name, value: value, kind: kind})
		}
	}
	if err := v.answer.err; err != nil {
		reason, message := whyNoStages(err)
		add("state", stages.Refused, "text")
		add("reason", reason, "text")
		add("message", message, "text")
		return list
	}
	s := v.stage()
	if s == nil {
		if b := v.answer.walk.blocks[v.path[len(v.path)-1].block]; b != nil {
			add("state", stages.Refused, "text")
			add("reason", b.Reason, "text")
		}
		return list
	}
	add("kind", strings.TrimSpace(s.JoinKind+" "+s.Kind), "text")
	add("text", stages.Clip(s.Text), "text")
	values := stageValues(s)
	for _, name := range stageNumbers {
		switch n := values[name].(type) {
		case nil:
			if name == "rows" && s.EstimatedOut != nil {
				add(name, fmt.Sprintf("about %d", *s.EstimatedOut), "estimate")
			} else if name == "rows" {
				add(name, "?", "unknown")
			}
		case float64:
			add(name, strconv.FormatFloat(n, 'g', 4, 64), "number")
		default:
			add(name, fmt.Sprint(n), "number")
		}
	}
	add("state", s.State, "text")
	add("reason", s.Reason, "text")
	add("message", s.Message, "text")
	if same := v.answer.stages.SameResult; same == "no" {
		add("same_result", same, "text")
	}
	return list
}

func (v sqlView) sample() (list []sqlVariable) {
	s := v.stage()
	if s == nil || s.Sample == nil {
		return nil
	}
	for i, row := range s.Sample.Rows {
		one := sqlVariable{name: strconv.Itoa(i), kind: "row"}
		var texts []string
		for c, value := range row[:min(len(row), len(s.Sample.Columns))] {
			text, kind := sampleValue(value)
			one.parts = append(one.parts, sqlVariable{name: s.Sample.Columns[c], value: text, kind: kind})
			texts = append(texts, s.Sample.Columns[c]+"="+text)
		}
		if n := s.Sample.MoreColumns; n > 0 {
			texts = append(texts, fmt.Sprintf("... %d more columns", n))
		}
		one.value = shorten(strings.Join(texts, " "), maxSQLRowChars)
		list = append(list, one)
	}
	return list
}

// maxSQLRowChars bounds the text of a row of a sample.
const maxSQLRowChars = 1000

// sampleValue returns a value of a sample as text.
func sampleValue(v any) (text, kind string) {
	if v == nil {
		return "NULL", "NULL"
	}
	return fmt.Sprint(v), "text"
}

func parametersOf(q *sandbox.Query) (list []sqlVariable) {
	params := map[string]json.RawMessage{}
	if json.Unmarshal(q.Parameters, &params) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		var text bytes.Buffer
		_ = json.Compact(&text, params[name]) // it was decoded
		list = append(list, sqlVariable{name: name, value: shorten(text.String(), maxSQLRowChars), kind: "parameter"})
	}
	return list
}

func (v sqlView) findings() (list []sqlVariable) {
	if v.answer.stages == nil {
		return nil
	}
	for _, f := range v.answer.stages.Findings {
		name := fmt.Sprintf("line %d: %s (%d)", f.Line, f.Kind, f.Score)
		one := sqlVariable{name: name, value: f.Text, kind: "finding"}
		for _, name := range slices.Sorted(maps.Keys(f.Evidence)) {
			one.parts = append(one.parts, sqlVariable{
				name: name, value: strconv.FormatInt(f.Evidence[name], 10), kind: "number",
			})
		}
		list = append(list, one)
	}
	return list
}

// EvaluateSQL returns the values of a column in the sample of a frame of SQL, a number of its stage, or a parameter.
func (s *Session) EvaluateSQL(ctx context.Context, expression string, frame uint64) (ValueView, error) {
	v, err := s.viewSQL(ctx, int(frame-firstSQLFrame))
	if err != nil {
		return ValueView{}, err
	}
	name := strings.TrimSpace(expression)
	for _, scope := range []int{sqlStage, sqlParameters} {
		for _, one := range v.variables(scope) {
			isMeant := strings.EqualFold(one.name, name)
			if scope == sqlParameters {
				isMeant = ":"+one.name == name
			}
			if isMeant {
				return ValueView{Name: expression, Value: one.value, Type: one.kind}, nil
			}
		}
	}
	stage := v.stage()
	if stage == nil || stage.Sample == nil {
		return ValueView{}, fmt.Errorf("%w: this stage has no sample in which %.100q could be read", ErrRequest, name)
	}
	column := sampleColumn(stage.Sample.Columns, name)
	if column < 0 {
		return ValueView{}, fmt.Errorf("%w: an expression in SQL is one column of the sample (%s), a number of the "+
			"stage (%s) or a parameter; other expressions are not evaluated", ErrRequest,
			shorten(strings.Join(stage.Sample.Columns, ", "), maxReasonChars), strings.Join(stageNumbers, ", "))
	}
	var texts []string
	for _, row := range stage.Sample.Rows {
		if column < len(row) {
			text, _ := sampleValue(row[column])
			texts = append(texts, text)
		}
	}
	return ValueView{
		Name: expression, Value: fmt.Sprintf("%s (in %d rows of the sample)", strings.Join(texts, ", "), len(texts)),
		Type: "column",
	}, nil
}

// sampleColumn returns the index of the column that a name means, with or without its table and quotes, or -1. A name
// of several columns means none: the sample does not say which of them is of the table.
func sampleColumn(columns []string, name string) int {
	clean := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, `"`, "")) }
	find := func(name string) (found, number int) {
		for i, c := range columns {
			if clean(c) == name {
				found = i
				number++
			}
		}
		return found, number
	}
	at, number := find(clean(name))
	if _, bare, isQualified := strings.Cut(clean(name), "."); number == 0 && isQualified {
		at, number = find(bare)
	}
	if number != 1 {
		return -1
	}
	return at
}

// stageNumbers are the numbers of a stage, by the names that conditions have for them.
var stageNumbers = []string{"rows_in", "rows_right", "rows", "lost", "repeated", "multiplied", "null", "ms"}

// stageTexts are the other names of conditions.
var stageTexts = []string{"kind", "state", "reason"}

// stageValues returns the known values of a stage by name: int64, float64 and string.
//
// multiplied is how many rows the join makes of one row of its left side, at most. repeated is how many rows it adds to
// those of its left side that it keeps.
func stageValues(s *stages.Stage) map[string]any {
	values := map[string]any{"kind": s.Kind, "state": s.State, "reason": s.Reason}
	set := func(name string, n *int64) {
		if n != nil {
			values[name] = *n
		}
	}
	set("rows", s.RowsOut)
	set("rows_in", s.RowsIn)
	set("rows_right", s.RowsRight)
	set("lost", s.Lost)
	set("null", s.Null)
	if s.MS > 0 {
		values["ms"] = s.MS
	}
	if s.Kind != stages.KindJoin {
		return values
	}
	m := s.Multiplied
	if m == nil {
		m = &stages.Matches{}
	}
	set("multiplied", m.MaxRight)
	if s.JoinKind == "cross" {
		set("multiplied", s.RowsRight)
	}
	added := int64(0) // rows without one of the left side
	if s.JoinKind == "right" || s.JoinKind == "full" {
		if m.RightUnmatched == nil {
			return values
		}
		added = *m.RightUnmatched
	}
	lost := s.Lost
	if s.JoinKind == "cross" && lost == nil {
		lost = new(int64(0))
	}
	if s.RowsIn != nil && s.RowsOut != nil && lost != nil {
		values["repeated"] = max(*s.RowsOut-added-(*s.RowsIn-*lost), 0)
		if _, has := values["multiplied"]; !has && *s.RowsIn > 0 && *s.RowsOut > *s.RowsIn {
			values["multiplied"] = math.Round(float64(*s.RowsOut)/float64(*s.RowsIn)*100) / 100
		}
	}
	return values
}
