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
	"glasshouse/service"
)

type queryInput struct {
	Database string          `json:"database"`
	SQL      string          `json:"sql"`
	Params   json.RawMessage `json:"params"`
	Limit    int             `json:"limit"`
}

// queryDatabase runs one statement and answers with the column names and one line of JSON for each row.
func (s *Server) queryDatabase(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in queryInput,
) (*mcp.CallToolResult, error) {
	var params map[string]any
	if len(in.Params) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(in.Params))
		decoder.UseNumber() // as float64, large integers would lose digits
		if err := decoder.Decode(&params); err != nil {
			return nil, sandbox.Errorf(sandbox.FaultInvalid, "params: %v", err)
		}
	}
	limit := cmp.Or(in.Limit, defaultRows)
	answer := rowText{maxChars: s.maxChars, limit: limit}
	summary, err := s.service.Query(ctx, caller, service.Statement{
		Database: in.Database, SQL: in.SQL, Parameters: params, MaxRows: limit + 1,
	}, answer.add)
	reportRun(ctx, summary.ExecutionID, nil)
	if err != nil {
		return nil, err
	}
	text := answer.text(summary.Truncated)
	if len(summary.ComputedWithMask) > 0 {
		text += "\n" + sandbox.MaskNotice(summary.ComputedWithMask)
	}
	return textResult(text), nil
}

// rowText collects rows as lines of text, within a number of rows and of characters.
type rowText struct {
	maxChars, limit int

	header      string
	lines       []string
	chars, rows int
	isCut       bool // by maxChars
}

// add is a sandbox.RowSink.
func (t *rowText) add(rows sandbox.RowBatch) error {
	if t.header == "" {
		names := make([]string, len(rows.Columns))
		for i, c := range rows.Columns {
			names[i] = c.Name
		}
		text, err := json.Marshal(names)
		if err != nil {
			return err
		}
		t.header = "columns: " + string(text)
		t.chars = utf8.RuneCount(text)
	}
	for r := range rows.Count {
		if t.rows++; t.rows > t.limit || t.isCut {
			continue // the limit has one row more, to know whether there are more
		}
		line := sandbox.RowJSON{Max: utf8.UTFMax * t.maxChars}
		line.Raw("[")
		for i, c := range rows.Columns {
			if i > 0 {
				line.Raw(",")
			}
			line.At(&rows.Data[i], r, c.Kind)
		}
		line.Raw("]")
		t.chars += utf8.RuneCount(line.Bytes()) + 1
		if t.isCut = line.Err != nil || t.chars > t.maxChars; !t.isCut {
			t.lines = append(t.lines, string(line.Bytes()))
		}
	}
	return nil
}

// text returns the answer. isTruncated says that the result has more rows than the statement was allowed.
func (t *rowText) text(isTruncated bool) string {
	out := []string{t.header}
	out = append(out, t.lines...)
	shown := len(t.lines)
	switch {
	case t.isCut:
		out = append(
			out,
			fmt.Sprintf("%d rows shown; the answer is full. Select fewer columns, aggregate, or use ORDER BY with "+
				"LIMIT and OFFSET %d for the next rows", shown, shown),
		)
	case isTruncated || t.rows > t.limit:
		out = append(
			out,
			fmt.Sprintf("%d rows, truncated: there are more. Aggregate, raise limit (at most %d), or add OFFSET %d",
				shown, maxRows, shown),
		)
	case shown == 1:
		out = append(out, "1 row")
	default:
		out = append(out, fmt.Sprintf("%d rows", shown))
	}
	return strings.Join(out, "\n")
}

type describeInput struct {
	Database string `json:"database"`
	Table    string `json:"table"`
	Like     string `json:"like"`
	Detail   string `json:"detail"`
}

// describeDatabase lists tables, or describes them, in as much detail as asked.
func (s *Server) describeDatabase(
	ctx context.Context, caller sandbox.Key, _ *mcp.CallToolRequest, in describeInput,
) (*mcp.CallToolResult, error) {
	tables, err := s.service.Schema(ctx, caller, "", in.Database)
	if err != nil {
		return nil, err
	}
	detail := in.Detail
	if detail == "" {
		detail = "names"
		if in.Table != "" {
			detail = "columns"
		}
	}
	var lines []string
	if databases := s.service.DatabaseNames(caller); len(databases) > 1 && in.Table == "" && in.Like == "" {
		lines = append(lines, fmt.Sprintf("databases: %s; this is %s. The argument database names another, here and "+
			"in query_database and db_query", strings.Join(databases, ", "), cmp.Or(in.Database, databases[0])))
	}
	names := []string{}
	for _, t := range tables {
		names = append(names, t.Name)
		if in.Table != "" && !strings.EqualFold(t.Name, in.Table) || !matches(t, in.Like) {
			continue
		}
		lines = append(lines, tableLines(t, detail)...)
	}
	switch {
	case len(lines) == 0 && in.Table != "":
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "there is no table %q that may be read; tables: %s", in.Table,
			sandbox.Shorten(strings.Join(names, ", "), 1000))
	case len(lines) == 0:
		lines = []string{
			fmt.Sprintf("no table or column has %q in its name; there are %d tables", in.Like, len(tables)),
		}
	}
	shown, chars := 0, 0
	for ; shown < len(lines); shown++ {
		if chars += utf8.RuneCountInString(lines[shown]) + 1; chars > s.maxChars-200 {
			break
		}
	}
	text := strings.Join(lines[:shown], "\n")
	if shown < len(lines) {
		text += fmt.Sprintf(
			"\n[%d of %d lines left out; ask with like=, or for one table]",
			len(lines)-shown,
			len(lines),
		)
	}
	return textResult(text), nil
}

func matches(t sandbox.Table, like string) bool {
	like = strings.ToLower(like)
	if strings.Contains(strings.ToLower(t.Name), like) {
		return true
	}
	for _, c := range t.Columns {
		if strings.Contains(strings.ToLower(c.Name), like) {
			return true
		}
	}
	return false
}

func tableLines(t sandbox.Table, detail string) []string {
	title := t.Name
	if t.Kind != "table" {
		title += " (" + t.Kind + ")"
	}
	if t.RowEstimate != nil {
		title += fmt.Sprintf(", about %d rows", *t.RowEstimate)
	}
	if t.Comment != nil && (detail == "full" || detail == "names") {
		title += ": " + sandbox.Shorten(*t.Comment, 160)
	}
	lines := []string{title}
	if detail == "names" {
		return lines
	}
	for _, c := range t.Columns {
		line := "  " + c.Name + " " + c.Type
		if c.PrimaryKey {
			line += ", primary key"
		}
		if c.References != nil {
			line += " -> " + *c.References
		}
		if c.Masked {
			line += ", masked (may be selected as ***, and nothing else)"
		}
		if detail == "full" {
			if c.Unique && !c.PrimaryKey {
				line += ", unique"
			}
			if c.IsNullable == "NO" && !c.PrimaryKey {
				line += ", not null"
			}
			if c.Default != nil {
				line += ", default " + *c.Default
			}
			if c.Comment != nil {
				line += ": " + *c.Comment
			}
		}
		lines = append(lines, line)
	}
	return lines
}
