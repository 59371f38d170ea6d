package mcpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/run"
)

// explainQueryTool returns the tool that says where the rows of a statement went. Its arguments name the question:
// column asks for the rows behind a cell, missing for what loses a row, and neither for the rows after each stage.
func explainQueryTool() *mcp.Tool {
	return &mcp.Tool{
		Name: "explain_query",
		Description: "Find out why a SELECT gives wrong, missing or too many rows: the number of rows after each " +
			"table, join, condition and group, and likely mistakes with their evidence. Not a query plan. With row " +
			"and column: which rows of tables are behind that cell. With missing: which join or condition loses " +
			"that row. Takes sql, or execution_id and query for a statement that code ran.",
		InputSchema: schema(`{
			"sql":{"type":"string"},
			"params":{"type":"object","description":"Values of :name"},
			"database":{"type":"string"},
			"execution_id":{"type":"string","description":"Instead of sql"},
			"query":{"type":"integer","minimum":1,"default":1,"description":"Number of its statement"},
			"row":{"type":"integer","minimum":0,"default":0,"description":"Of the result, from 0"},
			"column":{"type":"string","description":"Of the result"},
			"missing":{"type":"object","description":"Values by column, such as {\"orders.id\": 17}"},
			"all":{"type":"boolean","description":"Also what is only possible, or takes long"}
		}`),
		Annotations: &mcp.ToolAnnotations{
			Title: "Explain a query", ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(false),
		},
	}
}

type explainQueryInput struct {
	SQL       string          `json:"sql"`
	Params    json.RawMessage `json:"params"`
	Database  string          `json:"database"`
	Execution string          `json:"execution_id"`
	Query     int             `json:"query"`
	Row       int             `json:"row"`
	Column    string          `json:"column"`
	Missing   json.RawMessage `json:"missing"`
	All       bool            `json:"all"`
}

// queryQuestion is a question about one statement: a text, or the one with a number in an execution.
type queryQuestion struct {
	statement run.Statement
	execution string
	number    int

	cell    run.Cell       // asked for if it has a column
	missing map[string]any // asked for if it has values
	options stages.Options
}

// question returns the question of the arguments, or what is wrong with them.
func (in *explainQueryInput) question() (*queryQuestion, error) {
	params, err := decodeValues("params", in.Params)
	if err != nil {
		return nil, err
	}
	missing, err := decodeValues("missing", in.Missing)
	if err != nil {
		return nil, err
	}
	switch isPast := in.Execution != ""; {
	case in.SQL == "" && !isPast:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "give sql, or execution_id and query")
	case in.SQL != "" && isPast:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "give sql or execution_id, not both")
	case isPast && (in.Database != "" || len(params) > 0):
		return nil, sandbox.Errorf(sandbox.FaultInvalid,
			"give no params and no database with execution_id: the statement keeps its own")
	case in.Column != "" && len(missing) > 0:
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "give column or missing, not both")
	}
	sql := strings.TrimRight(withoutFence(in.SQL), " \t\r\n") // the answer counts its lines
	return &queryQuestion{
		statement: run.Statement{Database: in.Database, SQL: sql, Parameters: params},
		execution: in.Execution, number: cmp.Or(in.Query, 1),
		cell: run.Cell{Row: in.Row, Column: in.Column}, missing: missing, options: stages.Options{All: in.All},
	}, nil
}

// explainQuery answers a question about the rows of a statement.
func (s *Server) explainQuery(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in explainQueryInput,
) (*mcp.CallToolResult, error) {
	q, err := in.question()
	if err != nil {
		return nil, err
	}
	switch {
	case q.cell.Column != "":
		why, err := s.whyCell(ctx, caller, q)
		if err != nil {
			return nil, err
		}
		return s.structuredResult(caller, why.Text, why), nil
	case len(q.missing) > 0:
		why, err := s.whyNot(ctx, caller, q)
		if err != nil {
			return nil, err
		}
		return s.structuredResult(caller, why.Text, why), nil
	}
	counted, err := s.countStages(ctx, caller, q)
	if err != nil {
		return nil, err
	}
	return s.structuredResult(caller, counted.Text, counted), nil
}

func (s *Server) whyCell(ctx context.Context, caller sandbox.Key, q *queryQuestion) (*stages.Why, error) {
	if q.execution != "" {
		return s.runs.WhyCellOf(ctx, caller, q.execution, q.number, q.cell)
	}
	return s.runs.WhyCell(ctx, caller, q.statement, q.cell)
}

func (s *Server) whyNot(ctx context.Context, caller sandbox.Key, q *queryQuestion) (*stages.WhyNot, error) {
	if q.execution != "" {
		return s.runs.WhyNotOf(ctx, caller, q.execution, q.number, q.missing)
	}
	return s.runs.WhyNot(ctx, caller, q.statement, q.missing)
}

func (s *Server) countStages(ctx context.Context, caller sandbox.Key, q *queryQuestion) (*stages.Stages, error) {
	if q.execution != "" {
		return s.runs.StagesOf(ctx, caller, q.execution, q.number, q.options)
	}
	return s.runs.Stages(ctx, caller, q.statement, q.options)
}

// structuredResult returns an answer of a text, with its fields as structured content if both are short. A client may
// give its model the structured content in place of the text. Therefore the fields have the whole text too, and the
// bound of a text holds for them.
func (s *Server) structuredResult(caller sandbox.Key, text string, fields any) *mcp.CallToolResult {
	result := textResult(run.CutMiddle(text, maxTextChars, func(_, left int) string {
		return fmt.Sprintf("[%d characters left out]", left)
	}))
	var encoded json.RawMessage
	var err error
	s.cpu.Compute(caller.User, len(text), func() { encoded, err = json.Marshal(fields) })
	if err == nil && utf8.RuneCount(encoded) <= maxTextChars {
		result.StructuredContent = encoded
	}
	return result
}

// decodeValues decodes an argument that is an object, with numbers as json.Number: as float64, large integers would
// lose digits.
func decodeValues(name string, object json.RawMessage) (map[string]any, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var values map[string]any
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, sandbox.Errorf(sandbox.FaultInvalid, "%s: %v", name, err)
	}
	return values, nil
}
