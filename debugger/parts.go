package debugger

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/recording"
)

// path leads from an object to one of its parts: the expression of the part is the object's between prefix and suffix.
// Without both there is no expression.
type path struct {
	Prefix string `json:"prefix"`
	Suffix string `json:"suffix"`
}

// primary matches expressions that a suffix can follow without parentheses.
var primary = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*|\[-?\d+\]|\['[^'\\]*'\])*$`)

// of returns the expression of the part of an object, or "" if there is none.
func (p path) of(object string) string {
	if object == "" || p == (path{}) {
		return ""
	}
	if p.Prefix == "" && !primary.MatchString(object) {
		object = "(" + object + ")"
	}
	return p.Prefix + object + p.Suffix
}

// liveView is a value as the program describes it.
type liveView struct {
	VariableView
	Path       path `json:"path"`
	Attributes bool `json:"attributes"`
	Columns    int  `json:"columns"`
	Own        bool `json:"own"` // a class of the program has made a part of the text
}

func (v liveView) view() VariableView {
	v.path, v.isAttributes, v.columns = v.Path, v.Attributes, max(v.Columns, 0)
	return v.VariableView
}

func index(i int) path { return path{Suffix: "[" + strconv.Itoa(i) + "]"} }

// listed leads to a part of an object that can be iterated but not indexed.
func listed(i int) path { return path{"[*", "][" + strconv.Itoa(i) + "]"} }

var identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// keywords cannot be the names of attributes in an expression.
var keywords = strings.Fields("False None True and as assert async await break class continue def del elif else " +
	"except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

func attribute(name string) path {
	if identifier.MatchString(name) && !slices.Contains(keywords, name) {
		return path{Suffix: "." + name}
	}
	return path{"getattr(", ", " + recording.PythonText(name) + ")"}
}

// partList is the recorded parts of one object.
type partList struct {
	count int
	at    func(i int) VariableView
}

func isSeries(typeName string) bool { return strings.HasSuffix(typeName, "Series") }

// parts returns the recorded parts of an object: of a DataFrame its columns and then its rows.
func (w viewer) parts(o *recording.Object, typeName string) partList {
	if f, ok := o.DataFrame(); ok {
		return w.frameParts(f, typeName)
	}
	values := o.Parts()
	if o.Form <= recording.Items {
		return partList{len(values), func(i int) VariableView {
			v := w.variable(strconv.Itoa(i), values[i])
			switch typeName {
			case "bytearray":
			case "list", "tuple", "collections.deque":
				v.path = index(i)
			default:
				v.path = listed(i)
			}
			return v
		}}
	}
	return partList{len(values) / 2, func(i int) VariableView {
		key := values[2*i]
		name := w.state.Preview(w.table, key, maxValuePreview)
		if o.Form != recording.Pairs && key.Tag == recording.TagText {
			name = key.Text
		}
		v := w.variable(name, values[2*i+1])
		v.path = w.keyPath(o.Form, typeName, key, i)
		return v
	}}
}

// keyPath returns the path to the part i of an object whose parts have keys.
func (w viewer) keyPath(form recording.Form, typeName string, key recording.Value, i int) path {
	switch {
	case form == recording.Pairs && typeName == "dict_items":
		return path{"[*", "][" + strconv.Itoa(i) + "][1]"}
	case form == recording.Pairs && isLiteral(key):
		return path{Suffix: "[" + w.state.Preview(w.table, key, math.MaxInt32) + "]"}
	case form == recording.Pairs:
		return path{"[*dict.values(", ")][" + strconv.Itoa(i) + "]"}
	case key.Tag == recording.TagText:
		return attribute(key.Text)
	case key.Tag != recording.TagInt:
		return path{}
	}
	return index(i)
}

// isLiteral reports whether the preview of a key evaluates to an equal key.
func isLiteral(key recording.Value) bool {
	switch key.Tag {
	case recording.TagText, recording.TagBytes, recording.TagInt, recording.TagTrue, recording.TagFalse,
		recording.TagNone:
		return true
	case recording.TagFloat:
		f := math.Float64frombits(key.Float)
		return !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return false
}

func (w viewer) frameParts(f recording.DataFrame, typeName string) partList {
	columns := f.Columns
	if isSeries(typeName) {
		columns = nil
	}
	return partList{len(columns) + len(f.Rows), func(i int) VariableView {
		if i < len(columns) {
			return w.column(f, i)
		}
		i -= len(columns)
		return w.row(f, i, len(columns) == 0)
	}}
}

// column returns a column with its first cells.
func (w viewer) column(f recording.DataFrame, i int) VariableView {
	c := f.Columns[i]
	cells := make([]string, len(f.Rows))
	for r, row := range f.Rows {
		cells[r] = w.state.Preview(w.table, row.Cells[i], maxValuePreview)
	}
	before, all := 0, 0 // columns with the same label
	for other := range f.Columns {
		if w.plainLabel(f.Columns[other].Label) == w.plainLabel(c.Label) {
			if all++; other < i {
				before++
			}
		}
	}
	v := VariableView{Name: w.plainLabel(c.Label), Value: c.Type, Type: "pandas.Series"}
	if before > 0 {
		v.Name += "_" + strconv.Itoa(before+1) // as db_query names columns
	}
	if c.Missing > 0 {
		v.Value += " (" + strconv.FormatInt(c.Missing, 10) + " null)"
	}
	if len(cells) > 0 {
		v.Value += ": " + strings.Join(cells, ", ")
	}
	v.path = path{Suffix: ".iloc[:, " + strconv.Itoa(i) + "]"}
	if all == 1 && (c.Label.Tag == recording.TagText || c.Label.Tag == recording.TagInt) {
		v.path = path{Suffix: "[" + w.state.Preview(w.table, c.Label, math.MaxInt32) + "]"}
	}
	return v
}

// row returns a row: of a Series its value, of a DataFrame the cells with the names of their columns.
func (w viewer) row(f recording.DataFrame, i int, isSeries bool) VariableView {
	row := f.Rows[i]
	name := w.state.Preview(w.table, row.Label, maxValuePreview)
	v := VariableView{Name: name, Type: "pandas.Series"}
	if isSeries {
		v = w.variable(name, row.Cells[0])
	} else {
		cells := make([]string, len(row.Cells))
		for c, cell := range row.Cells {
			cells[c] = w.state.Preview(w.table, f.Columns[c].Label, maxValuePreview) + ": " +
				w.state.Preview(w.table, cell, maxValuePreview)
		}
		v.Value = "{" + strings.Join(cells, ", ") + "}"
	}
	v.path = path{Suffix: ".iloc[" + strconv.Itoa(i) + "]"}
	return v
}

func (w viewer) plainLabel(label recording.Value) string {
	if label.Tag == recording.TagText {
		return label.Text
	}
	return w.state.Preview(w.table, label, maxValuePreview)
}
