package stages

import (
	"fmt"
	"strconv"
	"strings"
)

// Why says which rows of tables are behind a cell of a statement's result.
type Why struct {
	Database   string      `json:"database,omitempty"`
	Lines      int         `json:"lines" doc:"The number of lines of the statement"`
	Row        int         `json:"row" doc:"The row of the result, from 0"`
	Column     string      `json:"column" doc:"The column of the result"`
	Value      *string     `json:"value,omitempty" doc:"The cell of now as text; absent: NULL. A masked one is ***"`
	SameResult string      `json:"same_result,omitempty" enum:"yes,yes-rounded,other-order,no-clock,no,unknown"`
	Predicate  string      `json:"predicate" doc:"What identifies the row: its group, or the keys of its tables"`
	Tables     []TableRows `json:"tables"`
	Check      Check       `json:"check" doc:"Whether the statement over these rows alone gives the cell again"`
	NotLooked  []string    `json:"not_looked" doc:"What was not followed"`
	MS         float64     `json:"ms" doc:"How long the statement itself took, in milliseconds"`
	TotalMS    float64     `json:"total_ms" doc:"How long all of this took, in milliseconds"`
	Statements int         `json:"statements" doc:"How many derived statements ran"`
	Text       string      `json:"text" doc:"All of it for a language model"`
}

// TableRows has the rows of a table behind a row of a result. A number that is not known is absent.
type TableRows struct {
	Table        string   `json:"table"`
	Items        []string `json:"items" doc:"Its names in FROM"`
	Lines        []int    `json:"lines" doc:"Their lines"`
	Key          []string `json:"key" doc:"The columns by which its rows are told from each other"`
	IsPrimaryKey bool     `json:"is_primary_key" doc:"false: key has all columns that can be compared"`
	Rows         *int64   `json:"rows,omitempty" doc:"The number of its rows; each one counts once"`
	Distinct     *int64   `json:"distinct,omitempty" doc:"Without a primary key: the rows with different values"`
	IsRead       *bool    `json:"is_read,omitempty" doc:"Whether the column reads it, if that is known"`
	State        string   `json:"state" enum:"counted,skipped,refused,failed"`
	Reason       string   `json:"reason,omitempty"`
	Message      string   `json:"message,omitempty"`
	First        *Sample  `json:"first,omitempty" doc:"The first 20 rows by the key"`
}

// MaxTableRows is the number of rows that TableRows shows.
const MaxTableRows = 20

// The outcomes of a check.
const (
	CheckSame       = "same"
	CheckDiffers    = "differs"
	CheckNotChecked = "not-checked"
)

// Check says whether a statement gives a cell again if its tables have nothing but the rows that were found.
type Check struct {
	State   string  `json:"state" enum:"same,differs,not-checked"`
	Value   *string `json:"value,omitempty" doc:"If it differs: the cell over these rows alone"`
	Message string  `json:"message,omitempty" doc:"Why it was not checked, or may differ"`
}

// maxPredicateChars bounds a predicate in a text.
const maxPredicateChars = 200

// Render returns the answer as a text for a language model.
func (y *Why) Render(name string) string {
	var w strings.Builder
	if name == "" {
		name = "Statement"
	}
	value := "NULL"
	if y.Value != nil {
		value = shorten(*y.Value, maxClauseChars)
	}
	fmt.Fprintf(&w, "%s, row %d, %s = %s", name, y.Row, y.Column, value)
	if same := DescribeSame(y.SameResult); same != "" {
		w.WriteString(" (" + same + ")")
	}
	if y.Predicate != "" {
		w.WriteString(", where " + shorten(y.Predicate, maxPredicateChars))
	}
	w.WriteString(". Rows behind it:\n")
	for i := range y.Tables {
		y.Tables[i].render(&w)
	}
	switch y.Check.State {
	case CheckSame:
		w.WriteString("Checked: the statement over these rows alone gives the cell again.\n")
	case CheckDiffers:
		got := "NULL"
		if y.Check.Value != nil {
			got = shorten(*y.Check.Value, maxClauseChars)
		}
		w.WriteString("Not all: the statement over these rows alone gives " + got + ". " + y.Check.Message + "\n")
	default:
		w.WriteString("Not checked: " + y.Check.Message + ".\n")
	}
	for _, n := range y.NotLooked {
		w.WriteString("Not looked at: " + n + "\n")
	}
	return w.String()
}

