package recording

import (
	"encoding/binary"
	"errors"
	"math"
)

// deltaCoder encodes the records of one chunk as differences, in columns, and decodes them. Its methods for fields do
// both: they write the value that they get, or read and return one.
//
// Frame and object numbers become signed differences from the latest number. A value is compared with the previous
// value of the same variable, or at the same index of the same object, or else of the latest object of the same type:
// an equal value becomes one zero byte, and an integer becomes a difference. A text or float that is one of the recent
// values becomes one byte, its place, and so does a float that is the sum of the previous value and a recent one.
// Integers whose differences are long are compared with recent integers in the same way. After maxDeltaBytes of objects
// it forgets them and begins anew. Encoding and decoding a chunk each begin with a new deltaCoder.
type deltaCoder struct {
	columns columns                  // those that are written
	readers *[numColumns]fieldReader // nil while encoding

	frame, object uint64            // the latest numbers
	callers       map[uint64]uint64 // by code: the frame that called it last
	outputs       [4]uint64         // by stream: the end of the latest output
	variables     map[uint64]Value  // by variableKey
	objects       map[uint64]Object
	byType        map[uint64]Object // the latest object of each type
	bytes         int               // of what objects and byType have held, estimated
	recent        recentValues
	integers      recentIntegers

	relinks bool // the latest object that changed holds an object that it did not hold there before
}

// maxDeltaBytes bounds the memory of a deltaCoder for objects. A recorder restates less behind a gap.
const maxDeltaBytes = 2 * maxStateBytes

// Codes that replace the tag of a value. No tag is as low.
const (
	equalValue = 0                          // it equals the previous value
	firstPlace = 1                          // first of maxRecentValues codes: a recent value, by its place
	firstSum   = 1 + maxRecentValues        // first of as many: the previous float plus a recent value
	firstInt   = firstSum + maxRecentValues // first of maxRecentIntegers codes: a recent integer, by its place
	firstTotal = firstInt + maxRecentIntegers
	firstTag   = firstTotal + maxRecentIntegers
)

var errDeltas = errors.New("delta-encoded records are damaged")

func newDeltaCoder() *deltaCoder {
	return &deltaCoder{callers: map[uint64]uint64{}, variables: map[uint64]Value{}, objects: map[uint64]Object{},
		byType: map[uint64]Object{}}
}

// n codes an unsigned integer.
func (d *deltaCoder) n(column int, v uint64) uint64 {
	if d.readers != nil {
		return d.readers[column].n()
	}
	d.columns[column] = binary.AppendUvarint(d.columns[column], v)
	return v
}

// z codes a signed integer.
func (d *deltaCoder) z(column int, v int64) int64 { return unzigzag(d.n(column, zigzag(v))) }

// relative codes a number as its difference from another one.
func (d *deltaCoder) relative(column int, v, base uint64) uint64 {
	return base - uint64(d.z(column, int64(base-v)))
}

// code codes a byte of the shape.
func (d *deltaCoder) code(v byte) byte {
	if d.readers != nil {
		return d.readers[shapeColumn].byte()
	}
	d.columns[shapeColumn] = append(d.columns[shapeColumn], v)
	return v
}

// text codes a text, and raw any bytes.
func (d *deltaCoder) text(s string) string {
	if d.readers != nil {
		return d.readers[textColumn].text()
	}
	return d.raw(s)
}

func (d *deltaCoder) raw(s string) string {
	if d.readers != nil {
		return string(d.readers[textColumn].bytes())
	}
	d.columns[textColumn] = appendText(d.columns[textColumn], s)
	return s
}

func (d *deltaCoder) double(bits uint64) uint64 {
	if d.readers != nil {
		return d.readers[doubleColumn].double()
	}
	d.columns[doubleColumn] = binary.LittleEndian.AppendUint64(d.columns[doubleColumn], bits)
	return bits
}

// name codes the number of a definition, which is low.
func (d *deltaCoder) name(n uint64) uint64 {
	if n = d.n(shapeColumn, n); n > maxDefinitions {
		d.fail("a record has name %d", n) // it would take memory
	}
	return n
}

// fail notes an error of the records that are decoded. Records that are encoded may be illegal.
func (d *deltaCoder) fail(format string, args ...any) {
	if d.readers != nil {
		d.readers[shapeColumn].fail(format, args...)
	}
}

// encode appends a record to the columns.
func (d *deltaCoder) encode(rec *Record) {
	relative := *rec
	d.record(&relative)
}

