package protocol

import (
	"encoding/binary"
	"iter"
	"slices"
)

// PackIntegers rearranges the integers and times in whole frames of an answer, in place, so that a compressor is faster
// and writes less: of each column, it replaces the values by their differences, since neighbours are often near each
// other, and puts the first bytes of all differences before all second bytes, and so on. zstd then takes a third to a
// half of the time for such columns, and writes a fourth of a percent (a number for each row) to 106 percent (ten
// different values) of the bytes. Floats stay as they are: prices would take twice the bytes. UnpackIntegers is the
// inverse, for any bytes.
func PackIntegers(frames []byte) {
	var packed []byte
	for raw := range integerColumns(frames) {
		packed = slices.Grow(packed[:0], len(raw))[:len(raw)]
		packIntegers(packed, raw)
		copy(raw, packed)
	}
}

// UnpackIntegers restores frames that PackIntegers has changed.
func UnpackIntegers(frames []byte) {
	var raw []byte
	for packed := range integerColumns(frames) {
		raw = slices.Grow(raw[:0], len(packed))[:len(packed)]
		unpackIntegers(raw, packed)
		copy(packed, raw)
	}
}

// packIntegers writes the 64-bit integers of raw to packed, which has the same length.
func packIntegers(packed, raw []byte) {
	count, i := len(raw)/8, 0
	var before uint64
	for ; i+8 <= count; i += 8 { // blocks of eight, since a byte at a time takes several times as long
		var block [8]uint64
		for j := range block {
			n := binary.LittleEndian.Uint64(raw[8*(i+j):])
			before, block[j] = n, zigzag(n-before)
		}
		transpose(&block)
		for j, bytes := range block {
			binary.LittleEndian.PutUint64(packed[j*count+i:], bytes)
		}
	}
	for ; i < count; i++ {
		n := binary.LittleEndian.Uint64(raw[8*i:])
		difference := zigzag(n - before)
		before = n
		for j := range 8 {
			packed[j*count+i] = byte(difference >> (8 * j))
		}
	}
	copy(packed[8*count:], raw[8*count:]) // RowWriter writes whole numbers
}

// unpackIntegers is the inverse of packIntegers.
func unpackIntegers(raw, packed []byte) {
	count, i := len(raw)/8, 0
	var n uint64
	for ; i+8 <= count; i += 8 {
		var block [8]uint64
		for j := range block {
			block[j] = binary.LittleEndian.Uint64(packed[j*count+i:])
		}
		transpose(&block)
		for j, difference := range block {
			n += unzigzag(difference)
			binary.LittleEndian.PutUint64(raw[8*(i+j):], n)
		}
	}
	for ; i < count; i++ {
		var difference uint64
		for j := range 8 {
			difference |= uint64(packed[j*count+i]) << (8 * j)
		}
		n += unzigzag(difference)
		binary.LittleEndian.PutUint64(raw[8*i:], n)
	}
	copy(raw[8*count:], packed[8*count:])
}

// zigzag maps 0, -1, 1, -2, ... to 0, 1, 2, 3, ..., so that small numbers of both signs have zeros as high bytes.
func zigzag(n uint64) uint64 { return n<<1 ^ uint64(int64(n)>>63) }

func unzigzag(n uint64) uint64 { return n>>1 ^ -(n & 1) }

// transpose exchanges rows and columns of a matrix of 8 times 8 bytes: of its quarters, of theirs, and of bytes.
func transpose(m *[8]uint64) {
	exchange := func(a, b *uint64, mask uint64, shift int) {
		t := (*a>>shift ^ *b) & mask
		*a ^= t << shift
		*b ^= t
	}
	for i := range 4 {
		exchange(&m[i], &m[i+4], 0x00000000ffffffff, 32)
	}
	for _, i := range [...]int{0, 1, 4, 5} {
		exchange(&m[i], &m[i+2], 0x0000ffff0000ffff, 16)
	}
	for _, i := range [...]int{0, 2, 4, 6} {
		exchange(&m[i], &m[i+1], 0x00ff00ff00ff00ff, 8)
	}
}

// integerColumns yields the bytes of each column of 64-bit integers in whole frames. It leaves the rest of a frame out
// that RowWriter has not written. Changes of the yielded bytes do not change what it yields.
func integerColumns(frames []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := frames; len(rest) >= headerBytes; {
			size, kind := int(binary.BigEndian.Uint32(rest)), Kind(rest[4])
			if size > len(rest)-headerBytes {
				return
			}
			body := rest[headerBytes : headerBytes+size]
			rest = rest[headerBytes+size:]
			if kind != KindRows || len(body) < 4 {
				continue
			}
			if r := (marshalReader{rest: body[4:]}); !r.integerColumns(yield) {
				return
			}
		}
	}
}

// integerColumns reads a batch of rows. It returns false if the caller should stop.
func (r *marshalReader) integerColumns(yield func([]byte) bool) bool {
	isTuple, items, err := r.open()
	if err != nil || !isTuple || items != 2 || r.skip(1) != nil {
		return true
	}
	isTuple, columns, err := r.open()
	if err != nil || isTuple {
		return true
	}
	for range columns {
		form, raw, err := r.packedColumn()
		if err != nil {
			return true
		}
		if form == "q" && !yield(raw) {
			return false
		}
	}
	return true
}

// packedColumn reads a column. It returns no form for a list of values.
func (r *marshalReader) packedColumn() (form string, raw []byte, err error) {
	isTuple, items, err := r.open()
	if err == nil && isTuple && items >= 2 {
		var text, values any
		if text, err = r.value(2); err == nil {
			values, err = r.value(2)
		}
		form, _ = text.(string)
		raw, _ = values.([]byte)
		items -= 2
	}
	for ; err == nil && items > 0; items-- {
		err = r.skip(2)
	}
	return form, raw, err
}

// open reads the beginning of a tuple or a list.
func (r *marshalReader) open() (isTuple bool, items int, err error) {
	code, err := r.take(1)
	if err != nil {
		return false, 0, err
	}
	if code[0] != '(' && code[0] != '[' {
		return false, 0, errMarshal("unexpected type %q, want a tuple or a list", code)
	}
	items, err = r.size()
	return code[0] == '(', items, err
}

// skip reads a value without making it.
func (r *marshalReader) skip(depth int) error {
	code, err := r.take(1)
	if err != nil {
		return err
	}
	if depth > maxMarshalDepth {
		return errMarshal("it is nested too deeply")
	}
	size := 0
	switch code[0] {
	case 'N', 'T', 'F':
	case 'i':
		size = 4
	case 'g':
		size = 8
	case 'l', 'u', 's', '(', '[':
		if size, err = r.size(); err != nil {
			return err
		}
	default:
		return errMarshal("unexpected type %q", code)
	}
	switch code[0] {
	case '(', '[':
		for range size {
			if err := r.skip(depth + 1); err != nil {
				return err
			}
		}
		return nil
	case 'l':
		size = 2 * max(size, -size)
	}
	_, err = r.take(size)
	return err
}