func (t *TableRows) render(w *strings.Builder) {
	fmt.Fprintf(w, "  %s (%s): ", t.Table, t.places())
	if t.Rows == nil {
		w.WriteString("? (" + t.Reason + ")\n")
		return
	}
	w.WriteString(plural(*t.Rows, "row"))
	if t.Distinct != nil && *t.Distinct != *t.Rows {
		fmt.Fprintf(w, ", %d with different values", *t.Distinct)
	}
	if !t.IsPrimaryKey {
		w.WriteString(", no primary key: compared by " + strings.Join(t.Key, ", "))
	}
	if t.IsRead != nil && !*t.IsRead {
		w.WriteString(", which the column does not read")
	}
	w.WriteString("\n")
	if t.First == nil {
		return
	}
	for i, row := range t.First.Rows {
		if i == maxRenderedRows {
			break
		}
		var values []string
		for j, v := range row {
			text := "NULL"
			if v != nil {
				text = shorten(fmt.Sprint(v), 24)
			}
			values = append(values, t.First.Columns[j]+"="+text)
		}
		w.WriteString("    " + shorten(strings.Join(values, " "), maxPredicateChars) + "\n")
	}
}

// maxRenderedRows bounds the rows of a table in a text.
const maxRenderedRows = 5

// places returns the items of FROM with their lines.
func (t *TableRows) places() string {
	var list []string
	for i, item := range t.Items {
		list = append(list, fmt.Sprintf("l%d %s", t.Lines[i], item))
	}
	return strings.Join(list, ", ")
}

func shorten(text string, chars int) string {
	if r := []rune(text); len(r) > chars {
		return string(r[:chars-3]) + "..."
	}
	return text
}

// WhyNot says at which stage of a statement rows with given values are lost.
type WhyNot struct {
	Database   string           `json:"database,omitempty"`
	Lines      int              `json:"lines" doc:"The number of lines of the statement"`
	Columns    []FollowedColumn `json:"columns"`
	Missing    *bool            `json:"missing,omitempty" doc:"No row of the result has them; absent: not known"`
	SameResult string           `json:"same_result,omitempty" enum:"yes,yes-rounded,other-order,no-clock,no,unknown"`
	Stages     []FollowedStage  `json:"stages" doc:"The stages in order, up to the one that loses the rows"`
	Lost       *FollowedStage   `json:"lost,omitempty" doc:"The first stage without such a row"`
	// Because is one of the constants Because... below.
	Because    string   `json:"because,omitempty" doc:"Why that stage loses them, such as no-partner"`
	NotLooked  []string `json:"not_looked" doc:"What was not followed"`
	MS         float64  `json:"ms" doc:"How long the statement itself took, in milliseconds"`
	TotalMS    float64  `json:"total_ms" doc:"How long all of this took, in milliseconds"`
	Statements int      `json:"statements" doc:"How many derived statements ran"`
	Text       string   `json:"text" doc:"All of it for a language model"`
}

// FollowedColumn is a column whose value identifies the rows that are followed.
type FollowedColumn struct {
	Name    string `json:"name" doc:"As it was asked for"`
	Meaning string `json:"meaning" doc:"The column or expression of the statement"`
	Value   any    `json:"value"`
}

