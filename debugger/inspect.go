package debugger

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// DAPVariable is a variable in DAP's words.
type DAPVariable struct {
	Name               string `json:"name"`
	Value              string `json:"value"`
	Type               string `json:"type,omitempty"`
	VariablesReference int    `json:"variablesReference"`
	IndexedVariables   int64  `json:"indexedVariables,omitempty"`
	NamedVariables     int64  `json:"namedVariables,omitempty"`
	EvaluateName       string `json:"evaluateName,omitempty"`
}

const maxVariables = 500 // of one page

// inspect answers what only looks, and what acts on the program that stands.
func (s *Session) inspect(ctx context.Context, request string, arguments json.RawMessage) (any, error) {
	switch request {
	case "source":
		return map[string]any{"content": strings.Join(s.source, "\n"), "mimeType": "text/x-python"}, nil
	case "loadedSources":
		return map[string]any{"sources": []any{program}}, nil
	case "modules": // the user's own: of libraries nothing is recorded
		return map[string]any{"modules": []any{map[string]any{"id": 1, "name": "__main__", "isUserCode": true}}, "totalModules": 1}, nil
	case "breakpointLocations":
		return s.breakpointLocations(arguments)
	}
	s.mu.Lock()
	if s.state == StateRunning {
		s.mu.Unlock()
		return nil, ErrRunning
	}
	at, tip := s.where.Step, s.live && s.where.Tip
	s.mu.Unlock()
	switch request {
	case "threads":
		return s.threads(at)
	case "stackTrace":
		return s.stackTrace(at, arguments)
	case "scopes":
		return s.scopes(at, arguments)
	case "variables":
		return s.variables(ctx, at, tip, arguments)
	case "dataBreakpointInfo":
		return s.dataBreakpointInfo(arguments)
	case "gotoTargets":
		return s.gotoTargets(ctx, arguments)
	case "exceptionInfo":
		return s.exceptionInfo(at)
	case "evaluate":
		return s.evaluate(ctx, at, tip, arguments)
	case "setVariable", "setExpression", "completions":
		if !tip {
			return nil, ErrPast
		}
		switch request {
		case "setVariable":
			return s.setVariable(ctx, arguments)
		case "setExpression":
			return s.setExpression(ctx, arguments)
		}
		return s.completions(ctx, arguments)
	}
	return nil, fmt.Errorf("%w: %q is no request here", ErrRequest, request)
}

// formatted is how a client wants values.
type formatted struct {
	Format struct {
		Hex bool `json:"hex"`
	} `json:"format"`
}

func (f formatted) format(v VariableView) VariableView {
	if n, ok := new(big.Int).SetString(v.Value, 10); ok && f.Format.Hex && v.Type == "int" {
		v.Value = fmt.Sprintf("%#x", n)
	}
	return v
}

// program is the source that every frame is of.
var program = map[string]any{"name": "code", "sourceReference": 1}

func (s *Session) threads(at int) (any, error) {
	j := s.journal
	j.mu.RLock()
	defer j.mu.RUnlock()
	st, err := j.state(at)
	if err != nil {
		return nil, err
	}
	type thread struct {
		ID   uint64 `json:"id"`
		Name string `json:"name"`
	}
	list := []thread{}
	seen := map[uint64]bool{}
	for _, number := range sortedKeys(st.Frames) {
		if lane := st.Frames[number].Lane; !seen[lane] {
			seen[lane] = true
			list = append(list, thread{lane, j.table.Thread(lane).Name})
		}
	}
	return map[string]any{"threads": list}, nil
}

func (s *Session) stackTrace(at int, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Thread uint64 `json:"threadId"`
		Start  int    `json:"startFrame"`
		Levels int    `json:"levels"`
		Format struct {
			Line   bool `json:"line"`
			Module bool `json:"module"`
		} `json:"format"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	j := s.journal
	j.mu.RLock()
	defer j.mu.RUnlock()
	st, err := j.state(at)
	if err != nil {
		return nil, err
	}
	from := st.Current
	if here := st.Frames[from]; in.Thread != 0 && here != nil && here.Lane != in.Thread {
		from = 0 // of another thread: its innermost frame is the one that nobody else was called from last
		for number, f := range st.Frames {
			if f.Lane == in.Thread && number > from && !f.Suspended {
				from = number
			}
		}
	}
	type stackFrame struct {
		ID     uint64 `json:"id"`
		Name   string `json:"name"`
		Line   int64  `json:"line"`
		Column int    `json:"column"`
		Source any    `json:"source"`
	}
	stack := st.Stack(from)
	levels := in.Levels
	if levels <= 0 {
		levels = maxStack
	}
	frames := []stackFrame{}
	for _, f := range page(stack, in.Start, levels) {
		name := j.table.Name(j.table.Code(f.Code).Name)
		if in.Format.Module {
			name = "__main__." + name
		}
		if in.Format.Line {
			name += fmt.Sprintf(", line %d", f.Line)
		}
		frames = append(frames, stackFrame{f.Number, name, f.Line, 1, program})
	}
	return map[string]any{"stackFrames": frames, "totalFrames": len(stack)}, nil
}

func (s *Session) scopes(at int, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Frame uint64 `json:"frameId"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	type scopeView struct {
		Name      string `json:"name"`
		Hint      string `json:"presentationHint,omitempty"`
		Ref       int    `json:"variablesReference"`
		Named     int    `json:"namedVariables"`
		Expensive bool   `json:"expensive"`
	}
	list := []scopeView{}
	st, err := s.journal.State(at)
	if err != nil {
		return nil, err
	}
	f := st.Frames[in.Frame]
	if f == nil {
		return nil, fmt.Errorf("frame %d: %w", in.Frame, ErrNoFrame)
	}
	table := s.journal.Table()
	s.mu.Lock()
	defer s.mu.Unlock()
	if table.Name(table.Code(f.Code).Name) != module {
		number, err := s.refer(ref{scope: true, frame: in.Frame})
		if err != nil {
			return nil, err
		}
		list = append(list, scopeView{"Locals", "locals", number, len(f.Variables), false})
	}
	_, total, _ := st.Scope(&table, 0, 0, 0)
	number, err := s.refer(ref{scope: true})
	if err != nil {
		return nil, err
	}
	list = append(list, scopeView{"Globals", "globals", number, total, false})
	return map[string]any{"scopes": list}, nil
}

