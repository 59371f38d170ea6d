package dap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	godap "github.com/google/go-dap"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// request is a request of the protocol. Exactly one of session, connection and beforeAttach is set.
type request struct {
	name         string
	needsStop    bool   // refused while the program runs
	drives       bool   // acts on the session for all clients, so only the client that drives it may send it
	moves        bool   // changes the session's position
	immediate    bool   // executed when it is read, before the requests that wait
	capabilities string // capabilities that initialize announces for this request, separated by spaces

	// session executes a request on the session, and returns the body of its response.
	session sessionHandler
	// connection executes a request that concerns one client's connection. The client must be attached.
	connection func(c *connection, ctx context.Context, arguments json.RawMessage) (any, error)
	// beforeAttach executes a request that is also allowed before attach, and sends its response.
	beforeAttach func(c *connection, ctx context.Context, r message) error
}

type sessionHandler func(context.Context, *debugger.Session, json.RawMessage) (any, error)

// table lists all requests. init fills it, because some handlers use it.
var table []request

func init() {
	table = []request{
		{name: "initialize", beforeAttach: (*connection).initialize},
		{name: "attach", beforeAttach: (*connection).attach},
		{name: "launch", beforeAttach: (*connection).attach},
		{name: "disconnect", beforeAttach: (*connection).disconnect, capabilities: "supportTerminateDebuggee"},
		{name: "cancel", immediate: true, beforeAttach: (*connection).cancel, capabilities: "supportsCancelRequest"},
		{name: "configurationDone", connection: (*connection).configurationDone,
			capabilities: "supportsConfigurationDoneRequest"},
		{name: "restart", connection: (*connection).restart, capabilities: "supportsRestartRequest"},
		{name: "terminate", drives: true, connection: (*connection).terminate,
			capabilities: "supportsTerminateRequest"},

		{name: "continue", needsStop: true, drives: true, moves: true, session: move(debugger.Continue)},
		{name: "next", needsStop: true, drives: true, moves: true, session: move(debugger.Next)},
		{name: "stepIn", needsStop: true, drives: true, moves: true, session: decoded(stepIn)},
		{name: "stepInTargets", needsStop: true, session: decoded(stepInTargets),
			capabilities: "supportsStepInTargetsRequest"},
		{name: "stepOut", needsStop: true, drives: true, moves: true, session: move(debugger.StepOut)},
		{name: "stepBack", needsStop: true, drives: true, moves: true, session: move(debugger.StepBack),
			capabilities: "supportsStepBack"},
		{name: "reverseContinue", needsStop: true, drives: true, moves: true, session: move(debugger.ReverseContinue)},
		{name: "goto", needsStop: true, drives: true, moves: true, session: decoded(gotoStep)},
		{name: "gotoTargets", needsStop: true, session: decoded(gotoTargets),
			capabilities: "supportsGotoTargetsRequest"},
		{name: "restartFrame", needsStop: true, drives: true, moves: true, session: decoded(restartFrame),
			capabilities: "supportsRestartFrame"},
		{name: "pause", drives: true, moves: true, session: pause},

		{name: "setBreakpoints", drives: true, session: decoded(setBreakpoints),
			capabilities: "supportsConditionalBreakpoints supportsHitConditionalBreakpoints supportsLogPoints"},
		{name: "breakpointLocations", session: decoded(breakpointLocations),
			capabilities: "supportsBreakpointLocationsRequest"},
		{name: "setExceptionBreakpoints", drives: true, session: decoded(setExceptionBreakpoints),
			capabilities: "supportsExceptionFilterOptions"},
		{name: "dataBreakpointInfo", needsStop: true, session: decoded(dataBreakpointInfo)},
		{name: "setDataBreakpoints", drives: true, session: decoded(setDataBreakpoints),
			capabilities: "supportsDataBreakpoints"},

		{name: "threads", session: threads},
		{name: "stackTrace", needsStop: true, session: decoded(stackTrace),
			capabilities: "supportsDelayedStackTraceLoading"},
		{name: "scopes", needsStop: true, session: decoded(scopes)},
		{name: "variables", needsStop: true, session: decoded(variables),
			capabilities: "supportsValueFormattingOptions"},
		{name: "evaluate", needsStop: true, drives: true, session: decoded(evaluate),
			capabilities: "supportsEvaluateForHovers supportsClipboardContext"},
		{name: "setVariable", needsStop: true, drives: true, session: decoded(setVariable),
			capabilities: "supportsSetVariable"},
		{name: "setExpression", needsStop: true, drives: true, session: decoded(setExpression),
			capabilities: "supportsSetExpression"},
		{name: "completions", needsStop: true, session: decoded(completions),
			capabilities: "supportsCompletionsRequest"},
		{name: "exceptionInfo", needsStop: true, session: exceptionInfo, capabilities: "supportsExceptionInfoRequest"},

		{name: "source", session: decoded(source)},
		{name: "loadedSources", session: loadedSources, capabilities: "supportsLoadedSourcesRequest"},
		{name: "modules", session: modules, capabilities: "supportsModulesRequest"},
	}
}

