package sandbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a TableView.
const (
	MaxTableRows    = 1000 // of a page
	MaxTableFilters = 20
)

// TableView says which part of a table is wanted: a page of the rows that pass all filters, in an order, or what is
// known of a column.
type TableView struct {
	Start   int           `json:"start"`
	Count   int           `json:"count"`
	Sort    string        `json:"sort"` // the number of a column from 0, behind "-" for descending; "": as they are
	Filters []TableFilter `json:"filters"`
	Column  *int          `json:"column"` // its cells only; nil: those of all columns
	Whole   bool          `json:"whole"`  // long texts are whole
	Stats   *int          `json:"stats"`  // a column whose statistics are wanted in place of rows
}

// TableRequest names a table of a session, and says which part of it is wanted. The table is a variable, or one that a
// run returned or showed.
type TableRequest struct {
	Variable  string `json:"variable"`  // "": of a run
	Execution string `json:"execution"` // the run's
	Number    int    `json:"number"`    // 0: what the run returned
	TableView
}

// TableFilter is a condition of the values of a column.
type TableFilter struct {
	Column int    `json:"column"`
	Op     string `json:"op"` // one of TableOps
	Value  string `json:"value"`
}

// TableOps are the conditions of a TableFilter. contains ignores the case of letters.
var TableOps = []string{"contains", "eq", "ne", "lt", "le", "gt", "ge", "null", "notnull"}

// ParseTableFilter parses COLUMN:OP:VALUE, such as 2:ge:100.
func ParseTableFilter(text string) (f TableFilter, err error) {
	number, rest, _ := strings.Cut(text, ":")
	f.Op, f.Value, _ = strings.Cut(rest, ":")
	f.Column, err = strconv.Atoi(number)
	if err != nil || f.Column < 0 || !slices.Contains(TableOps, f.Op) {
		return f, &Error{Fault: FaultInvalid, Field: "filter", Detail: fmt.Sprintf(
			"expected COLUMN:OP:VALUE, where COLUMN is a number from 0 and OP one of %s; got %.80q",
			strings.Join(TableOps, ", "), text)}
	}
	return f, nil
}

// TablePage is a page of a table.
type TablePage struct {
	Columns      []PageColumn `json:"columns"`
	TotalColumns int          `json:"total_columns" doc:"More than columns if there are too many for a page"`
	Total        int          `json:"total" doc:"Rows of the table"`
	Matching     int          `json:"matching" doc:"Rows that pass the filters"`
	Start        int          `json:"start"`
	Numbers      []int        `json:"numbers" doc:"Of the rows of the page in the table, from 0"`
	// Rows may be fewer than were asked for. A value that JSON has not is an object. Its text is a preview, and its cut
	// is the beginning of a text of length characters.
	Rows  [][]any      `json:"rows" doc:"Values as JSON; others are objects: nan, json, text (a preview), cut, length"`
	Stats *ColumnStats `json:"stats,omitempty"`
}

// PageColumn is a column of a TablePage.
type PageColumn struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Kind string `json:"kind" enum:"number,time,bool,json,text"`
}

// ColumnStats is what is known of the values of a column, in the rows that pass the filters.
type ColumnStats struct {
	Count        int        `json:"count"`
	Missing      int        `json:"missing" doc:"NULL, None, NA and NaT"`
	NaN          int        `json:"nan,omitempty"`
	Empty        int        `json:"empty,omitempty" doc:"Empty texts"`
	Distinct     int        `json:"distinct"`
	DistinctMore bool       `json:"distinct_more,omitempty" doc:"There are more distinct values"`
	Min          any        `json:"min,omitempty"`
	Max          any        `json:"max,omitempty"`
	Mean         *float64   `json:"mean,omitempty"`
	Median       *float64   `json:"median,omitempty"`
	Sum          *float64   `json:"sum,omitempty"`
	Top          []TopValue `json:"top,omitempty" doc:"The most frequent values, unless all differ"`
	Bins         []int      `json:"bins,omitempty" doc:"How many numbers are in each twelfth of their range"`
}

// TopValue is a frequent value.
type TopValue struct {
	Value string `json:"value"`
	Count int    `json:"count"`
}

// CheckTablePage returns an error unless the page of a guest has as many cells as it says, in kinds of columns that
// there are.
func CheckTablePage(p *TablePage) error {
	if p.Total < 0 || p.Matching < 0 || p.Matching > p.Total || p.Start < 0 || p.TotalColumns < len(p.Columns) {
		return fmt.Errorf("a page of %d of %d rows is not possible", p.Matching, p.Total)
	}
	if len(p.Numbers) != len(p.Rows) {
		return fmt.Errorf("%d rows have %d numbers", len(p.Rows), len(p.Numbers))
	}
	for _, row := range p.Rows {
		if len(row) != len(p.Columns) {
			return fmt.Errorf("a row has %d cells, want %d", len(row), len(p.Columns))
		}
	}
	for _, c := range p.Columns {
		if !slices.Contains([]string{"number", "time", "bool", "json", "text"}, c.Kind) {
			return fmt.Errorf("a column has the kind %.40q", c.Kind)
		}
	}
	return nil
}

// MarshalJSON writes empty lists for nil ones.
func (p TablePage) MarshalJSON() ([]byte, error) {
	type page TablePage
	if p.Rows == nil {
		p.Rows = [][]any{}
	}
	if p.Numbers == nil {
		p.Numbers = []int{}
	}
	if p.Columns == nil {
		p.Columns = []PageColumn{}
	}
	return json.Marshal(page(p))
}