func (s *Session) variables(ctx context.Context, at int, tip bool, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Ref    int    `json:"variablesReference"`
		Filter string `json:"filter"`
		Start  int    `json:"start"`
		Count  int    `json:"count"`
		formatted
	}](arguments)
	if err != nil {
		return nil, err
	}
	if in.Count <= 0 || in.Count > maxVariables {
		in.Count = maxVariables
	}
	s.mu.Lock()
	r, err := s.referred(in.Ref)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var list []VariableView
	if kind := map[bool]string{true: "indexed", false: "named"}[r.indexed]; in.Filter != "" && in.Filter != kind {
		return map[string]any{"variables": []DAPVariable{}}, nil
	}
	if r.scope {
		list, _, err = s.journal.Scope(at, r.frame, in.Start, in.Count)
	} else {
		list, err = s.contents(ctx, at, tip, r, in.Start, in.Count)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []DAPVariable{}
	for _, v := range list {
		if set, ok := s.overlay[Variable{r.frame, v.Name}]; ok && r.scope && tip {
			v.Value, v.Type, v.Ref, v.Length = set.Value, set.Type, 0, nil
		}
		shown, err := s.shown(in.format(v), r)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return map[string]any{"variables": out}, nil
}

// contents is a page of an object: the program's own where it stands here, and has more
// than the recording.
func (s *Session) contents(ctx context.Context, at int, tip bool, r ref, start, count int) ([]VariableView, error) {
	if r.object != 0 {
		view, err := s.journal.Contents(at, r.object, start, count)
		if err != nil {
			return nil, err
		}
		if !tip || view.Length == nil || int64(view.Kept) >= *view.Length || r.expression == "" {
			return view.Items, nil
		}
	}
	if !tip {
		return nil, ErrPast
	}
	text, err := s.do(ctx, map[string]any{"do": "page", "expression": r.expression, "frame": r.frame, "start": start, "count": count})
	if err != nil {
		return nil, err
	}
	answer, err := childAnswer[struct {
		Items []VariableView `json:"items"`
	}](text)
	return answer.Items, err
}

// shown is a variable in DAP's words, with a reference where it can be opened.
func (s *Session) shown(v VariableView, parent ref) (out DAPVariable, err error) {
	out = DAPVariable{Name: v.Name, Value: v.Value, Type: v.Type}
	expression := v.Name
	if !parent.scope {
		switch {
		case parent.expression == "" || v.Name == "":
			expression = ""
		case v.Name[0] == '[':
			expression = parent.expression + v.Name
		case v.Name[0] >= '0' && v.Name[0] <= '9' || v.Name[0] == '\'' || v.Name[0] == '"':
			expression = parent.expression + "[" + v.Name + "]"
		default:
			expression = parent.expression + "." + v.Name
		}
	}
	out.EvaluateName = expression
	switch {
	case v.Length != nil && v.named:
		out.NamedVariables = *v.Length
	case v.Length != nil:
		out.IndexedVariables = *v.Length
	}
	if v.Ref != 0 || v.Length != nil {
		out.VariablesReference, err = s.refer(ref{frame: parent.frame, object: v.Ref, indexed: v.Length != nil && !v.named, expression: expression})
	}
	return out, err
}

func (s *Session) dataBreakpointInfo(arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Ref   int    `json:"variablesReference"`
		Frame uint64 `json:"frameId"`
		Name  string `json:"name"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Ref > 0 {
		r, err := s.referred(in.Ref)
		if err != nil {
			return nil, err
		}
		if !r.scope {
			return map[string]any{"dataId": nil, "description": "only variables of a frame or of the namespace can be watched"}, nil
		}
		in.Frame = r.frame
	} else if v, err := s.journal.Resolve(s.where.Step, in.Name); err == nil {
		in.Frame = v.Frame
	}
	return map[string]any{"dataId": dataID(Variable{in.Frame, in.Name}), "description": in.Name, "accessTypes": []string{"write"}, "canPersist": false}, nil
}

func (s *Session) exceptionInfo(at int) (any, error) {
	s.mu.Lock()
	w, mode := s.where, "unhandled"
	if slices.Contains(s.wishes.Exceptions, "raised") {
		mode = "always"
	}
	s.mu.Unlock()
	if w.Reason == string(ReasonException) && w.Description != "" && w.Tip {
		return map[string]any{"exceptionId": w.Description, "breakMode": mode}, nil
	}
	lines, err := s.journal.Lines(at, at, s.source)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || lines[0].Status != StatusException {
		return nil, fmt.Errorf("%w: there is no exception at this step", ErrRequest)
	}
	name, _, _ := strings.Cut(lines[0].Error, ":")
	return map[string]any{"exceptionId": name, "description": lines[0].Error, "breakMode": mode}, nil
}
