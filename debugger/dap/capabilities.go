package dap

import (
	"encoding/json"
	"slices"

	"glasshouse/debugger"
)

// capabilities are what initialize announces. Each has an effect that a test sees.
var capabilities = map[string]any{
	"supportsConfigurationDoneRequest": true, "supportsConditionalBreakpoints": true, "supportsHitConditionalBreakpoints": true, "supportsLogPoints": true,
	"supportsEvaluateForHovers": true, "supportsStepBack": true, "supportsSetVariable": true, "supportsCompletionsRequest": true,
	"supportsExceptionInfoRequest": true, "supportsDataBreakpoints": true, "supportsTerminateRequest": true, "supportsLoadedSourcesRequest": true,
	"supportTerminateDebuggee": true, "supportsGotoTargetsRequest": true, "supportsBreakpointLocationsRequest": true, "supportsRestartFrame": true,
	"supportsSetExpression": true, "supportsModulesRequest": true, "supportsRestartRequest": true, "supportsCancelRequest": true,
	"supportsDelayedStackTraceLoading": true, "supportsValueFormattingOptions": true, "supportsExceptionFilterOptions": true,
	"completionTriggerCharacters": []string{"."},
	"exceptionBreakpointFilters": []any{
		map[string]any{"filter": "uncaught", "label": "Uncaught exceptions", "default": true},
		map[string]any{"filter": "raised", "label": "Raised exceptions", "default": false},
	},
}

// own are the requests of a connection; the others are the session's.
var own = []string{"initialize", "attach", "launch", "configurationDone", "restart", "terminate", "disconnect", "cancel"}

// Requests are those that are answered.
func Requests() []string { return append(slices.Clone(own), debugger.Requests()...) }

// client is what initialize says of the client.
type client struct {
	Lines    *bool `json:"linesStartAt1"`
	Columns  *bool `json:"columnsStartAt1"`
	Progress bool  `json:"supportsProgressReporting"`
}

// counts says which fields, of those that name a place, the client counts from 0.
func (c client) counts() []string {
	var fields []string
	if c.Lines != nil && !*c.Lines {
		fields = append(fields, "line", "endLine", "lines")
	}
	if c.Columns != nil && !*c.Columns {
		fields = append(fields, "column", "endColumn")
	}
	return fields
}

// taken are the arguments of a client as we count.
func (c client) taken(arguments json.RawMessage) json.RawMessage {
	fields := c.counts()
	if fields == nil || len(arguments) == 0 {
		return arguments
	}
	var v any
	if json.Unmarshal(arguments, &v) != nil {
		return arguments // who reads it says so
	}
	text, _ := json.Marshal(shift(v, fields, 1)) // it was JSON
	return text
}

// shift adds to the numbers of some fields, wherever they are.
func shift(v any, fields []string, by float64) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = shift(v[i], fields, by)
		}
	case map[string]any:
		for name, value := range v {
			if slices.Contains(fields, name) {
				value = add(value, by)
			}
			v[name] = shift(value, fields, by)
		}
	}
	return v
}

func add(v any, by float64) any {
	switch v := v.(type) {
	case float64:
		return v + by
	case []any:
		for i := range v {
			v[i] = add(v[i], by)
		}
	}
	return v
}
