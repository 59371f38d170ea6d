package recording

import "errors"

// deltaCoder encodes the records of one chunk as differences before they are compressed, and decodes them. Frame and
// object numbers become signed differences from the latest number. A value is compared with the previous value of the
// same variable, or at the same index of the same object, or else of the latest object of the same type: an equal value
// becomes one zero byte, and an integer becomes a difference. A text or float that is one of the recent values becomes
// one byte, its place. After maxDeltaBytes of objects it forgets them and begins anew. Other fields are encoded as in
// the stream. Encoding and decoding a chunk each begin with a new deltaCoder. Chunks of builds that had no recent
// values decode as before, because they have no such bytes.
type deltaCoder struct {
	frame, object uint64           // the latest numbers
	variables     map[uint64]Value // by variableKey
	objects       map[uint64]Object
	byType        map[uint64]Object // the latest object of each type
	bytes         int               // of what objects and byType have held, estimated
	recent        recentValues
}

// recentValues holds the latest texts and floats that differ, the latest first. A program hands a value from variable
// to variable, so the places repeat where values do not: an ordinary analysis takes 2.5 instead of 3.5 bytes a step.
type recentValues struct {
	values [maxRecentValues]Value
	order  [maxRecentValues]uint8 // indexes of values, the latest first
	count  int
}

// maxRecentValues is the size of recentValues. Places 1 to this number stand for a tag, and no tag is as low.
const maxRecentValues = 16

// maxDeltaBytes bounds the memory of a deltaCoder for objects. A recorder restates less behind a gap.
const maxDeltaBytes = 2 * maxStateBytes

// isRecalled reports whether a value of this tag is kept. The others take two bytes or fewer, or are differences.
func isRecalled(t Tag) bool {
	switch t {
	case TagNone, TagTrue, TagFalse, TagEllipsis, TagInt, TagObject:
		return false
	}
	return true
}

// place returns the place of v in the list, from 1, or 0.
func (r *recentValues) place(v Value) int {
	for i, slot := range r.order[:r.count] {
		if r.values[slot] == v {
			return i + 1
		}
	}
	return 0
}

// recall returns the value at a place, from 1, and makes it the latest.
func (r *recentValues) recall(place int) Value {
	slot := r.order[place-1]
	copy(r.order[1:place], r.order[:place-1])
	r.order[0] = slot
	return r.values[slot]
}

// add adds a value as the latest. It replaces the oldest value of a full list.
func (r *recentValues) add(v Value) {
	if r.count < maxRecentValues {
		r.order[r.count] = uint8(r.count)
		r.count++
	}
	r.values[r.order[r.count-1]] = v
	r.recall(r.count)
}

// equalValue replaces the tag of a value that equals the previous one. No tag is 0.
const equalValue = 0

var errDeltas = errors.New("delta-encoded records are damaged")

func newDeltaCoder() *deltaCoder {
	return &deltaCoder{variables: map[uint64]Value{}, objects: map[uint64]Object{}, byType: map[uint64]Object{}}
}

// variableKey is the key of a variable's name. Locals and globals of one name have different keys; frames do not
// matter.
func variableKey(rec *Record) uint64 { return rec.Name<<1 | bit(rec.Kind == KindGlobal) }

// encode appends a record to out.
func (d *deltaCoder) encode(out []byte, rec *Record) []byte {
	switch rec.Kind {
	case KindLine:
		return AppendRecord(out, rec)
	case KindObject:
		d.object = rec.Object.Number
		out = appendNumbers(append(out, byte(rec.Kind)), rec.Object.Number, rec.Object.Type)
		return d.encodeContents(out, rec.Object, d.byType[rec.Object.Type])
	case KindMutate:
		out = appendNumbers(append(out, byte(rec.Kind)), d.objectDelta(rec.Object.Number))
		return d.encodeContents(out, rec.Object, d.objects[rec.Object.Number])
	case KindSet, KindGlobal:
		key := variableKey(rec)
		before := d.variables[key]
		if rec.Value != before {
			d.variables[key] = rec.Value
		}
		return d.encodeValue(appendNumbers(append(out, byte(rec.Kind)), rec.Name), rec.Value, before)
	}
	relative := *rec
	d.convertNumbers(&relative, func(n, latest uint64) uint64 { return zigzag(int64(latest - n)) })
	if rec.Kind == KindPush {
		d.frame = rec.Frame
	}
	return AppendRecord(out, &relative)
}

