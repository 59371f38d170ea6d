package debugger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// errShort says that the record's end is not there yet.
var errShort = errors.New("the record is not whole")

// reader takes fields from the front of b; after the first error the rest is zero.
type reader struct {
	b     []byte
	off   int
	err   error
	texts *texts // nil: none are known
}

// texts are some that came last, by their looks: most come again and again.
type texts [256]string

const longText = 64 // bytes of one that is not kept

func (t *texts) place(b []byte) *string {
	if t == nil || len(b) == 0 || len(b) > longText {
		return nil
	}
	return &t[byte(len(b)*113+int(b[0])*31+int(b[len(b)/2])*17+int(b[len(b)-1]))]
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) short() {
	if r.err == nil {
		r.err = errShort
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.off >= len(r.b) {
		r.short()
		return 0
	}
	r.off++
	return r.b[r.off-1]
}

func (r *reader) n() uint64 {
	if r.err != nil {
		return 0
	}
	if r.off < len(r.b) && r.b[r.off] < 0x80 { // most are of one byte
		r.off++
		return uint64(r.b[r.off-1])
	}
	v, size := binary.Uvarint(r.b[r.off:])
	switch {
	case size == 0:
		r.short()
		return 0
	case size < 0:
		r.fail("a number has more than 64 bits")
		return 0
	}
	r.off += size
	return v
}

func (r *reader) z() int64 {
	v := r.n()
	return int64(v>>1) ^ -int64(v&1)
}

func (r *reader) raw() []byte {
	size := r.n()
	if size > maxText {
		r.fail("%d bytes, at most %d", size, maxText)
	}
	if r.err == nil && uint64(len(r.b)-r.off) < size {
		r.short()
	}
	if r.err != nil {
		return nil
	}
	r.off += int(size)
	return r.b[r.off-int(size) : r.off]
}

func (r *reader) text() string {
	b := r.raw()
	known := r.texts.place(b)
	if known != nil && *known == string(b) {
		return *known
	}
	if !utf8.Valid(b) {
		r.fail("a text is not UTF-8")
		return ""
	}
	s := string(b)
	if known != nil {
		*known = s
	}
	return s
}

func (r *reader) double() uint64 {
	if r.err != nil || len(r.b)-r.off < 8 {
		r.short()
		return 0
	}
	r.off += 8
	return binary.LittleEndian.Uint64(r.b[r.off-8:])
}

func (r *reader) value() Value {
	v := Value{Tag: Tag(r.byte())}
	switch v.Tag {
	case TagNone, TagTrue, TagFalse, TagEllipsis:
	case TagInt:
		v.Int = r.z()
	case TagBigInt:
		v = integer(string(r.raw()))
	case TagSurrogates, TagBytes:
		v.Text = string(r.raw())
	case TagFloat:
		v.Float = r.double()
	case tagDecimal:
		v = r.decimal()
	case TagComplex:
		v.Float, v.Imag = r.double(), r.double()
	case TagText:
		v.Text = r.text()
	case TagTextCut:
		v.Length, v.Text = r.n(), r.text()
	case TagBytesCut:
		v.Length, v.Text = r.n(), string(r.raw())
	case TagObject:
		v.Object = r.n()
	default:
		r.fail("no value begins with %#x", byte(v.Tag))
	}
	return v
}

// powers of ten by which a decimal is divided: doubles hold them exactly.
var powers = [...]float64{1, 10, 100, 1e3, 1e4}

func (r *reader) decimal() Value {
	places, whole := r.byte(), r.z()
	if int(places) >= len(powers) {
		r.fail("a decimal with %d places", places)
		return Value{}
	}
	return Value{Tag: TagFloat, Float: math.Float64bits(float64(whole) / powers[places])}
}

// integer is a signed little-endian one: equal values are equal Values, however they came.
func integer(raw string) Value {
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

func (r *reader) contents(o *Object) {
	o.Version = r.n()
	exactness, length, form, count := r.n(), r.n(), r.n(), r.n()
	if exactness > uint64(Unread) || form > uint64(Tabular) || length > math.MaxInt64 {
		r.fail("an object's contents: exactness %d, form %d, length %d, version %d", exactness, form, length, o.Version)
	}
	if count > maxValues || Form(form) == Opaque && count > 0 || Form(form) > Items && count%2 != 0 {
		r.fail("an object of form %d has %d values", form, count)
	}
	if r.err != nil {
		return
	}
	o.Exactness, o.Form, o.Length = Exactness(exactness), Form(form), int64(length)-1
	if uint64(len(r.b)-r.off) < count { // each takes a byte at the least
		r.short()
		return
	}
	if count > 0 {
		o.Values = make([]Value, count)
	}
	for i := range o.Values {
		o.Values[i] = r.value()
	}
}

// decode takes one record from the front of b into rec and returns how many bytes it
// has; errShort says that more bytes are needed.
func decode(b []byte, rec *Record) (int, error) { return (*texts)(nil).decode(b, rec) }

// decode is the same with texts that may come again.
func (t *texts) decode(b []byte, rec *Record) (int, error) {
	r := reader{b: b, texts: t}
	kind := r.byte()
	*rec = Record{Kind: Kind(kind)}
	switch rec.Kind {
	case KindHead:
		rec.Number, rec.Text, rec.Extra = r.n(), r.text(), r.text()
	case KindName:
		rec.Text = r.text()
	case KindCode:
		rec.File, rec.Name, rec.Number = r.n(), r.n(), r.n()
	case KindThread:
		rec.Number, rec.Parent, rec.Text = r.n(), r.n(), r.text()
	case KindPush:
		rec.Frame, rec.Code, rec.Lane, rec.Parent, rec.Number = r.n(), r.n(), r.n(), r.n(), r.n()
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
			r.fail("a new object has no version")
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
		if kind >= shortLine {
			rec.Kind, rec.Delta = KindLine, int64(kind)-shortZero
		} else {
			r.fail("no record begins with %#x", kind)
		}
	}
	if r.err == errShort && len(b) >= maxRecord {
		r.err = fmt.Errorf("a record of more than %d bytes", maxRecord)
	}
	return r.off, r.err
}
