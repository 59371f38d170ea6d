// Package mcpapi serves the service over the Model Context Protocol (MCP): eleven tools and three resource templates.
//
// The package translates; it holds no rules of its own. A session of a tool is a sandbox, which the caller names in the
// arguments, so the server itself is stateless: one handler serves protocol versions with a session (2025-11-25 and
// older) and without one (2026-07-28). Every call authenticates its key, and one whose key is revoked ends.
//
// A model pays for each character that it reads. Therefore each answer has a bound, and a cut says how to read the
// rest. docs/mcp.md has the sizes. Answers have no structured content, because several clients give it to their model
// instead of the text and the images; that of explain_query has the whole text in it.
package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/database"
	"glasshouse/service/debug"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

// maxTextChars is the maximum number of characters of the text of an answer: a long table or traceback, and a small
// part of what a model can read.
const maxTextChars = run.DefaultModelTextChars

// Config configures the server.
type Config struct {
	Live      *live.Service
	Runs      *run.Service
	Databases *database.Service
	Records   *records.Service
	Debug     *debug.Service
	Log       logrus.FieldLogger
	Version   string // of Glasshouse, which clients show

	CPU *limit.CPU // for computations of the server; nil: users do not take turns
}

// Server is the MCP server.
type Server struct {
	live      *live.Service
	runs      *run.Service
	databases *database.Service
	records   *records.Service
	debug     *debug.Service
	log       logrus.FieldLogger
	mcp       *mcp.Server
	http      http.Handler
	tools     []registeredTool // in the order of their registration
	cpu       *limit.CPU
	images    *limit.CPU // one computation at a time
	calls     runningCalls
}

const instructions = "Glasshouse runs Python in an isolated sandbox next to a PostgreSQL database that code can only " +
	"read. Start with describe_database. Use query_database for one statement and run_python for analysis: " +
	"variables, imports and files stay in a session. If a run fails, read the hint and the variables in its " +
	"answer, or ask explain_execution. If a value looks wrong, ask explain_execution with value:NAME." +
	" If rows of a query look wrong, ask explain_query."

// New returns a server.
func New(c Config) *Server {
	s := &Server{
		live: c.Live, runs: c.Runs, databases: c.Databases, records: c.Records, debug: c.Debug, log: c.Log,
		cpu: c.CPU, images: c.CPU.Serial(0),
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "glasshouse", Title: "Glasshouse", Version: c.Version},
		&mcp.ServerOptions{Instructions: instructions, Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, // neither list changes
		}})
	s.mcp.AddReceivingMiddleware(answerLateInitialize, s.nameTools)
	s.addTools()
	s.addResources()
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp },
		&mcp.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: -1, // the router bounds bodies
			DisableLocalhostProtection: true, // every request has a key, which a page of another site does not have
			Logger:                     slog.New(slog.DiscardHandler),
		})
	// The SDK hands the identity of the caller to tools only through its own middleware.
	s.http = auth.RequireBearerToken(identify, nil)(streamable)
	return s
}

type callerKey struct{}

// ServeHTTP serves one request of a caller who is authenticated.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	message := newClientMessage(r, caller)
	ctx := context.WithValue(context.WithValue(r.Context(), callerKey{}, caller), clientMessageKey{}, message)
	r = r.WithContext(ctx)
	r.Body = message
	s.http.ServeHTTP(w, r)
	if id, ok := message.cancelled(); ok { // the SDK looks for the call in the session of this request, which has none
		s.calls.cancel(id)
	}
}

// identify returns the caller that ServeHTTP put into the request's context.
func identify(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
	caller, ok := r.Context().Value(callerKey{}).(sandbox.Key)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{
		UserID: caller.User, Expiration: time.Now().Add(time.Hour),
		Extra: map[string]any{"caller": caller, "request": r.Context()},
	}, nil
}

// ServeStream serves one client, who is the caller, over a pair of streams until ctx or the input ends.
func (s *Server) ServeStream(ctx context.Context, in io.ReadCloser, out io.WriteCloser, caller sandbox.Key) error {
	return s.mcp.Run(context.WithValue(ctx, callerKey{}, caller), &mcp.IOTransport{Reader: in, Writer: out})
}

