package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a page of ViewTable.
const (
	maxPageCells     = 40_000
	maxPageBytes     = 700_000
	maxCellRunes     = 300     // of a text on a page; a longer one is asked for alone
	maxWholeCell     = 4 << 20 // of a text that is asked for alone
	maxSafeInteger   = 1 << 53 // larger ones lose digits in browsers
	maxDistinct      = 100_000
	topValues        = 5
	maxTopValueRunes = 80
	histogramBins    = 12
)

// ViewTable returns a part of a table whose values are in memory: data has the values of each column, which are nil,
// bool, int64, float64, string, json.RawMessage, []byte or []any. A number may be a string in a column of kind number.
func ViewTable(columns []PageColumn, data [][]any, view TableView) (TablePage, error) {
	t := tableView{columns, data, 0}
	if len(data) > 0 {
		t.height = len(data[0])
	}
	rows, err := t.rows(view)
	if err != nil {
		return TablePage{}, err
	}
	page := TablePage{
		Columns: columns, TotalColumns: len(columns), Total: t.height, Matching: len(rows), Start: max(view.Start, 0),
	}
	if view.Stats != nil {
		if err := t.check(*view.Stats); err != nil {
			return page, err
		}
		page.Columns, page.Stats = columns[*view.Stats:*view.Stats+1], t.stats(*view.Stats, rows)
		return page, nil
	}
	first, end, most := 0, len(columns), maxCellRunes
	if view.Whole {
		most = maxWholeCell
	}
	if view.Column != nil {
		if err := t.check(*view.Column); err != nil {
			return page, err
		}
		first, end = *view.Column, *view.Column+1
	}
	page.Columns = columns[first:end]
	count := min(cmp.Or(view.Count, 100), MaxTableRows, max(maxPageCells/max(end-first, 1), 1))
	size := 0
	for _, n := range rows[min(page.Start, len(rows)):min(page.Start+max(count, 1), len(rows))] {
		row := make([]any, 0, end-first)
		for c := first; c < end; c++ {
			part := pageCell(data[c][n], most)
			size += 12
			if text, ok := part.(string); ok {
				size += len(text)
			} else if _, isPlain := part.(json.Number); !isPlain && part != nil {
				size += maxCellRunes / 2
			}
			row = append(row, part)
		}
		page.Rows, page.Numbers = append(page.Rows, row), append(page.Numbers, n)
		if size > maxPageBytes {
			break
		}
	}
	return page, nil
}

type tableView struct {
	columns []PageColumn
	data    [][]any
	height  int
}

func (t *tableView) check(c int) error {
	if c < 0 || c >= len(t.columns) {
		return Errorf(FaultInvalid, "the table has %d columns, and no column %d", len(t.columns), c)
	}
	return nil
}

// rows returns the numbers of the rows that pass the filters, in order.
func (t *tableView) rows(view TableView) ([]int, error) {
	rows := make([]int, 0, t.height)
	for n := range t.height {
		rows = append(rows, n)
	}
	for _, f := range view.Filters {
		if err := t.check(f.Column); err != nil {
			return nil, err
		}
		passes := condition(f, t.columns[f.Column].Kind == "number")
		kept := rows[:0]
		for _, n := range rows {
			if passes(t.data[f.Column][n]) {
				kept = append(kept, n)
			}
		}
		rows = kept
	}
	if view.Sort == "" {
		return rows, nil
	}
	c, err := strconv.Atoi(strings.TrimPrefix(view.Sort, "-"))
	if err != nil {
		return nil, &Error{
			Fault: FaultInvalid, Field: "sort", Detail: "expected the number of a column, behind - for descending",
		}
	}
	if err := t.check(c); err != nil {
		return nil, err
	}
	isDescending := strings.HasPrefix(view.Sort, "-")
	keys := make([]sortKey, t.height)
	for _, n := range rows {
		keys[n] = keyOf(t.data[c][n], t.columns[c].Kind == "number")
	}
	slices.SortStableFunc(rows, func(a, b int) int { return keys[a].compare(&keys[b], isDescending) })
	return rows, nil
}

