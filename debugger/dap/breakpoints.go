package dap

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
)

// SourceBreakpoint is a line breakpoint as clients send it.
type SourceBreakpoint = godap.SourceBreakpoint

// LineBreakpoints converts breakpoints of a client to those of a session.
func LineBreakpoints(list []SourceBreakpoint) []debugger.LineBreakpoint {
	var out []debugger.LineBreakpoint
	for _, b := range list {
		out = append(out, debugger.LineBreakpoint{Line: b.Line, Condition: b.Condition, HitCondition: b.HitCondition,
			LogMessage: b.LogMessage})
	}
	return out
}

func breakpointBody(v debugger.BreakpointView) godap.Breakpoint {
	return godap.Breakpoint{Id: v.ID, Verified: v.Verified, Line: v.Line, Message: v.Message}
}

func breakpointsBody(views []debugger.BreakpointView) any {
	list := []godap.Breakpoint{}
	for _, v := range views {
		list = append(list, breakpointBody(v))
	}
	return godap.SetBreakpointsResponseBody{Breakpoints: list}
}

func setBreakpoints(ctx context.Context, s *debugger.Session, in godap.SetBreakpointsArguments) (any, error) {
	if in.Breakpoints == nil { // the older form
		for _, line := range in.Lines {
			in.Breakpoints = append(in.Breakpoints, SourceBreakpoint{Line: line})
		}
	}
	if number := statementOf(&in.Source); number > 0 {
		views, err := s.SetSQLBreakpoints(number, LineBreakpoints(in.Breakpoints))
		return breakpointsBody(views), err
	}
	views, err := s.SetLineBreakpoints(ctx, LineBreakpoints(in.Breakpoints))
	return breakpointsBody(views), err
}

func breakpointLocations(_ context.Context, s *debugger.Session, in godap.BreakpointLocationsArguments) (any, error) {
	lines := s.BreakpointLines
	if number := statementOf(&in.Source); number > 0 {
		lines = func(first, last int) []int { return s.SQLBreakpointLines(number, first, last) }
	}
	list := []godap.BreakpointLocation{}
	for _, line := range lines(in.Line, max(in.Line, in.EndLine)) {
		list = append(list, godap.BreakpointLocation{Line: line})
	}
	return godap.BreakpointLocationsResponseBody{Breakpoints: list}, nil
}

func setExceptionBreakpoints(_ context.Context, s *debugger.Session, in godap.SetExceptionBreakpointsArguments) (any,
	error) {
	for _, o := range in.FilterOptions {
		if o.Condition != "" {
			return nil, fmt.Errorf("%w: exception filters take no condition", debugger.ErrRequest)
		}
		in.Filters = append(in.Filters, o.FilterId)
	}
	return empty{}, s.SetExceptionFilters(in.Filters)
}

// dataID returns a variable as an opaque dataId: its frame and name.
func dataID(v debugger.Variable) string { return strconv.FormatUint(v.Frame, 10) + ":" + v.Name }

func parseDataID(text string) (debugger.Variable, error) {
	frame, name, ok := strings.Cut(text, ":")
	number, err := strconv.ParseUint(frame, 10, 64)
	if !ok || err != nil || name == "" {
		return debugger.Variable{}, fmt.Errorf("%w: invalid dataId %.100q; send one that dataBreakpointInfo returned",
			debugger.ErrRequest, text)
	}
	return debugger.Variable{Frame: number, Name: name}, nil
}

func dataBreakpointInfo(_ context.Context, s *debugger.Session, in godap.DataBreakpointInfoArguments) (any, error) {
	v, ok, err := s.Watchable(in.VariablesReference, in.Name)
	if err != nil {
		return nil, err
	}
	if !ok {
		refusal := "only variables of a frame or of the namespace can be watched"
		return godap.DataBreakpointInfoResponseBody{Description: refusal}, nil
	}
	return godap.DataBreakpointInfoResponseBody{
		DataId: dataID(v), Description: in.Name, AccessTypes: []godap.DataBreakpointAccessType{"write"},
	}, nil
}

func setDataBreakpoints(_ context.Context, s *debugger.Session, in godap.SetDataBreakpointsArguments) (any, error) {
	var list []debugger.Variable
	for _, b := range in.Breakpoints {
		if b.Condition != "" || b.HitCondition != "" || b.AccessType != "" && b.AccessType != "write" {
			return nil, fmt.Errorf("%w: a data breakpoint stops at each write; it takes no condition",
				debugger.ErrRequest)
		}
		v, err := parseDataID(b.DataId)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	views, err := s.SetDataBreakpoints(list)
	return breakpointsBody(views), err
}