// callerOf returns who called a tool.
func callerOf(ctx context.Context, extra *mcp.RequestExtra) (sandbox.Key, error) {
	if extra != nil && extra.TokenInfo != nil {
		if caller, ok := extra.TokenInfo.Extra["caller"].(sandbox.Key); ok {
			return caller, nil
		}
	}
	if caller, ok := ctx.Value(callerKey{}).(sandbox.Key); ok {
		return caller, nil
	}
	return sandbox.Key{}, errors.New("the call has no API key")
}

// whileWanted returns a context that also ends when the caller's key is revoked or expires, when the client leaves, or
// when it sends that the call is cancelled. In versions of the protocol before 2026-07-28 the SDK lets a call go on, as
// another connection may fetch the answer of a session; but this server has no sessions, so nobody could.
func (s *Server) whileWanted(ctx context.Context, extra *mcp.RequestExtra) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	request := requestOf(extra)
	if request == nil {
		return ctx, func() { cancel(nil) }
	}
	ctx = limit.WithBodyOf(ctx, request)
	stopWatching := context.AfterFunc(request, func() { cancel(context.Cause(request)) })
	forget := s.calls.add(request, func() { cancel(context.Canceled) })
	return ctx, func() { stopWatching(); forget(); cancel(nil) }
}

// requestOf returns the context of the HTTP request of a call, which identify has set, or nil.
func requestOf(extra *mcp.RequestExtra) context.Context {
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	request, _ := extra.TokenInfo.Extra["request"].(context.Context)
	return request
}

// toolNames replaces the functions of code that hints name, which are not tools.
var toolNames = strings.NewReplacer("db_tables() lists", "describe_database() lists",
	"db_schema(table) lists", "describe_database(table) lists",
	"to POST /database/stages", "to explain_query")

// errorText returns what a model reads of an error: what happened and what to do. Text of an internal error stays in
// the log.
func (s *Server) errorText(tool string, err error) string {
	var refusal *sandbox.Refusal
	var known *sandbox.Error
	switch {
	case errors.As(err, &refusal):
		text := refusal.Error()
		if refusal.Hint != "" && !strings.Contains(text, refusal.Hint) {
			text += "\nhint: " + refusal.Hint
		}
		return toolNames.Replace(text)
	case errors.As(err, &known) && known.Fault != sandbox.FaultInternal:
		text := known.Detail
		if known.Field != "" && !strings.HasPrefix(text, known.Field) {
			text = known.Field + ": " + text
		}
		return text
	case errors.Is(err, context.Canceled):
		return "the call was cancelled"
	}
	s.log.WithError(err).WithField("tool", tool).Error("an MCP tool failed")
	return "internal error of Glasshouse; the operator finds it in the service's log. Try again once"
}

// textResult returns an answer of one text.
func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// addTool adds a tool whose handler gets the caller and its arguments, which agree with the tool's schema. The typed
// tools of the SDK would pass arguments through float64, which has 53 bits for an integer.
func addTool[In any](
	s *Server,
	tool *mcp.Tool,
	handle func(context.Context, sandbox.Key, *mcp.CallToolRequest, In) (*mcp.CallToolResult, error),
) {
	var described jsonschema.Schema
	if err := json.Unmarshal(tool.InputSchema.(json.RawMessage), &described); err != nil {
		panic(fmt.Sprintf("the schema of the tool %s: %v", tool.Name, err)) // a mistake in this package
	}
	resolved, err := described.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of the tool %s: %v", tool.Name, err))
	}
	call := func(ctx context.Context, caller sandbox.Key, req *mcp.CallToolRequest) *mcp.CallToolResult {
		var in In
		token, _ := req.Params.GetProgressToken().(string) // each notification of progress repeats it
		err := sandbox.CheckSize("progressToken", sandbox.MaxNameBytes, len(token))
		if err == nil {
			s.cpu.Compute(caller.User, len(req.Params.Arguments), func() {
				err = decodeArguments(req.Params.Arguments, &described, resolved, &in)
			})
		}
		var result *mcp.CallToolResult
		if err == nil {
			result, err = handle(ctx, caller, req, in)
		}
		if err != nil { // the model reads it and can repair its call
			result = textResult(s.errorText(tool.Name, err))
			result.IsError = true
		}
		return result
	}
	s.tools = append(s.tools, registeredTool{tool, call})
	s.mcp.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		caller, err := callerOf(ctx, req.Extra)
		if err != nil {
			return nil, err
		}
		ctx, stop := s.whileWanted(ctx, req.Extra)
		defer stop()
		return call(ctx, caller, req), nil
	})
}

