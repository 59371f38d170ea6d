package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// errIncomplete means that the end of the record has not arrived yet.
var errIncomplete = errors.New("the record is incomplete")

// fieldReader decodes fields from the front of b. After the first error all further fields are zero.
type fieldReader struct {
	b      []byte
	off    int
	err    error
	intern *internTable // nil: every text is allocated
}

// internTable holds recently decoded texts by a hash: most texts of a recording repeat, and are then not allocated
// again.
type internTable [256]string

// maxInternedBytes bounds the length of an interned text.
const maxInternedBytes = 64

// slot returns the slot of a text, or nil if the text is too long to be interned.
func (t *internTable) slot(b []byte) *string {
	if t == nil || len(b) == 0 || len(b) > maxInternedBytes {
		return nil
	}
	return &t[byte(len(b)*113+int(b[0])*31+int(b[len(b)/2])*17+int(b[len(b)-1]))]
}

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *fieldReader) failIncomplete() {
	if r.err == nil {
		r.err = errIncomplete
	}
}

func (r *fieldReader) byte() byte {
	if r.err != nil || r.off >= len(r.b) {
		r.failIncomplete()
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

// n decodes an unsigned integer.
func (r *fieldReader) n() uint64 {
	if r.err != nil {
		return 0
	}
	if r.off < len(r.b) && r.b[r.off] < 0x80 { // most integers take one byte
		r.off++
		return uint64(r.b[r.off-1])
	}
	v, size := binary.Uvarint(r.b[r.off:])
	switch {
	case size == 0:
		r.failIncomplete()
		return 0
	case size < 0:
		r.fail("an integer has more than 64 bits")
		return 0
	}
	r.off += size
	return v
}

// z decodes a signed integer.
func (r *fieldReader) z() int64 { return unzigzag(r.n()) }

// bytes decodes a length and that many bytes. The result is a part of r.b.
func (r *fieldReader) bytes() []byte {
	size := r.n()
	if size > maxTextBytes {
		r.fail("a text has %d bytes; the limit is %d", size, maxTextBytes)
	}
	if r.err == nil && uint64(len(r.b)-r.off) < size {
		r.failIncomplete()
	}
	if r.err != nil {
		return nil
	}
	r.off += int(size)
	return r.b[r.off-int(size) : r.off]
}

func (r *fieldReader) text() string {
	b := r.bytes()
	slot := r.intern.slot(b)
	if slot != nil && *slot == string(b) {
		return *slot
	}
	if !utf8.Valid(b) {
		r.fail("a text is not UTF-8")
		return ""
	}
	s := string(b)
	if slot != nil {
		*slot = s
	}
	return s
}

// double decodes the bits of a float.
func (r *fieldReader) double() uint64 {
	if r.err != nil || len(r.b)-r.off < 8 {
		r.failIncomplete()
		return 0
	}
	r.off += 8
	return binary.LittleEndian.Uint64(r.b[r.off-8:])
}

func (r *fieldReader) value() Value {
	v := Value{Tag: Tag(r.byte())}
	switch v.Tag {
	case TagNone, TagTrue, TagFalse, TagEllipsis:
	case TagInt:
		v.Int = r.z()
	case TagBigInt:
		v = integerValue(string(r.bytes()))
	case TagSurrogates, TagBytes:
		v.Text = string(r.bytes())
	case TagFloat:
		v.Float = r.double()
	case tagDecimal:
		v = r.decimal()
	case TagComplex:
		v.Float, v.Int = r.double(), int64(r.double())
	case TagText, TagRaw:
		v.Text = r.text()
	case TagTextCut:
		v.Int, v.Text = int64(r.n()), r.text()
	case TagBytesCut:
		v.Int, v.Text = int64(r.n()), string(r.bytes())
	case TagObject:
		v.Object = r.n()
	default:
		r.fail("unknown value tag %#x", byte(v.Tag))
	}
	return v
}

// powersOfTen are the divisors of decimals. A double represents each of them exactly.
var powersOfTen = [...]float64{1, 10, 100, 1e3, 1e4}

// maxDecimal is more than the digits of each decimal as an integer.
const maxDecimal = 1e9

func (r *fieldReader) decimal() Value {
	v, err := decimalValue(r.byte(), r.z())
	if err != nil && r.err == nil {
		r.err = err
	}
	return v
}

// decimalValue returns the float that is a whole number divided by a power of ten. It returns an error if a recorder
// would write that float in another form.
func decimalValue(places byte, whole int64) (Value, error) {
	if int(places) >= len(powersOfTen) {
		return Value{}, fmt.Errorf("a decimal has %d places; the limit is %d", places, len(powersOfTen)-1)
	}
	if whole == 0 || whole <= -maxDecimal || whole >= maxDecimal { // appendValue would write a longer float
		return Value{}, fmt.Errorf("a decimal has the digits %d; it must be 1 to %d or negative", whole,
			int64(maxDecimal-1))
	}
	return Value{Tag: TagFloat, Float: math.Float64bits(float64(whole) / powersOfTen[places])}, nil
}

// integerValue returns the Value of a little-endian two's complement integer. It returns TagInt where the integer fits,
// so that equal integers are equal Values however they were encoded.
func integerValue(raw string) Value {
	if len(raw) > 8 {
		return Value{Tag: TagBigInt, Text: raw}
	}
	var n int64
	for i := len(raw) - 1; i >= 0; i-- {
		n = n<<8 | int64(raw[i])
	}
	unused := 64 - 8*len(raw) // bits above the sign
	return Value{Tag: TagInt, Int: n << unused >> unused}
}

// setHead sets the fields of an object's contents that precede its values. It returns an error if the object cannot
// have count values.
func (o *Object) setHead(exactness uint64, length int64, form, count uint64) error {
	if exactness > uint64(Unread) || form > uint64(Framed) || form == uint64(Attributes+1) || length < -1 {
		return fmt.Errorf("an object has exactness %d, form %d and length %d", exactness, form, length)
	}
	if count > maxObjectValues || !Form(form).allows(count) {
		return fmt.Errorf("an object of form %d has %d values; the limit is %d", form, count, maxObjectValues)
	}
	o.Exactness, o.Form, o.Length = Exactness(exactness), Form(form), length
	return nil
}

func (r *fieldReader) contents(o *Object) {
	o.Version = r.n()
	exactness, length, form, count := r.n(), r.n(), r.n(), r.n()
	if length > math.MaxInt64 {
		r.fail("an object has a length of %d", length-1)
	}
	if err := o.setHead(exactness, int64(length)-1, form, count); err != nil && r.err == nil {
		r.err = err
	}
	if r.err != nil {
		return
	}
	if uint64(len(r.b)-r.off) < count { // a value has at least one byte
		r.failIncomplete()
		return
	}
	if count > 0 {
		o.Values = make([]Value, count)
	}
	for i := range o.Values {
		o.Values[i] = r.value()
	}
}

// decodeRecord decodes one record from the front of b into rec and returns its length in bytes. It returns
// errIncomplete if b ends within the record. intern may be nil.
func decodeRecord(b []byte, rec *Record, intern *internTable) (int, error) {
	r := fieldReader{b: b, intern: intern}
	first := r.byte()
	*rec = Record{Kind: Kind(first)}
	switch rec.Kind {
	case KindHead:
		rec.Number, rec.Text, rec.Python = r.n(), r.text(), r.text()
	case KindName, KindStatement:
		rec.Text = r.text()
	case KindCode:
		rec.File, rec.Name, rec.Number = r.n(), r.n(), r.n()
	case KindThread:
		rec.Number, rec.Parent, rec.Text = r.n(), r.n(), r.text()
	case KindPush:
		rec.Frame, rec.Code, rec.Thread, rec.Parent, rec.Number = r.n(), r.n(), r.n(), r.n(), r.n()
		if rec.Number&FlagRestated != 0 {
			rec.From = r.n()
		}
	case KindResume:
		rec.Frame, rec.Parent = r.n(), r.n()
	case KindSuspend, KindReturn:
		rec.Value = r.value()
	case KindUnwind, KindRaise, KindSet, KindGlobal:
		rec.Name, rec.Value = r.n(), r.value()
	case KindFrame:
		rec.Frame = r.n()
	case KindLine:
		rec.Delta = r.z()
	case KindDelete, KindForget, KindUnread:
		rec.Name = r.n()
	case KindObject:
		rec.Object.Number, rec.Object.Type = r.n(), r.n()
		if r.contents(&rec.Object); rec.Object.Version == 0 {
			r.fail("a new object has version 0")
		}
	case KindMutate:
		rec.Object.Number = r.n()
		r.contents(&rec.Object)
	case KindFree:
		rec.Number = r.n()
	case KindHandled:
	case KindOutput:
		rec.Number, rec.From, rec.To = r.n(), r.n(), r.n()
	case KindEvent:
		rec.Name, rec.Number = r.n(), r.n()
	case KindLost:
		rec.Number, rec.Text = r.n(), r.text()
	default:
		if first >= shortLineFirst {
			rec.Kind, rec.Delta = KindLine, int64(first)-shortLineZero
		} else {
			r.fail("unknown record kind %#x", first)
		}
	}
	if r.err == errIncomplete && len(b) >= maxRecordBytes {
		r.err = fmt.Errorf("a record has more than %d bytes", maxRecordBytes)
	}
	return r.off, r.err
}