// record codes a record. The records that make definitions are not in a chunk.
func (d *deltaCoder) record(rec *Record) {
	if rec.Kind == KindLine && rec.Delta >= shortLineFirst-shortLineZero && rec.Delta <= 0xff-shortLineZero {
		d.code(byte(rec.Delta + shortLineZero))
		return
	}
	first := d.code(byte(rec.Kind))
	if rec.Kind = Kind(first); first >= shortLineFirst {
		rec.Kind, rec.Delta = KindLine, int64(first)-shortLineZero
		return
	}
	switch rec.Kind {
	case KindPush:
		rec.Frame, rec.Code = d.relative(shapeColumn, rec.Frame, d.frame), d.name(rec.Code)
		rec.Parent = d.relative(shapeColumn, rec.Parent, d.callers[rec.Code])
		d.frame, d.callers[rec.Code] = rec.Frame, rec.Parent
		rec.Thread, rec.Number = d.n(shapeColumn, rec.Thread), d.n(shapeColumn, rec.Number)
		if rec.Number&FlagRestated != 0 {
			rec.From = d.n(numberColumn, rec.From)
		}
	case KindResume:
		rec.Frame = d.relative(numberColumn, rec.Frame, d.frame)
		rec.Parent = d.relative(numberColumn, rec.Parent, d.frame)
	case KindFrame:
		rec.Frame = d.relative(numberColumn, rec.Frame, d.frame)
	case KindLine:
		rec.Delta = d.z(shapeColumn, rec.Delta)
	case KindSuspend, KindReturn, KindSet, KindGlobal:
		d.variable(rec)
	case KindUnwind, KindRaise:
		rec.Name, rec.Value = d.name(rec.Name), d.value(rec.Value, Value{})
	case KindDelete, KindForget, KindUnread:
		rec.Name = d.name(rec.Name)
	case KindObject:
		d.newObject(&rec.Object)
	case KindMutate:
		rec.Object.Number = d.relative(numberColumn, rec.Object.Number, d.object)
		d.contents(&rec.Object, d.objects[rec.Object.Number])
	case KindFree:
		rec.Number = d.relative(numberColumn, rec.Number, d.object)
	case KindHandled:
	case KindOutput:
		rec.Number = d.n(shapeColumn, rec.Number)
		latest := &d.outputs[rec.Number%uint64(len(d.outputs))]
		rec.From = d.relative(numberColumn, rec.From, *latest)
		rec.To = d.relative(numberColumn, rec.To, rec.From)
		*latest = rec.To
	case KindEvent:
		rec.Name, rec.Number = d.name(rec.Name), d.n(numberColumn, rec.Number)
	case KindLost:
		rec.Number, rec.Text = d.n(numberColumn, rec.Number), d.text(rec.Text)
	default:
		d.fail("a chunk has a record of %s", rec.Kind)
	}
}

// variable codes the name and the value that a record sets, or the value that it returns.
func (d *deltaCoder) variable(rec *Record) {
	if rec.Kind == KindSet || rec.Kind == KindGlobal {
		rec.Name = d.name(rec.Name)
	}
	key := variableKey(rec)
	before := d.variables[key]
	if d.valueAfter(&rec.Value, &before); rec.Value.Tag != before.Tag || rec.Value != before {
		d.variables[key] = rec.Value
	}
}

// newObject codes an object that no previous record has.
func (d *deltaCoder) newObject(o *Object) {
	o.Number, o.Type = d.relative(numberColumn, o.Number, d.object), d.name(o.Type)
	d.object = o.Number
	before := d.byType[o.Type]
	before.Version = 1
	d.contents(o, before)
}

// variableKey returns the key of the variable that a record sets. Locals and globals of one name have different keys;
// frames do not matter. All calls together have one key for what they return.
func variableKey(rec *Record) uint64 {
	return rec.Name<<1 | bit(rec.Kind == KindGlobal || rec.Kind == KindReturn)
}

// value codes a value. before is the previous value, or the zero Value.
func (d *deltaCoder) value(v, before Value) Value {
	d.valueAfter(&v, &before)
	return v
}

// valueAfter is value without copies, which take a third of its time.
func (d *deltaCoder) valueAfter(v, before *Value) {
	code := byte(v.Tag)
	if d.readers == nil {
		if code = d.codeOf(v, before); code == equalValue {
			d.code(equalValue)
			return
		}
	}
	code = d.code(code)
	switch {
	case code == equalValue:
		if before.Tag == 0 {
			d.fail("a value equals a previous value that does not exist")
		}
		*v = *before
		return
	case code < firstSum:
		*v = d.recalled(int(code-firstPlace) + 1)
		return
	case code < firstInt:
		if before.Tag != TagFloat {
			d.fail("a sum has no previous float")
			return
		}
		*v = Value{Tag: TagFloat, Float: sum(before.Float, d.recalled(int(code-firstSum)+1).Float)}
		d.recent.add(v)
		return
	case code < firstTag:
		place, base := int(code-firstInt), int64(0)
		if code >= firstTotal {
			place, base = int(code-firstTotal), before.integer()
		}
		if place >= d.integers.count {
			d.fail("a value is made of number %d of %d recent integers", place+1, d.integers.count)
			return
		}
		*v = Value{Tag: TagInt, Int: base + d.integers.list[place]}
		d.integers.use(v.Int)
		return
	}
	switch v.Tag = Tag(code); v.Tag {
	case TagNone, TagTrue, TagFalse, TagEllipsis:
	case TagObject:
		v.Object = d.relative(numberColumn, v.Object, d.object)
	case TagInt:
		v.Int = before.integer() + d.z(numberColumn, v.Int-before.integer())
		d.integers.use(v.Int)
	case tagDecimal:
		*v = d.decimal(v.Float)
	case TagFloat:
		v.Float = d.double(v.Float)
	case TagComplex:
		v.Float, v.Int = d.double(v.Float), int64(d.double(v.imag()))
	case TagText, TagRaw:
		v.Text = d.text(v.Text)
	case TagTextCut:
		v.Int, v.Text = int64(d.n(numberColumn, v.length())), d.text(v.Text)
	case TagSurrogates, TagBytes, TagBigInt:
		v.Text = d.raw(v.Text)
	case TagBytesCut:
		v.Int, v.Text = int64(d.n(numberColumn, v.length())), d.raw(v.Text)
	default:
		d.fail("unknown value tag %#x", code)
		return
	}
	if isRecalled(v.Tag) {
		d.recent.add(v)
	}
}

