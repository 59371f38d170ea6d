package recording

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Tag is the type of a Value. The package comment lists the tags.
type Tag byte

// The tags of values.
const (
	TagNone       Tag = 'N'
	TagTrue       Tag = 'T'
	TagFalse      Tag = 'F'
	TagEllipsis   Tag = '.'
	TagInt        Tag = 'i'
	TagBigInt     Tag = 'I'
	TagFloat      Tag = 'f'
	TagComplex    Tag = 'c'
	TagText       Tag = 's'
	TagTextCut    Tag = 'S'
	TagSurrogates Tag = 'u'
	TagBytes      Tag = 'b'
	TagBytesCut   Tag = 'B'
	TagRaw        Tag = 'R'
	TagObject     Tag = '@'

	tagDecimal Tag = 'd' // a float in the stream; a decoded Value has TagFloat instead
)

// Value is a scalar or a reference to an object. Values are comparable: equal values compare as equal.
type Value struct {
	Tag    Tag
	Int    int64  // of TagInt; see also length and imag
	Float  uint64 // the bits of TagFloat, and of the real part of TagComplex
	Text   string // of TagText, TagTextCut and TagRaw; the bytes of TagBigInt, TagSurrogates, TagBytes, TagBytesCut
	Object uint64 // of TagObject: the object's number
}

// imag returns the bits of the imaginary part of TagComplex.
func (v Value) imag() uint64 { return uint64(v.Int) }

// length returns the complete length of TagTextCut and TagBytesCut.
func (v Value) length() uint64 { return uint64(v.Int) }

// integer returns the value of TagInt, and 0 for other values.
func (v Value) integer() int64 {
	if v.Tag == TagInt {
		return v.Int
	}
	return 0
}

// BigInt returns the integer of a TagInt or TagBigInt value, and nil for other values.
func (v Value) BigInt() *big.Int {
	switch v.Tag {
	case TagInt:
		return big.NewInt(v.Int)
	case TagBigInt:
		raw := []byte(v.Text)
		negative := len(raw) > 0 && raw[len(raw)-1] >= 0x80
		for i, j := 0, len(raw)-1; i < j; i, j = i+1, j-1 {
			raw[i], raw[j] = raw[j], raw[i]
		}
		out := new(big.Int).SetBytes(raw)
		if negative {
			out.Sub(out, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
		}
		return out
	}
	return nil
}

// Exactness says how much of an object is recorded.
type Exactness uint8

// The degrees of exactness; the package comment defines them.
const (
	Exact Exactness = iota
	Truncated
	Sampled
	Unread
)

func (e Exactness) String() string {
	if e <= Unread {
		return [...]string{"exact", "truncated", "sampled", "unread"}[e]
	}
	return "exactness " + strconv.Itoa(int(e))
}

// Form says how to interpret the values of an object.
type Form uint8

// The forms of an object's contents; the package comment defines them.
const (
	Opaque Form = iota
	Items
	Pairs
	Attributes
	_ // tables in older recordings
	Described
	Framed
)

// allows reports whether an object of this form may have count values.
func (f Form) allows(count uint64) bool {
	switch f {
	case Opaque:
		return count == 0
	case Pairs, Attributes:
		return count%2 == 0
	case Described:
		return count == 0 || count%2 == 1
	}
	return true
}

// Object is one version of a value that is not a scalar.
type Object struct {
	Number    uint64
	Type      uint64 // a name
	Version   uint64
	Exactness Exactness
	Length    int64 // -1 if the object has no length
	Form      Form
	Values    []Value
}

// EachHeld calls visit with the number of each object that o's values refer to.
func (o *Object) EachHeld(visit func(object uint64)) {
	for _, v := range o.Values {
		if v.Tag == TagObject {
			visit(v.Object)
		}
	}
}

// Parts returns the values of o that are parts of the object: without the text of a described object or a frame.
func (o *Object) Parts() []Value {
	if o.Form >= Described && len(o.Values) > 0 {
		return o.Values[1:]
	}
	return o.Values
}

// Scalar returns the scalar that a described object equals, such as a numpy.float64.
func (o *Object) Scalar() (v Value, ok bool) {
	if o.Form == Described && len(o.Values) == 1 && o.Values[0].Tag != TagRaw && o.Values[0].Tag != TagObject {
		return o.Values[0], true
	}
	return v, false
}

// Column is a column of a DataFrame.
type Column struct {
	Label   Value
	Type    string // its dtype
	Missing int64  // number of missing values; -1 if unknown
}

// Row is a row of a DataFrame.
type Row struct {
	Label Value
	Cells []Value // one for each recorded column
}

// DataFrame is what is recorded of a DataFrame or Series: its first columns and rows. The object's length is the number
// of all rows. A cell is a scalar or a TagRaw.
type DataFrame struct {
	Text         string
	Columns      []Column
	Rows         []Row
	TotalColumns int // of the object
}

// DataFrame returns the contents of a DataFrame or Series, and false for another object and for one that is not whole.
func (o *Object) DataFrame() (f DataFrame, ok bool) {
	v := o.Values
	if o.Form != Framed || len(v) < 2 || v[1].Tag != TagInt || v[1].Int < 0 || v[1].Int > int64(len(v)-2)/3 {
		return f, false
	}
	f.Text = v[0].Text
	columns := int(v[1].Int)
	for v = v[2:]; len(f.Columns) < columns; v = v[3:] {
		missing := int64(-1)
		if v[2].Tag == TagInt {
			missing = v[2].Int
		}
		f.Columns = append(f.Columns, Column{Label: v[0], Type: v[1].Text, Missing: missing})
	}
	for ; len(v) > columns; v = v[1+columns:] {
		f.Rows = append(f.Rows, Row{Label: v[0], Cells: v[1 : 1+columns]})
	}
	f.TotalColumns = columns
	var all, rows int
	if n, _ := fmt.Sscanf(f.Text, "<DataFrame %dx%d", &rows, &all); n == 2 {
		f.TotalColumns = max(all, columns)
	}
	return f, true
}

// IntValue returns the Value of an integer.
func IntValue(n *big.Int) Value {
	if n.IsInt64() {
		return Value{Tag: TagInt, Int: n.Int64()}
	}
	size := n.BitLen()/8 + 1 // including the sign bit
	raw := new(big.Int).Set(n)
	if n.Sign() < 0 {
		raw.Add(raw, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	b := raw.FillBytes(make([]byte, size))
	slices.Reverse(b)
	return Value{Tag: TagBigInt, Text: string(b)}
}

// scalarText returns None, a bool, an integer or a float as Python's repr writes it.
func (v Value) scalarText() string {
	switch v.Tag {
	case TagNone:
		return "None"
	case TagTrue:
		return "True"
	case TagFalse:
		return "False"
	case TagInt:
		return strconv.FormatInt(v.Int, 10)
	case TagFloat:
		return pythonFloat(v.Float)
	case TagComplex:
		return "complex(" + pythonFloat(v.Float) + ", " + pythonFloat(v.imag()) + ")"
	}
	return "?"
}

// pythonFloat returns a float as Python's repr writes it.
func pythonFloat(bits uint64) string {
	f := math.Float64frombits(bits)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if f != 0 && (math.Abs(f) >= 1e16 || math.Abs(f) < 1e-4) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