// FollowedStage is a stage, and how many of the followed rows reach and leave it. A count that is not known is absent.
type FollowedStage struct {
	ID       int    `json:"id" doc:"Of the stage in the answer of stages"`
	Block    string `json:"block,omitempty" doc:"The name of its block; none: the main one"`
	Kind     string `json:"kind" enum:"cte,from,join,where,group,having,project,distinct,set,order,limit"`
	JoinKind string `json:"join,omitempty" enum:"inner,left,right,full,cross" doc:"Of a join"`
	Text     string `json:"text"`
	FromLine int    `json:"from_line"`
	ToLine   int    `json:"to_line"`
	RowsIn   *int64 `json:"rows_in,omitempty" doc:"The followed rows before a condition"`
	Rows     *int64 `json:"rows,omitempty" doc:"The followed rows after it"`
	Null     *int64 `json:"null,omitempty" doc:"The followed rows for which its condition is NULL"`
	NullKeys *int64 `json:"null_keys,omitempty" doc:"Of a join: the followed rows whose key is NULL"`
	State    string `json:"state" enum:"counted,skipped,refused,failed"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// The reasons why a stage loses rows.
const (
	BecauseNoRow       = "no-row"
	BecauseNoPartner   = "no-partner"
	BecauseNullKey     = "null-key"
	BecauseFalse       = "false"
	BecauseNull        = "null"
	BecauseFalseOrNull = "false-or-null"
	BecauseNoGroup     = "no-group"
	BecauseLimit       = "limit"
	BecauseDistinct    = "distinct"
	BecauseSet         = "set"
)

// Render returns the answer as a text for a language model.
func (y *WhyNot) Render(name string) string {
	var w strings.Builder
	if name == "" {
		name = "Statement"
	}
	var columns []string
	for _, c := range y.Columns {
		text := c.Meaning + " = " + shorten(fmt.Sprint(c.Value), maxClauseChars)
		if c.Value == nil {
			text = c.Meaning + " IS NULL"
		}
		columns = append(columns, text)
	}
	fmt.Fprintf(&w, "%s, %s: ", name, strings.Join(columns, ", "))
	switch {
	case y.Missing == nil && y.Lost == nil:
		w.WriteString("it was not followed to the result")
	case y.Missing == nil:
		w.WriteString("lost, as far as it was followed")
	case *y.Missing:
		w.WriteString("not in the result")
	default:
		w.WriteString("in the result")
	}
	if same := DescribeSame(y.SameResult); same != "" {
		w.WriteString(" (" + same + ")")
	}
	w.WriteString(". Such rows after each stage:\n")
	block, line := "", 0
	for i := range y.Stages {
		s := &y.Stages[i]
		switch {
		case i == 0 || s.Block != block:
			if i > 0 {
				w.WriteString("\n")
			}
			of := s.Block
			if of == "" {
				of = "main"
			}
			fmt.Fprintf(&w, "  l%d %s: ", s.FromLine, of)
		case s.FromLine != line:
			fmt.Fprintf(&w, " -> l%d ", s.FromLine)
		default:
			w.WriteString(" -> ")
		}
		block, line = s.Block, s.FromLine
		w.WriteString(s.describe())
	}
	if len(y.Stages) > 0 {
		w.WriteString("\n")
	}
	if y.Lost != nil {
		fmt.Fprintf(&w, "Lost at l%d: %s. %s\n", y.Lost.FromLine, Clip(y.Lost.Text), y.explain())
	}
	for _, n := range y.NotLooked {
		w.WriteString("Not looked at: " + n + "\n")
	}
	return w.String()
}

func (s *FollowedStage) describe() string {
	text := Clip(s.Text)
	switch s.Kind {
	case KindGroup:
		text = "groups"
	case KindHaving:
		text = "HAVING " + text
	case KindDistinct:
		text = "DISTINCT"
	}
	if s.Rows == nil {
		return text + " ? (" + s.Reason + ")"
	}
	text += " " + strconv.FormatInt(*s.Rows, 10)
	if s.Null != nil && *s.Null > 0 {
		text += fmt.Sprintf(" (%d NULL)", *s.Null)
	}
	return text
}

// explain says why the rows are lost.
func (y *WhyNot) explain() string {
	switch y.Because {
	case BecauseNoRow:
		return "It has no such row."
	case BecauseNullKey:
		return "The key of the join is NULL there, which matches nothing."
	case BecauseNoPartner:
		return "No row of the other side matches."
	case BecauseFalse:
		return "The condition is false there."
	case BecauseNull:
		return "The condition is NULL there, which counts as false: a column in it is NULL."
	case BecauseFalseOrNull:
		return "The condition is false for some of these rows, and NULL for the others."
	case BecauseNoGroup:
		return "No group has the value."
	case BecauseLimit:
		return "Other rows come first, and the limit or offset cuts it off."
	case BecauseDistinct:
		return "Another row is taken for the same value of DISTINCT ON."
	case BecauseSet:
		return "The set operation leaves it out: the other side has the row (EXCEPT), or has it not (INTERSECT)."
	}
	return ""
}

// BlockLines returns the rows after each stage as lines of a text, one for each block.
func (s *Stages) BlockLines() []string {
	lines := make([]string, 0, len(s.Blocks))
	for i := range s.Blocks {
		var w strings.Builder
		s.renderBlock(&w, &s.Blocks[i])
		lines = append(lines, strings.TrimRight(w.String(), "\n"))
	}
	return lines
}
