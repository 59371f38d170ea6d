package recording

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// The columns of delta-encoded records. Each column is compressed on its own, because what is in one column resembles
// the rest of that column and nothing else: the shape of a loop's records repeats from turn to turn, while its numbers
// do not.
const (
	shapeColumn  = iota // kinds, names, tags, and the numbers that a loop repeats
	numberColumn        // the other integers
	doubleColumn
	textColumn
	numColumns
)

// columns are delta-encoded records.
type columns [numColumns][]byte

// size returns the bytes of all columns.
func (c *columns) size() (sum int) {
	for _, each := range c {
		sum += len(each)
	}
	return sum
}

// doubleBytes is the size of a double.
const doubleBytes = 8

// toPlanes returns doubles with the first bytes of all of them before the second ones, and so on: the exponents of a
// program's numbers resemble each other, so this order can be compressed.
func toPlanes(doubles []byte) []byte {
	out, count := make([]byte, len(doubles)), len(doubles)/doubleBytes
	for i, b := range doubles {
		out[i%doubleBytes*count+i/doubleBytes] = b
	}
	return out
}

// fromPlanes undoes toPlanes.
func fromPlanes(planes []byte) []byte {
	out, count := make([]byte, len(planes)), len(planes)/doubleBytes
	for i := range out {
		out[i] = planes[i%doubleBytes*count+i/doubleBytes]
	}
	return out
}

// pack appends the compressed columns of a chunk to out, and sets the sizes of the chunk.
func (c *Chunk) pack(encoder *zstd.Encoder, out []byte, in *columns) []byte {
	c.size = in.size()
	for i, column := range in {
		c.sizes[i] = len(column)
		if i == doubleColumn {
			column = toPlanes(column)
		}
		out = encoder.EncodeAll(column, out)
	}
	return out
}

// split returns the columns of a chunk, which unpack to whole.
func (c *Chunk) split(whole []byte) (in columns, err error) {
	for i, size := range c.sizes {
		in[i], whole = whole[:size:size], whole[size:]
	}
	if c.sizes[doubleColumn]%doubleBytes != 0 {
		return in, damaged("a chunk has %d bytes of doubles", c.sizes[doubleColumn])
	}
	in[doubleColumn] = fromPlanes(in[doubleColumn])
	return in, nil
}

// newDeltaReader returns a deltaCoder that decodes.
func newDeltaReader(in columns) *deltaCoder {
	d := newDeltaCoder()
	d.readers = &[numColumns]fieldReader{}
	intern := &internTable{}
	for i := range in {
		d.readers[i] = fieldReader{b: in[i], intern: intern}
	}
	return d
}

// decodeColumns returns a chunk from its columns. It returns errLargeChunk if key frame and records have more than
// limit bytes.
func (c *Chunk) decodeColumns(in columns, limit int) (*unpackedChunk, error) {
	u := &unpackedChunk{Chunk: c, checkpoints: &checkpoints{}}
	size := 2 * in.size()
	if limit > smallChunkBytes { // count first, because records would be copied each time it grows
		var encoded []byte
		size = 0
		err := eachDelta(in, func(s *State) error {
			size = len(s.appendKeyFrame(nil))
			return nil
		}, func(rec *Record, _ bool) error {
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
	var marks *marker
	err := eachDelta(in, func(s *State) error {
		u.key, u.records, marks = s.appendKeyFrame(nil), make([]byte, 0, size), newMarker(s)
		return nil
	}, func(rec *Record, relinks bool) error {
		if u.records = AppendRecord(u.records, rec); u.bytes() > limit {
			return errLargeChunk
		}
		if u.bytes() <= smallChunkBytes {
			marks.see(rec, relinks)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if u.bytes() <= smallChunkBytes && !marks.hasGap && marks.highest < isObject {
		u.marks, u.isMarked = slices.Clip(marks.list), true
	}
	return u, nil
}

// eachDelta decodes the columns of a chunk. It calls begin with the key frame and visit for each record, until one of
// them returns an error. relinks reports whether the object of a mutate record may hold one that it did not hold
// before.
func eachDelta(in columns, begin func(*State) error, visit func(rec *Record, relinks bool) error) error {
	d := newDeltaReader(in)
	s, err := d.decodeKeyFrame()
	if err == nil {
		err = begin(s)
	}
	if err != nil {
		return err
	}
	return d.each(visit)
}

// each decodes the records that are left, and calls visit for each until visit returns an error.
func (d *deltaCoder) each(visit func(rec *Record, relinks bool) error) error {
	var rec Record
	for shape := &d.readers[shapeColumn]; shape.off < len(shape.b); {
		rec, d.relinks = Record{}, false
		d.record(&rec)
		if err := d.err(); err != nil {
			return err
		}
		if err := visit(&rec, d.relinks); err != nil {
			return err
		}
	}
	for _, r := range d.readers {
		if r.off < len(r.b) {
			return fmt.Errorf("%w: they have more fields than records", errDeltas)
		}
	}
	return nil
}
