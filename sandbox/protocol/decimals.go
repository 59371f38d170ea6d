package protocol

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"glasshouse/sandbox"
)

// exactDigits is the number of significant digits that every decimal keeps as a float64 (DBL_DIG of C).
const exactDigits = 15

// decimals encodes a column of numeric values as float64; NULL is NaN. It reports whether a value of the column lost
// digits. If isRounded says that one did before, it does not look for another.
func (f *frames) decimals(v *sandbox.ColumnValues, isRounded bool) bool {
	f.tuple(3, "d", 8*len(v.Ends))
	b := f.space(8 * len(v.Ends))
	for i := range v.Ends {
		x := math.NaN()
		if v.Nulls == nil || !v.Nulls[i] {
			text := v.TextAt(i)
			x, _ = strconv.ParseFloat(string(text), 64) // a number beyond the range becomes infinite
			isRounded = isRounded || !isSameNumber(text, x)
		}
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	return isRounded
}

// isSameNumber reports whether the nearest float64 of a numeric value prints as the same number, apart from zeros at
// the end. PostgreSQL prints a numeric value without exponent, or as NaN, Infinity or -Infinity.
func isSameNumber(text []byte, x float64) bool {
	if bytes.IndexByte(text, '.') >= 0 {
		text = bytes.TrimSuffix(bytes.TrimRight(text, "0"), []byte("."))
	}
	if len(text) <= exactDigits {
		return true // the three texts are not longer
	}
	var shortest [400]byte // more than the digits of the smallest number, 5e-324
	return bytes.Equal(text, strconv.AppendFloat(shortest[:0], x, 'f', -1, 64))
}
