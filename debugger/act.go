package debugger

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
)

// childAnswer reads what the program answered, which says what failed as "error".
func childAnswer[T any](text []byte) (T, error) {
	var failed struct {
		Error string `json:"error"`
	}
	var v T
	if err := json.Unmarshal(text, &failed); err != nil {
		return v, fmt.Errorf("the program's answer: %w", err)
	}
	if failed.Error != "" {
		return v, fmt.Errorf("%w: %s", ErrRequest, failed.Error)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("the program's answer: %w", err)
	}
	return v, nil
}

func (s *Session) evaluate(ctx context.Context, at int, tip bool, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Expression string `json:"expression"`
		Frame      uint64 `json:"frameId"`
		Context    string `json:"context"`
		formatted
	}](arguments)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Expression) == "" {
		return nil, fmt.Errorf("%w: evaluate needs an expression", ErrRequest)
	}
	var v VariableView
	if tip {
		text, err := s.do(ctx, map[string]any{"do": "evaluate", "expression": in.Expression, "frame": in.Frame, "statements": in.Context == "repl" || in.Context == ""})
		if err == nil {
			v, err = childAnswer[VariableView](text)
		}
		if err != nil {
			return nil, err
		}
	} else {
		condition, err := ParseCondition(in.Expression)
		if err != nil {
			return nil, fmt.Errorf("%w: %w; at a past step only what is recorded can be asked for", ErrRequest, err)
		}
		if v, err = s.journal.evaluate(condition, at, in.Frame); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Name = in.Expression
	shown, err := s.shown(in.format(v), ref{scope: true, frame: in.Frame})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"result": shown.Value, "type": shown.Type, "variablesReference": shown.VariablesReference, "indexedVariables": shown.IndexedVariables, "namedVariables": shown.NamedVariables,
	}, nil
}

func (s *Session) setVariable(ctx context.Context, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Ref   int    `json:"variablesReference"`
		Name  string `json:"name"`
		Value string `json:"value"`
		formatted
	}](arguments)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	r, err := s.referred(in.Ref)
	s.mu.Unlock()
	if err == nil && !r.scope {
		err = fmt.Errorf("%w: only variables of a frame or of the namespace can be set; evaluate %s = ... for a part of one", ErrRequest, r.expression)
	}
	if err != nil {
		return nil, err
	}
	return s.set(ctx, r.frame, in.Name, in.Value, in.formatted)
}

// set gives a variable of a frame a value.
func (s *Session) set(ctx context.Context, frame uint64, name, value string, shown formatted) (any, error) {
	text, err := s.do(ctx, map[string]any{"do": "set", "name": name, "expression": value, "frame": frame})
	if err != nil {
		return nil, err
	}
	v, err := childAnswer[VariableView](text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overlay[Variable{frame, name}] = v
	v = shown.format(v)
	return map[string]any{"value": v.Value, "type": v.Type, "variablesReference": 0}, nil
}

var identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// setExpression assigns to what an expression names, and shows what it is then.
func (s *Session) setExpression(ctx context.Context, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Expression string `json:"expression"`
		Value      string `json:"value"`
		Frame      uint64 `json:"frameId"`
		formatted
	}](arguments)
	if err != nil {
		return nil, err
	}
	var v VariableView
	if identifier.MatchString(in.Expression) { // of a function's locals an assignment reaches only a copy
		return s.set(ctx, in.Frame, in.Expression, in.Value, in.formatted)
	}
	for _, text := range []string{in.Expression + " = (" + in.Value + "\n)", in.Expression} {
		answer, err := s.do(ctx, map[string]any{"do": "evaluate", "expression": text, "frame": in.Frame, "statements": true})
		if err == nil {
			v, err = childAnswer[VariableView](answer)
		}
		if err != nil {
			return nil, err
		}
	}
	v = in.format(v)
	return map[string]any{"value": v.Value, "type": v.Type}, nil
}

func (s *Session) completions(ctx context.Context, arguments json.RawMessage) (any, error) {
	in, err := take[struct {
		Frame  uint64 `json:"frameId"`
		Text   string `json:"text"`
		Column int    `json:"column"`
	}](arguments)
	if err != nil {
		return nil, err
	}
	text := []rune(in.Text)
	if in.Column >= 1 && in.Column-1 < len(text) {
		text = text[:in.Column-1]
	}
	answer, err := s.do(ctx, map[string]any{"do": "complete", "text": string(text), "frame": in.Frame})
	if err != nil {
		return nil, err
	}
	found, err := childAnswer[struct {
		Names []string `json:"names"`
		Start int      `json:"start"`
	}](answer)
	if err != nil {
		return nil, err
	}
	type target struct {
		Label  string `json:"label"`
		Start  int    `json:"start"`
		Length int    `json:"length"`
	}
	targets := []target{}
	for _, name := range found.Names {
		targets = append(targets, target{name, found.Start, len(text) - found.Start})
	}
	return map[string]any{"targets": targets}, nil
}

// evaluate shows what an expression comes to in a frame at a step; frame 0 is the step's.
func (j *Journal) evaluate(c *Condition, step int, frame uint64) (VariableView, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, err := j.state(step)
	if err != nil {
		return VariableView{}, err
	}
	if frame == 0 {
		frame = s.Current
	}
	if c.node.op == "name" {
		v, ok := s.LookUp(&j.table, frame, c.node.text)
		if !ok {
			return VariableView{}, fmt.Errorf("there is no %s here", c.node.text)
		}
		return s.variable(&j.table, c.Text, v), nil
	}
	v, err := c.Value(s, &j.table, frame)
	if err != nil {
		return VariableView{}, err
	}
	switch v := v.(type) {
	case nil:
		return VariableView{Value: "None", Type: "NoneType"}, nil
	case bool:
		return VariableView{Value: map[bool]string{true: "True", false: "False"}[v], Type: "bool"}, nil
	case *big.Int:
		return VariableView{Value: v.String(), Type: "int"}, nil
	case float64:
		return VariableView{Value: double(math.Float64bits(v)), Type: "float"}, nil
	case string:
		return VariableView{Value: pythonText(v), Type: "str"}, nil
	case object:
		return s.variable(&j.table, c.Text, Value{Tag: TagObject, Object: uint64(v)}), nil
	}
	return VariableView{Value: "[...]", Type: "list"}, nil
}