// decodeArguments decodes the arguments of a call, after it has checked them against the tool's schema.
func decodeArguments(raw json.RawMessage, described *jsonschema.Schema, resolved *jsonschema.Resolved, in any) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var arguments map[string]any
	if err := json.Unmarshal(raw, &arguments); err != nil {
		return sandbox.Errorf(sandbox.FaultInvalid, "the arguments must be a JSON object: %v", err)
	}
	names := slices.Sorted(maps.Keys(described.Properties))
	for name, value := range arguments {
		if described.Properties[name] == nil {
			return sandbox.Errorf(sandbox.FaultInvalid, "there is no argument %.100q; the arguments are %s", name,
				strings.Join(names, ", "))
		}
		if text, ok := value.(string); ok && !slices.Contains(longArguments, name) {
			if err := sandbox.CheckSize(name, sandbox.MaxNameBytes, len(text)); err != nil {
				return err
			}
		}
	}
	for _, name := range described.Required {
		if arguments[name] == nil {
			return sandbox.Errorf(sandbox.FaultInvalid, "the argument %s is missing", name)
		}
	}
	raw = unquoteArguments(raw, arguments, described)
	if err := resolved.Validate(arguments); err != nil {
		return sandbox.Errorf(sandbox.FaultInvalid, "the arguments are invalid: %v", err)
	}
	return sandbox.UnmarshalIntegers(raw, in)
}

// unquoteArguments replaces texts such as "2" and "true" by the values that they name, in arguments and in the JSON
// that it returns, where the schema wants a number or a boolean: models often write them so.
func unquoteArguments(raw json.RawMessage, arguments map[string]any, described *jsonschema.Schema) json.RawMessage {
	var texts map[string]json.RawMessage
	for name, given := range arguments {
		text, isText := given.(string)
		if !isText || !slices.Contains([]string{"integer", "number", "boolean"}, described.Properties[name].Type) {
			continue
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil || value == nil {
			continue
		}
		if texts == nil && json.Unmarshal(raw, &texts) != nil {
			return raw
		}
		arguments[name], texts[name] = value, json.RawMessage(text)
	}
	if texts == nil {
		return raw
	}
	unquoted, err := json.Marshal(texts)
	if err != nil {
		return raw
	}
	return unquoted
}

// nameTools is a middleware that answers a call of an unknown tool with the names of the tools.
func (s *Server) nameTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if params, ok := request.GetParams().(*mcp.CallToolParamsRaw); ok && params != nil {
			if names := s.toolNames(); !slices.Contains(names, params.Name) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: noTool(params.Name, names)}
			}
		}
		return next(ctx, method, request)
	}
}

func noTool(name string, names []string) string {
	return fmt.Sprintf("there is no tool %q; the tools are %s", sandbox.Shorten(name, 100), strings.Join(names, ", "))
}

func (s *Server) toolNames() []string {
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.Name
	}
	return names
}

// schema returns a JSON schema of an object. properties is the JSON of its properties.
func schema(properties string, required ...string) json.RawMessage {
	names, _ := json.Marshal(append([]string{}, required...))
	return json.RawMessage(`{"type":"object","properties":` + properties + `,"required":` + string(names) +
		`,"additionalProperties":false}`)
}
