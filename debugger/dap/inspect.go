package dap

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
)

// program is the source of every frame. Clients request its text by the reference.
var program = godap.Source{Name: "code", SourceReference: 1}

func source(_ context.Context, s *debugger.Session, in godap.SourceArguments) (any, error) {
	number := statementOf(&godap.Source{SourceReference: in.SourceReference})
	if in.Source != nil && number == 0 {
		number = statementOf(in.Source)
	}
	if number > 0 {
		text, err := s.StatementText(number)
		return godap.SourceResponseBody{Content: text, MimeType: "text/x-sql"}, err
	}
	return godap.SourceResponseBody{Content: s.Source(), MimeType: "text/x-python"}, nil
}

func loadedSources(_ context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
	list := []godap.Source{program}
	if number := s.SQLStatement(); number > 0 {
		list = append(list, *statementSource(number))
	}
	return godap.LoadedSourcesResponseBody{Sources: list}, nil
}

// modules returns the user's module only: libraries are not recorded.
func modules(context.Context, *debugger.Session, json.RawMessage) (any, error) {
	return godap.ModulesResponseBody{Modules: []godap.Module{{Id: 1, Name: "__main__", IsUserCode: true}},
		TotalModules: 1}, nil
}

func threads(_ context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
	found, err := s.Threads()
	list := []godap.Thread{}
	for _, t := range found {
		list = append(list, godap.Thread{Id: int(t.ID), Name: t.Name})
	}
	return godap.ThreadsResponseBody{Threads: list}, err
}

func stackTrace(ctx context.Context, s *debugger.Session, in godap.StackTraceArguments) (any, error) {
	sql, err := s.SQLStack(ctx, uint64(in.ThreadId))
	if err != nil {
		return nil, err
	}
	frames := []godap.StackFrame{}
	for _, f := range sql[min(max(in.StartFrame, 0), len(sql)):] {
		if in.Levels <= 0 || len(frames) < in.Levels {
			frames = append(frames, statementFrame(f))
		}
	}
	levels := in.Levels - len(frames)
	if in.Levels > 0 && levels == 0 { // only the number of frames is needed
		_, total, err := s.Stack(uint64(in.ThreadId), 0, 1)
		return godap.StackTraceResponseBody{StackFrames: frames, TotalFrames: total + len(sql)}, err
	}
	calls, total, err := s.Stack(uint64(in.ThreadId), max(in.StartFrame-len(sql), 0), max(levels, 0))
	for _, c := range calls {
		name := c.Function
		if in.Format != nil && in.Format.Module {
			name = "__main__." + name
		}
		if in.Format != nil && in.Format.Line {
			name += fmt.Sprintf(", line %d", c.Line)
		}
		f := godap.StackFrame{Id: int(c.Frame), Name: name, Line: int(c.Line), Column: 1, Source: &program}
		if c.IsGenerated {
			f.Source = &godap.Source{Name: "code that the program made", PresentationHint: "deemphasize"}
		}
		frames = append(frames, f)
	}
	return godap.StackTraceResponseBody{StackFrames: frames, TotalFrames: total + len(sql)}, err
}

func scopes(ctx context.Context, s *debugger.Session, in godap.ScopesArguments) (any, error) {
	ofFrame := func(_ context.Context, frame uint64) ([]debugger.ScopeView, error) { return s.Scopes(frame) }
	if debugger.IsSQLFrame(uint64(in.FrameId)) {
		ofFrame = s.SQLScopes
	}
	found, err := ofFrame(ctx, uint64(in.FrameId))
	hints := map[string]string{"Locals": "locals", "Globals": "globals"}
	list := []godap.Scope{}
	for _, v := range found {
		list = append(list, godap.Scope{
			Name: v.Name, PresentationHint: hints[v.Name], VariablesReference: v.Reference, NamedVariables: v.Variables,
		})
	}
	return godap.ScopesResponseBody{Scopes: list}, err
}

// formatValue returns a value in the format that the client requested: an integer may be in hexadecimal.
func formatValue(value, valueType string, format *godap.ValueFormat) string {
	if format == nil || !format.Hex || valueType != "int" {
		return value
	}
	n, ok := new(big.Int).SetString(value, 10)
	if !ok {
		return value
	}
	return fmt.Sprintf("%#x", n)
}

// partKinds are the filters of variables.
var partKinds = map[string]debugger.PartKind{
	"": debugger.AllParts, "indexed": debugger.NumberedParts, "named": debugger.NamedParts,
}