// decodeDeltas returns the stream encoding of delta-encoded records. It returns errLargeChunk for records of more than
// limit bytes.
func decodeDeltas(b []byte, limit int) ([]byte, error) {
	size := 2 * len(b)
	if limit > smallChunkBytes { // count first, because out would be copied each time it grows
		var encoded []byte
		size = 0
		err := eachDelta(b, func(rec *Record) error {
			encoded = AppendRecord(encoded[:0], rec)
			if size += len(encoded); size > limit {
				return errLargeChunk
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, size)
	err := eachDelta(b, func(rec *Record) error {
		if out = AppendRecord(out, rec); len(out) > limit {
			return errLargeChunk
		}
		return nil
	})
	return out, err
}

// eachDelta decodes delta-encoded records and calls visit for each, until visit returns an error.
func eachDelta(b []byte, visit func(*Record) error) error {
	d := newDeltaCoder()
	r := &fieldReader{b: b}
	var rec Record
	for r.off < len(b) {
		rec = Record{Kind: Kind(b[r.off])}
		switch rec.Kind {
		case KindObject:
			r.off++
			rec.Object.Number, rec.Object.Type = r.n(), r.n()
			d.object = rec.Object.Number
			d.decodeContents(r, &rec.Object, d.byType[rec.Object.Type])
		case KindMutate:
			r.off++
			rec.Object.Number = d.objectNumber(r.n())
			before := d.objects[rec.Object.Number]
			rec.Object.Type = before.Type // 0 if there is none
			d.decodeContents(r, &rec.Object, before)
		case KindSet, KindGlobal:
			r.off++
			rec.Name = r.n()
			key := variableKey(&rec)
			rec.Value = d.decodeValue(r, d.variables[key])
			d.variables[key] = rec.Value
		default:
			size, err := decodeRecord(b[r.off:], &rec, nil)
			if err != nil {
				return errors.Join(errDeltas, err)
			}
			r.off += size
			d.convertNumbers(&rec, func(n, latest uint64) uint64 { return latest - uint64(unzigzag(n)) })
			if rec.Kind == KindPush {
				d.frame = rec.Frame
			}
		}
		if r.err != nil {
			return errors.Join(errDeltas, r.err)
		}
		if err := visit(&rec); err != nil {
			return err
		}
	}
	return nil
}

func (d *deltaCoder) objectDelta(n uint64) uint64      { return zigzag(int64(d.object - n)) }
func (d *deltaCoder) objectNumber(delta uint64) uint64 { return d.object - uint64(unzigzag(delta)) }

// convertNumbers converts the frame and object numbers of the remaining record kinds, in either direction.
func (d *deltaCoder) convertNumbers(rec *Record, convert func(n, latest uint64) uint64) {
	switch rec.Kind {
	case KindPush, KindResume:
		rec.Frame, rec.Parent = convert(rec.Frame, d.frame), convert(rec.Parent, d.frame)
	case KindFrame:
		rec.Frame = convert(rec.Frame, d.frame)
	case KindFree:
		rec.Number = convert(rec.Number, d.object)
	}
	if rec.Value.Tag == TagObject {
		rec.Value.Object = convert(rec.Value.Object, d.object)
	}
}

func (d *deltaCoder) encodeValue(b []byte, v, before Value) []byte {
	switch {
	case v == before:
		return append(b, equalValue)
	case v.Tag == TagObject:
		v.Object = d.objectDelta(v.Object)
	case v.Tag == TagInt:
		v.Int -= before.integer()
	case isRecalled(v.Tag):
		if place := d.recent.place(v); place > 0 {
			d.recent.recall(place)
			return append(b, byte(place))
		}
		d.recent.add(v)
	}
	return appendValue(b, v)
}

func (d *deltaCoder) decodeValue(r *fieldReader, before Value) Value {
	if r.err == nil && r.off < len(r.b) && r.b[r.off] == equalValue {
		r.off++
		if before.Tag == 0 {
			r.fail("a value equals a previous value that does not exist")
		}
		return before
	}
	if r.err == nil && r.off < len(r.b) && r.b[r.off] <= maxRecentValues {
		place := int(r.b[r.off])
		r.off++
		if place > d.recent.count {
			r.fail("a value is number %d of %d recent values", place, d.recent.count)
			return before
		}
		return d.recent.recall(place)
	}
	v := r.value()
	switch {
	case v.Tag == TagObject:
		v.Object = d.objectNumber(v.Object)
	case v.Tag == TagInt:
		v.Int += before.integer()
	case r.err == nil && isRecalled(v.Tag):
		d.recent.add(v)
	}
	return v
}

// encodeContents encodes the contents of o as differences from another object's, which may be the zero Object.
func (d *deltaCoder) encodeContents(b []byte, o, before Object) []byte {
	b = appendNumbers(b, zigzag(int64(o.Version-before.Version)), uint64(o.Exactness), zigzag(o.Length-before.Length),
		uint64(o.Form), uint64(len(o.Values)))
	for i, v := range o.Values {
		b = d.encodeValue(b, v, before.valueAt(i))
	}
	d.remember(o)
	return b
}

func (d *deltaCoder) decodeContents(r *fieldReader, o *Object, before Object) {
	o.Version = before.Version + uint64(unzigzag(r.n()))
	o.Exactness, o.Length, o.Form = Exactness(r.n()), before.Length+unzigzag(r.n()), Form(r.n())
	count := r.n()
	if count > maxObjectValues {
		r.fail("an object has %d values; the limit is %d", count, maxObjectValues)
	}
	size := 0
	for i := 0; i < int(count) && r.err == nil; i++ {
		v := d.decodeValue(r, before.valueAt(i))
		if size += len(v.Text); size > maxRecordBytes { // a byte can stand for a long text
			r.fail("an object has texts of more than %d bytes", maxRecordBytes)
		}
		o.Values = append(o.Values, v)
	}
	d.remember(*o)
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