// find returns a request by its name, or nil.
func find(name string) *request {
	for i := range table {
		if table[i].name == name {
			return &table[i]
		}
	}
	return nil
}

// unsupportedError is the error for a request that is not in the table. It is a debugger.ErrRequest.
type unsupportedError struct{ command string }

func (e unsupportedError) Error() string { return fmt.Sprintf("unsupported request %q", e.command) }
func (e unsupportedError) Unwrap() error { return debugger.ErrRequest }

// SessionRequests returns the names of the requests that Do executes.
func SessionRequests() []string { return names(func(r *request) bool { return r.session != nil }) }

// Requests returns the names of all requests, in the order of the table.
func Requests() []string { return names(func(*request) bool { return true }) }

func names(included func(*request) bool) []string {
	var list []string
	for i := range table {
		if included(&table[i]) {
			list = append(list, table[i].name)
		}
	}
	return list
}

// Drives reports whether a request acts on the session for all its clients.
func Drives(command string) bool {
	r := find(command)
	return r != nil && r.drives
}

// Moves reports whether a request changes the session's position.
func Moves(command string) bool {
	r := find(command)
	return r != nil && r.moves
}

// Do executes one request on a session and returns the body of its response. A request that moves the session is
// answered when the program runs; Session.WaitForStop waits for the stop. Do returns debugger.ErrRunning for a request
// that needs a stopped program, and debugger.ErrRequest for an unsupported or invalid one.
func Do(ctx context.Context, s *debugger.Session, command string, arguments json.RawMessage) (any, error) {
	r := find(command)
	if r == nil || r.session == nil {
		return nil, unsupportedError{command}
	}
	return r.do(ctx, s, arguments)
}

func (r *request) do(ctx context.Context, s *debugger.Session, arguments json.RawMessage) (any, error) {
	s.Use()
	if r.needsStop && s.IsRunning() {
		return nil, debugger.ErrRunning
	}
	return r.session(ctx, s, arguments)
}

// decoded returns a handler that decodes the request's arguments.
func decoded[T any](handle func(context.Context, *debugger.Session, T) (any, error)) sessionHandler {
	return func(ctx context.Context, s *debugger.Session, arguments json.RawMessage) (any, error) {
		var in T
		if err := decode(arguments, &in); err != nil {
			return nil, err
		}
		return handle(ctx, s, in)
	}
}

// decode decodes the arguments of a request. Without arguments, v keeps its values. A key must have the protocol's
// case, and may be given once; encoding/json would take EXPRESSION for expression, and the last of two. As in JSON
// Schema, in which the protocol is written, 1.0 and 1e2 are integers.
func decode(arguments json.RawMessage, v any) error {
	if len(arguments) == 0 {
		return nil
	}
	unmarshal := func(text []byte) error {
		return jsonv2.Unmarshal(text, v, jsonv1.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false),
			jsontext.AllowDuplicateNames(false))
	}
	err := unmarshal(arguments)
	if err != nil {
		if integers := sandbox.WithIntegers(arguments); !bytes.Equal(integers, arguments) {
			err = unmarshal(integers)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: invalid arguments: %w", debugger.ErrRequest, err)
	}
	return nil
}

// capabilities returns the body of the response to initialize.
func capabilities() map[string]any {
	announced := map[string]any{
		"completionTriggerCharacters": []string{"."},
		"exceptionBreakpointFilters": []godap.ExceptionBreakpointsFilter{
			{Filter: debugger.FilterUncaught, Label: "Uncaught exceptions", Default: true},
			{Filter: debugger.FilterRaised, Label: "Raised exceptions"},
		},
	}
	for _, r := range table {
		for name := range strings.FieldsSeq(r.capabilities) {
			announced[name] = true
		}
	}
	return announced
}

// empty is the body of a response without fields.
type empty struct{}