func variables(ctx context.Context, s *debugger.Session, in godap.VariablesArguments) (any, error) {
	kind, ok := partKinds[in.Filter]
	if !ok {
		return nil, fmt.Errorf("%w: unknown filter %.100q; want indexed or named", debugger.ErrRequest, in.Filter)
	}
	found, err := s.Variables(ctx, in.VariablesReference, kind, in.Start, in.Count)
	list := []godap.Variable{}
	for _, v := range found {
		list = append(list, godap.Variable{
			Name: v.Name, Value: formatValue(v.Value, v.Type, in.Format), Type: v.Type, EvaluateName: v.Expression,
			VariablesReference: v.Reference, IndexedVariables: int(v.Items), NamedVariables: int(v.Attributes),
		})
	}
	return godap.VariablesResponseBody{Variables: list}, err
}

// evaluateModes are the modes of evaluate by its context.
var evaluateModes = map[string]debugger.EvaluateMode{
	"": debugger.WithStatements, "repl": debugger.WithStatements, "clipboard": debugger.WholeValue,
}

// evaluate adds to the value of a hover the lines that tell where the value comes from.
func evaluate(ctx context.Context, s *debugger.Session, in godap.EvaluateArguments) (any, error) {
	var v debugger.ValueView
	var origin []string
	var err error
	if debugger.IsSQLFrame(uint64(in.FrameId)) {
		v, err = s.EvaluateSQL(ctx, in.Expression, uint64(in.FrameId))
	} else if in.Context == "hover" {
		v, origin, err = s.Hover(ctx, in.Expression, uint64(in.FrameId))
	} else {
		v, err = s.Evaluate(ctx, in.Expression, uint64(in.FrameId), evaluateModes[in.Context])
	}
	lines := append([]string{formatValue(v.Value, v.Type, in.Format)}, origin...)
	return godap.EvaluateResponseBody{
		Result: strings.Join(lines, "\n"), Type: v.Type,
		VariablesReference: v.Reference, IndexedVariables: int(v.Items), NamedVariables: int(v.Attributes),
	}, err
}

func setVariable(ctx context.Context, s *debugger.Session, in godap.SetVariableArguments) (any, error) {
	v, err := s.SetVariable(ctx, in.VariablesReference, in.Name, in.Value)
	return godap.SetVariableResponseBody{Value: formatValue(v.Value, v.Type, in.Format), Type: v.Type}, err
}

func setExpression(ctx context.Context, s *debugger.Session, in godap.SetExpressionArguments) (any, error) {
	if debugger.IsSQLFrame(uint64(in.FrameId)) {
		return nil, errSQLFrame
	}
	v, err := s.SetExpression(ctx, in.Expression, in.Value, uint64(in.FrameId))
	return godap.SetExpressionResponseBody{Value: formatValue(v.Value, v.Type, in.Format), Type: v.Type}, err
}

// completionItem is a completion. The type of go-dap omits a start of 0, and clients then use the position of the
// cursor as the start.
type completionItem struct {
	Label  string `json:"label"`
	Start  int    `json:"start"`
	Length int    `json:"length"`
}

func completions(ctx context.Context, s *debugger.Session, in godap.CompletionsArguments) (any, error) {
	if debugger.IsSQLFrame(uint64(in.FrameId)) {
		return map[string]any{"targets": []completionItem{}}, nil
	}
	text := []rune(in.Text)
	begin := 0 // of the line of the cursor
	for line := 1; line < in.Line; line++ {
		at := slices.Index(text[begin:], '\n')
		if at < 0 {
			break
		}
		begin += at + 1
	}
	if in.Column >= 1 && begin+in.Column-1 < len(text) {
		text = text[:begin+in.Column-1]
	}
	names, start, err := s.Complete(ctx, string(text), uint64(in.FrameId))
	targets := []completionItem{}
	for _, name := range names {
		targets = append(targets, completionItem{name, start, len(text) - start})
	}
	return map[string]any{"targets": targets}, err
}

func exceptionInfo(_ context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
	e, err := s.Exception()
	mode := godap.ExceptionBreakMode("unhandled")
	if e.StopsIfCaught {
		mode = "always"
	}
	if err != nil {
		return nil, err
	}
	var inner []godap.ExceptionDetails
	for _, each := range slices.Backward(e.Earlier) { // each has the one that led to it
		inner = []godap.ExceptionDetails{{
			Message: each.Message, TypeName: each.Type, FullTypeName: each.Type, InnerException: inner,
		}}
	}
	return godap.ExceptionInfoResponseBody{
		ExceptionId: e.Type, Description: e.Message, BreakMode: mode,
		Details: &godap.ExceptionDetails{Message: e.Message, TypeName: e.Type, FullTypeName: e.Type,
			StackTrace: e.Traceback, InnerException: inner},
	}, nil
}
