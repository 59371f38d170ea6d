package mcpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"glasshouse/sandbox"
	"glasshouse/service/run"
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
	params, err := decodeValues("params", in.Params)
	if err != nil {
		return nil, err
	}
	in.SQL = withoutFence(in.SQL)
	limit := cmp.Or(in.Limit, defaultRows)
	answer := rowText{maxChars: maxTextChars, limit: limit}
	summary, err := s.runs.Query(ctx, caller, run.Statement{
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

// withoutFence returns a statement without the lines ```sql and ``` around it, with which models write SQL in Markdown.
// No statement of PostgreSQL begins so.
func withoutFence(sql string) string {
	begun, isFenced := strings.CutPrefix(strings.TrimSpace(sql), "```")
	inside, isClosed := strings.CutSuffix(begun, "```")
	language, statement, hasLines := strings.Cut(inside, "\n")
	if !isFenced || !isClosed || !hasLines || strings.ContainsAny(strings.TrimSpace(language), " \t") {
		return sql
	}
	return statement
}

// maxCellChars is the length to which long cells are cut if the whole rows do not fit into an answer.
const maxCellChars = 300

// rowText collects rows as lines of text, within a number of rows and of characters: whole rows if all fit, otherwise
// with their long cells cut, as many as fit.
type rowText struct {
	maxChars, limit int

	header    string
	whole     rowLines
	cut       rowLines
	rows      int
	cutCells  int // of cut.lines
	longCells map[string]bool
}

// rowLines are lines for the first rows.
type rowLines struct {
	lines  []string
	chars  int
	isFull bool // a row did not fit
}

// add adds a line if it fits into maxChars, and if no earlier one did not.
func (l *rowLines) add(line string, maxChars int) {
	chars := utf8.RuneCountInString(line) + len("\n")
	if l.isFull = l.isFull || l.chars+chars > maxChars; !l.isFull {
		l.lines, l.chars = append(l.lines, line), l.chars+chars
	}
}

// add is a sandbox.RowSink.
func (t *rowText) add(rows sandbox.RowBatch) error {
	if t.header == "" {
		t.begin(rows.Columns)
	}
	for r := range rows.Count {
		if t.rows++; t.rows > t.limit || t.cut.isFull {
			continue // the limit has one row more, to know whether there are more
		}
		whole, cut := make([]string, len(rows.Columns)), make([]string, len(rows.Columns))
		var long []string
		for i, c := range rows.Columns {
			// One byte more than fits shows that the whole row does not.
			cell := sandbox.RowJSON{Max: utf8.UTFMax*t.maxChars + 1}
			cell.At(&rows.Data[i], r, c.Kind)
			whole[i] = string(cell.Bytes())
			if cut[i] = whole[i]; cell.Err != nil || utf8.RuneCountInString(whole[i]) > maxCellChars {
				cut[i] = cutCell(&rows.Data[i], r, whole[i])
				long = append(long, c.Name)
			}
			t.whole.isFull = t.whole.isFull || cell.Err != nil
		}
		t.whole.add("["+strings.Join(whole, ",")+"]", t.maxChars)
		if t.cut.add("["+strings.Join(cut, ",")+"]", t.maxChars); !t.cut.isFull {
			t.cutCells += len(long)
			for _, name := range long {
				t.longCells[name] = true
			}
		}
	}
	return nil
}

func (t *rowText) begin(columns []sandbox.Column) {
	names := sandbox.RowJSON{Max: utf8.UTFMax * t.maxChars}
	for i, c := range columns {
		if i > 0 {
			names.Raw(",")
		}
		names.String(c.Name)
	}
	t.header = "columns: [" + string(names.Bytes()) + "]"
	if names.Err != nil || utf8.RuneCountInString(t.header) > t.maxChars/2 {
		t.header = sandbox.Shorten(t.header, t.maxChars/2) + fmt.Sprintf(" (%d columns)", len(columns))
	}
	chars := utf8.RuneCountInString(t.header)
	t.whole.chars, t.cut.chars, t.longCells = chars, chars, map[string]bool{}
}

// cutCell returns the beginning of a cell as a string of JSON, and how much is missing. text is the cell's JSON, or the
// beginning of it.
func cutCell(column *sandbox.ColumnValues, row int, text string) string {
	missing := "more"
	if len(column.Ends) > 0 && column.Array == nil {
		value := column.TextAt(row)
		missing = strconv.Itoa(utf8.RuneCount(value)-maxCellChars) + " more"
		text = string(value[:min(len(value), utf8.UTFMax*maxCellChars)])
	}
	cell := sandbox.RowJSON{Max: math.MaxInt}
	cell.String(firstRunes(text, maxCellChars) + "... [" + missing + "]")
	return string(cell.Bytes())
}

// firstRunes returns the beginning of a text, of at most n characters.
func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// text returns the answer. isTruncated says that the result has more rows than the statement was allowed.
func (t *rowText) text(isTruncated bool) string {
	shown := t.whole
	var notes []string
	if t.whole.isFull {
		shown = t.cut
	}
	rows := strconv.Itoa(len(shown.lines)) + " rows"
	switch {
	case shown.isFull:
		rows = fmt.Sprintf("%d rows shown; the answer is full. Select fewer columns, aggregate, or use ORDER BY with "+
			"LIMIT and OFFSET %d for the next rows", len(shown.lines), len(shown.lines))
		if len(shown.lines) == 0 {
			rows = "no row fits into the answer: select fewer columns"
		}
	case isTruncated || t.rows > t.limit:
		rows = fmt.Sprintf("%d rows, truncated: there are more. Aggregate, raise limit (at most %d), or add OFFSET %d",
			len(shown.lines), maxRows, len(shown.lines))
	case len(shown.lines) == 1:
		rows = "1 row"
	}
	if t.whole.isFull && t.cutCells > 0 {
		notes = append(notes, fmt.Sprintf("%d long cells are cut to %d characters, in: %s. Read one whole with "+
			"substr(column, %d, ...), or in run_python", t.cutCells, maxCellChars,
			strings.Join(slices.Sorted(maps.Keys(t.longCells)), ", "), maxCellChars+1))
	}
	return strings.Join(slices.Concat([]string{t.header}, shown.lines, notes, []string{rows}), "\n")
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
	var named []string
	if in.Table != "" {
		named = append(named, in.Table)
	}
	tables, err := s.databases.Schema(ctx, caller, in.Database, named...)
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok && no.Reason == "unknown-table" {
		return nil, s.listTables(ctx, caller, in.Database, no)
	} else if err != nil {
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
	if databases := s.databases.Names(caller); len(databases) > 1 && in.Table == "" && in.Like == "" {
		lines = append(lines, fmt.Sprintf("databases: %s; this is %s. The argument database names another, here and "+
			"in query_database and db_query", strings.Join(databases, ", "), cmp.Or(in.Database, databases[0])))
	}
	for _, t := range tables {
		if !matches(t, in.Like) {
			continue
		}
		lines = append(lines, tableLines(t, detail)...)
	}
	if len(lines) == 0 {
		lines = []string{
			fmt.Sprintf("no table or column has %q in its name; there are %d tables", in.Like, len(tables)),
		}
	}
	shown, chars := 0, 0
	for ; shown < len(lines); shown++ {
		if chars += utf8.RuneCountInString(lines[shown]) + 1; chars > maxTextChars-200 {
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

// listTables returns the error for a table that there is not, with the names of those that there are.
func (s *Server) listTables(ctx context.Context, caller sandbox.Key, database string, no *sandbox.Refusal) error {
	tables, err := s.databases.Schema(ctx, caller, database)
	if err != nil {
		return err
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	meant := ""
	if no.Nearest != "" {
		meant = "; did you mean " + no.Nearest + "?"
	}
	return sandbox.Errorf(sandbox.FaultNotFound, "%s%s; tables: %s", no.Message, meant,
		sandbox.Shorten(strings.Join(names, ", "), 1000))
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
		line := "  " + c.QuotedName + " " + c.Type
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