// codeOf returns the byte that value writes first.
func (d *deltaCoder) codeOf(v, before *Value) byte {
	if v.Tag == before.Tag && *v == *before {
		return equalValue
	}
	if v.Tag == TagInt && !isShortDelta(v.Int, before.integer()) {
		if place := d.integers.place(v.Int); place > 0 {
			return byte(firstInt + place - 1)
		}
		if place := d.integers.place(v.Int - before.integer()); place > 0 {
			return byte(firstTotal + place - 1)
		}
	}
	if !isRecalled(v.Tag) {
		return byte(v.Tag)
	}
	if place := d.recent.place(v); place > 0 {
		return byte(firstPlace + place - 1)
	}
	if v.Tag != TagFloat {
		return byte(v.Tag)
	}
	if place := d.recent.placeOfAddend(v, before); place > 0 {
		return byte(firstSum + place - 1)
	}
	if _, _, ok := shortDecimal(math.Float64frombits(v.Float)); ok {
		return byte(tagDecimal)
	}
	return byte(TagFloat)
}

// recalled returns the recent value at a place.
func (d *deltaCoder) recalled(place int) Value {
	if place > d.recent.count {
		d.fail("a value is number %d of %d recent values", place, d.recent.count)
		return Value{Tag: TagNone}
	}
	return d.recent.recall(place)
}

// decimal codes a float that shortDecimal accepts.
func (d *deltaCoder) decimal(bits uint64) Value {
	places, whole, _ := shortDecimal(math.Float64frombits(bits))
	places, whole = byte(d.n(numberColumn, uint64(places))), d.z(numberColumn, whole)
	v, err := decimalValue(places, whole)
	if err != nil {
		d.fail("%v", err)
	}
	return v
}

// contents codes the contents of o as differences from another object's, which may be the zero Object.
func (d *deltaCoder) contents(o *Object, before Object) {
	o.Version = d.relative(shapeColumn, o.Version, before.Version)
	exactness, length := d.n(shapeColumn, uint64(o.Exactness)), before.Length+d.z(shapeColumn, o.Length-before.Length)
	form, count := d.n(shapeColumn, uint64(o.Form)), d.n(shapeColumn, uint64(len(o.Values)))
	if d.readers == nil {
		d.writeValues(o.Values, before.Values)
	} else if err := o.setHead(exactness, length, form, count); err != nil {
		d.fail("%v", err)
	} else {
		d.readValues(o, before.Values, int(count))
	}
	d.remember(*o)
}

// writeValues encodes the values of an object. Most of them equal those before.
func (d *deltaCoder) writeValues(values, before []Value) {
	for i := range values {
		v := values[i] // valueAfter writes to it
		if i < len(before) {
			d.valueAfter(&v, &before[i])
		} else {
			d.valueAfter(&v, &Value{})
		}
	}
}

// readValues decodes the values of an object.
func (d *deltaCoder) readValues(o *Object, before []Value, count int) {
	if count > 0 {
		o.Values = make([]Value, count)
	}
	size := 0
	for i := 0; i < count && d.readers[shapeColumn].err == nil; i++ {
		v, previous := &o.Values[i], &Value{}
		if i < len(before) {
			previous = &before[i]
		}
		d.valueAfter(v, previous)
		d.relinks = d.relinks || v.Tag == TagObject && *v != *previous
		if size += len(v.Text); size > maxRecordBytes { // a byte can stand for a long text
			d.fail("an object has texts of more than %d bytes", maxRecordBytes)
		}
	}
}

func (d *deltaCoder) remember(o Object) {
	if o.Type == 0 {
		o.Type = d.objects[o.Number].Type // a mutate record has no type
	}
	if d.bytes += o.bytes(); d.bytes > maxDeltaBytes {
		clear(d.objects)
		clear(d.byType)
		d.bytes = o.bytes()
	}
	d.objects[o.Number] = o
	if o.Type != 0 {
		d.byType[o.Type] = o
	}
}

// err returns the error of the records that are decoded.
func (d *deltaCoder) err() error {
	for i := range d.readers {
		if err := d.readers[i].err; err != nil {
			return errors.Join(errDeltas, err)
		}
	}
	return nil
}
