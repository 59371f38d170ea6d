package debugger

import (
	"math/big"
	"strconv"
)

// Tag says which kind of value a Value is; the package comment lists them.
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
	TagObject     Tag = '@'

	tagDecimal Tag = 'd' // a float in a recording; no Value has it
)

// Value is a scalar, whole, or the number of an object. It is comparable.
type Value struct {
	Tag    Tag
	Int    int64  // of 'i'
	Float  uint64 // the bits of 'f', and of the real part of 'c'
	Imag   uint64 // the bits of the imaginary part of 'c'
	Text   string // of 's' and 'S'; the bytes of 'I', 'u', 'b' and 'B'
	Length uint64 // of 'S' and 'B': how many there are in all
	Object uint64 // of '@'
}

// BigInt returns the integer that v is, or nil.
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

// Exactness says how much of an object its contents tell.
type Exactness uint8

// What contents tell; the package comment says more.
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

// Form says how to read the values of an object.
type Form uint8

// The forms of contents.
const (
	Opaque Form = iota
	Items
	Pairs
	Attributes
	Tabular
)

// Object is one version of what is no scalar.
type Object struct {
	Number    uint64
	Type      uint64 // a name
	Version   uint64
	Exactness Exactness
	Length    int64 // -1 where it has none
	Form      Form
	Values    []Value // in turn key and value, but for Items
}

// holds calls visit with the number of each object that o's values name.
func (o *Object) holds(visit func(uint64)) {
	for _, v := range o.Values {
		if v.Tag == TagObject {
			visit(v.Object)
		}
	}
}