// sortKey orders any values: numbers, then texts, then NaN, then NULL.
type sortKey struct {
	rank   int
	number float64
	exact  *big.Rat // of a number that a float has not
	text   string
}

func keyOf(v any, isNumber bool) sortKey {
	if v == nil {
		return sortKey{rank: 4}
	}
	if number, exact, ok := numberOf(v, isNumber); ok {
		if math.IsNaN(number) {
			return sortKey{rank: 3}
		}
		return sortKey{number: number, exact: exact}
	}
	return sortKey{rank: 1, text: cellText(v)}
}

func (k *sortKey) compare(other *sortKey, isDescending bool) int {
	if k.rank != other.rank { // NaN and NULL are last, either way
		if isDescending && k.rank < 3 && other.rank < 3 {
			return other.rank - k.rank
		}
		return k.rank - other.rank
	}
	c := cmp.Or(cmp.Compare(k.number, other.number), strings.Compare(k.text, other.text))
	if c == 0 && (k.exact != nil || other.exact != nil) {
		c = k.rational().Cmp(other.rational())
	}
	if isDescending {
		return -c
	}
	return c
}

func (k *sortKey) rational() *big.Rat {
	if k.exact != nil {
		return k.exact
	}
	r := new(big.Rat)
	r.SetFloat64(k.number)
	return r
}

// numberOf returns the number of a value; exact is nil if the float is exact.
func numberOf(v any, isNumber bool) (number float64, exact *big.Rat, ok bool) {
	switch v := v.(type) {
	case int64:
		number = float64(v)
		if v > maxSafeInteger || v < -maxSafeInteger {
			exact = new(big.Rat).SetInt64(v)
		}
		return number, exact, true
	case float64:
		return v, nil, true
	case string:
		if !isNumber {
			return 0, nil, false
		}
		number, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return 0, nil, false
		}
		if len(v) > 15 && !math.IsInf(number, 0) && !math.IsNaN(number) {
			if r, ok := new(big.Rat).SetString(v); ok {
				exact = r
			}
		}
		return number, exact, true
	}
	return 0, nil, false
}

// condition returns a function that reports whether a value passes a filter.
func condition(f TableFilter, isNumber bool) func(any) bool {
	wanted := keyOf(strings.NewReplacer(",", "", "_", "").Replace(f.Value), isNumber)
	low := strings.ToLower(f.Value)
	compare := func(v any) (c int, ok bool) {
		k := keyOf(v, isNumber)
		if k.rank > 1 {
			return 0, false
		}
		if k.rank == 0 && wanted.rank == 0 {
			return k.compare(&wanted, false), true
		}
		if k.rank != wanted.rank {
			return 0, false
		}
		return strings.Compare(k.text, f.Value), true
	}
	equal := func(v any) bool {
		c, ok := compare(v)
		if !ok {
			return cellText(v) == f.Value
		}
		return c == 0
	}
	return func(v any) bool {
		if f.Op == "null" || f.Op == "notnull" {
			return (v == nil) == (f.Op == "null")
		}
		if v == nil {
			return false
		}
		switch f.Op {
		case "contains":
			return strings.Contains(strings.ToLower(cellText(v)), low)
		case "eq", "ne":
			return equal(v) == (f.Op == "eq")
		}
		c, ok := compare(v)
		if !ok {
			return false
		}
		switch f.Op {
		case "lt":
			return c < 0
		case "le":
			return c <= 0
		case "gt":
			return c > 0
		}
		return c >= 0
	}
}

// pageCell returns a value as TablePage has it.
func pageCell(v any, most int) any {
	switch v := v.(type) {
	case nil, bool:
		return v
	case int64:
		if v > maxSafeInteger || v < -maxSafeInteger {
			return strconv.FormatInt(v, 10)
		}
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return map[string]any{"nan": cellText(v)}
		}
		return v
	case string:
		return cutCell(v, most)
	case json.RawMessage:
		if len(v) > most || !json.Valid(v) {
			return map[string]any{"cut": Shorten(string(v), most), "length": len(v), "json": nil}
		}
		return map[string]any{"json": v}
	case []any:
		text := cellText(v)
		if len(text) > most {
			return map[string]any{"cut": Shorten(text, most), "length": len(text), "json": nil}
		}
		return map[string]any{"json": json.RawMessage(text)}
	case []byte:
		return map[string]any{"text": Shorten(cellText(v), most)}
	}
	return map[string]any{"text": Shorten(fmt.Sprint(v), most)}
}

