package debugger

import "errors"

// Records are packed before they are compressed, as what they tell is mostly a little
// more than what was told before: numbers of frames and objects are counted from the
// latest ones, and a value is told against the one before of the same variable, or at the
// same place of the same object, or else of the latest object of its type. One that is
// the same is a zero byte, and an integer is told as a difference. All else is as the
// recorder wrote it. A chunk is packed by itself.

const sameValue = 0 // no tag

// packer goes through records in one of both directions.
type packer struct {
	frame, object uint64 // the latest
	variables     map[uint64]Value
	objects       map[uint64]*Object
	types         map[uint64]*Object
}

// variable is the key of a name in the frames' variables, or in the namespace.
func variable(rec *Record) uint64 { return rec.Name<<1 | bit(rec.Kind == KindGlobal) }

func newPacker() *packer {
	return &packer{variables: map[uint64]Value{}, objects: map[uint64]*Object{}, types: map[uint64]*Object{}}
}

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// record appends a record as it is kept.
func (p *packer) record(out []byte, rec *Record) []byte {
	switch rec.Kind {
	case KindLine:
		return appendRecord(out, rec)
	case KindObject:
		p.object = rec.Object.Number
		return p.contents(appendNumbers(append(out, byte(rec.Kind)), rec.Object.Number, rec.Object.Type), rec.Object, p.types[rec.Object.Type])
	case KindMutate:
		return p.contents(appendNumbers(append(out, byte(rec.Kind)), p.back(rec.Object.Number)), rec.Object, p.objects[rec.Object.Number])
	case KindSet, KindGlobal:
		at := variable(rec)
		before := p.variables[at]
		if rec.Value != before {
			p.variables[at] = rec.Value
		}
		return p.value(appendNumbers(append(out, byte(rec.Kind)), rec.Name), rec.Value, before)
	}
	related := *rec
	p.relate(&related, func(n, to uint64) uint64 { return zigzag(int64(to - n)) })
	if rec.Kind == KindPush {
		p.frame = rec.Frame
	}
	return appendRecord(out, &related)
}

// unpack returns what was packed.
func unpack(b []byte) ([]byte, error) {
	p := newPacker()
	out := make([]byte, 0, 2*len(b))
	r := &reader{b: b}
	for r.off < len(b) {
		rec := Record{Kind: Kind(b[r.off])}
		switch rec.Kind {
		case KindObject:
			r.off++
			rec.Object.Number, rec.Object.Type = r.n(), r.n()
			p.object = rec.Object.Number
			p.readContents(r, &rec.Object, p.types[rec.Object.Type])
		case KindMutate:
			r.off++
			rec.Object.Number = p.forth(r.n())
			before := p.objects[rec.Object.Number]
			if before != nil {
				rec.Object.Type = before.Type
			}
			p.readContents(r, &rec.Object, before)
		case KindSet, KindGlobal:
			r.off++
			rec.Name = r.n()
			at := variable(&rec)
			rec.Value = p.readValue(r, p.variables[at])
			p.variables[at] = rec.Value
		default:
			size, err := decode(b[r.off:], &rec)
			if err != nil {
				return nil, errors.Join(errPacked, err)
			}
			r.off += size
			p.relate(&rec, func(n, to uint64) uint64 { return to - uint64(unzigzag(n)) })
			if rec.Kind == KindPush {
				p.frame = rec.Frame
			}
		}
		if r.err == nil && len(out) > maxBytes {
			r.fail("more than %d bytes", maxBytes)
		}
		if r.err != nil {
			return nil, errors.Join(errPacked, r.err)
		}
		out = appendRecord(out, &rec)
	}
	return out, nil
}

var errPacked = errors.New("packed records are damaged")

// back and forth count an object from the latest one.
func (p *packer) back(n uint64) uint64  { return zigzag(int64(p.object - n)) }
func (p *packer) forth(n uint64) uint64 { return p.object - uint64(unzigzag(n)) }

// relate counts what else a record has of frames and objects from the latest, by one of
// both ways.
func (p *packer) relate(rec *Record, way func(n, to uint64) uint64) {
	switch rec.Kind {
	case KindPush, KindResume:
		rec.Frame, rec.Parent = way(rec.Frame, p.frame), way(rec.Parent, p.frame)
	case KindFrame:
		rec.Frame = way(rec.Frame, p.frame)
	case KindFree:
		rec.Number = way(rec.Number, p.object)
	}
	if rec.Value.Tag == TagObject {
		rec.Value.Object = way(rec.Value.Object, p.object)
	}
}

// value writes one against the one before.
func (p *packer) value(b []byte, v, before Value) []byte {
	switch {
	case v == before:
		return append(b, sameValue)
	case v.Tag == TagObject:
		v.Object = p.back(v.Object)
	case v.Tag == TagInt:
		v.Int -= before.Int // 0 of what is no integer
	}
	return appendValue(b, v)
}

func (p *packer) readValue(r *reader, before Value) Value {
	if r.err == nil && r.off < len(r.b) && r.b[r.off] == sameValue {
		r.off++
		if before.Tag == 0 {
			r.fail("a value is the same as none")
		}
		return before
	}
	v := r.value()
	switch v.Tag {
	case TagObject:
		v.Object = p.forth(v.Object)
	case TagInt:
		v.Int += before.Int
	}
	return v
}

// contents writes those of an object against another's, and keeps them for the next.
func (p *packer) contents(b []byte, o Object, before *Object) []byte {
	if before == nil {
		before = &Object{}
	}
	b = appendNumbers(b, zigzag(int64(o.Version-before.Version)), uint64(o.Exactness), zigzag(o.Length-before.Length), uint64(o.Form), uint64(len(o.Values)))
	for i, v := range o.Values {
		b = p.value(b, v, before.at(i))
	}
	p.keep(o)
	return b
}

func (p *packer) readContents(r *reader, o *Object, before *Object) {
	if before == nil {
		before = &Object{}
	}
	o.Version = before.Version + uint64(unzigzag(r.n()))
	o.Exactness, o.Length, o.Form = Exactness(r.n()), before.Length+unzigzag(r.n()), Form(r.n())
	count := r.n()
	if count > maxValues {
		r.fail("an object has %d values", count)
	}
	for i := 0; i < int(count) && r.err == nil; i++ {
		o.Values = append(o.Values, p.readValue(r, before.at(i)))
	}
	p.keep(*o)
}

func (p *packer) keep(o Object) {
	if before := p.objects[o.Number]; before != nil && o.Type == 0 {
		o.Type = before.Type // a mutate does not say it
	}
	p.objects[o.Number] = &o
	if o.Type != 0 {
		p.types[o.Type] = &o
	}
}

// at is a value by its place; none where there is no such.
func (o *Object) at(i int) Value {
	if i < len(o.Values) {
		return o.Values[i]
	}
	return Value{}
}