func cutCell(text string, most int) any {
	if len(text) <= most {
		return text
	}
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return map[string]any{"cut": string(runes[:most]), "length": len(runes)}
}

// cellText returns a value as text.
func cellText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if math.IsNaN(v) {
			return "nan"
		}
		if math.IsInf(v, 0) {
			return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.RawMessage:
		var out bytes.Buffer
		if json.Compact(&out, v) == nil {
			return out.String()
		}
		return string(v)
	case []byte:
		return fmt.Sprintf(`\x%x`, v[:min(len(v), 2000)])
	case []any:
		text, err := json.Marshal(listOf(v))
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	return fmt.Sprint(v)
}

// listOf returns a list whose values JSON has.
func listOf(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case []any:
			out[i] = listOf(v)
		case float64, []byte:
			out[i] = v
			if f, isFloat := v.(float64); !isFloat || math.IsNaN(f) || math.IsInf(f, 0) {
				out[i] = cellText(v)
			}
		default:
			out[i] = v
		}
	}
	return out
}

func (t *tableView) stats(c int, rows []int) *ColumnStats {
	out := &ColumnStats{Count: len(rows)}
	isNumber := t.columns[c].Kind == "number"
	counts := map[string]int{}
	var low, high any
	var lowKey, highKey sortKey
	var numbers []float64
	present := 0
	for _, n := range rows {
		v := t.data[c][n]
		if v == nil {
			out.Missing++
			continue
		}
		present++
		if text, ok := v.(string); ok && text == "" {
			out.Empty++
		}
		k := keyOf(v, isNumber)
		if k.rank == 3 {
			out.NaN++
			continue
		}
		if len(counts) <= maxDistinct {
			counts[cellText(v)]++
		}
		if k.rank == 0 && !math.IsInf(k.number, 0) {
			numbers = append(numbers, k.number)
		}
		if low == nil || k.compare(&lowKey, false) < 0 {
			low, lowKey = v, k
		}
		if high == nil || k.compare(&highKey, false) > 0 {
			high, highKey = v, k
		}
	}
	out.Distinct, out.DistinctMore = min(len(counts), maxDistinct), len(counts) > maxDistinct
	if !out.DistinctMore && len(counts) < present {
		out.Top = topOf(counts)
	}
	if t.columns[c].Kind != "json" && low != nil {
		out.Min, out.Max = pageCell(low, maxTopValueRunes), pageCell(high, maxTopValueRunes)
	}
	if isNumber {
		numberStats(out, numbers)
	}
	return out
}

func topOf(counts map[string]int) []TopValue {
	var list []TopValue
	for text, n := range counts {
		list = append(list, TopValue{text, n})
	}
	slices.SortFunc(list, func(a, b TopValue) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Value, b.Value)) })
	list = list[:min(len(list), topValues)]
	for i := range list {
		list[i].Value = Shorten(list[i].Value, maxTopValueRunes)
	}
	return list
}

func numberStats(out *ColumnStats, numbers []float64) {
	if len(numbers) == 0 {
		return
	}
	slices.Sort(numbers)
	sum := 0.0
	for _, x := range numbers {
		sum += x
	}
	middle := len(numbers) / 2
	median := numbers[middle]
	if len(numbers)%2 == 0 {
		median = (numbers[middle-1] + numbers[middle]) / 2
	}
	if mean := sum / float64(len(numbers)); !math.IsInf(sum, 0) && !math.IsInf(median, 0) {
		out.Sum, out.Mean, out.Median = &sum, &mean, &median
	}
	low := numbers[0]
	width := (numbers[len(numbers)-1] - low) / histogramBins
	if width <= 0 || math.IsInf(width, 0) {
		return
	}
	out.Bins = make([]int, histogramBins)
	for _, x := range numbers {
		out.Bins[min(int((x-low)/width), histogramBins-1)]++
	}
}
