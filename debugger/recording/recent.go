package recording

import (
	"math"
	"slices"
)

// recentValues holds the latest texts and floats that differ, the latest first. A program hands a value from variable
// to variable, so the places repeat where values do not.
type recentValues struct {
	values [maxRecentValues]Value
	order  [maxRecentValues]uint8  // indexes of values, the latest first
	hashes [maxRecentValues]uint64 // of values in the same order: a search compares few values
	count  int
}

// maxRecentValues is the size of recentValues. Places 1 to this number stand for a tag, and no tag is as low.
const maxRecentValues = 16

// isRecalled reports whether a value of this tag is kept. The others take two bytes or fewer, or are differences.
func isRecalled(t Tag) bool {
	switch t {
	case TagNone, TagTrue, TagFalse, TagEllipsis, TagInt, TagObject:
		return false
	}
	return true
}

// hashOf returns a hash of a value that isRecalled.
func hashOf(v *Value) uint64 {
	hash := v.Float ^ uint64(v.Tag)<<56
	if n := len(v.Text); n > 0 {
		hash ^= uint64(n)<<32 ^ uint64(v.Text[0])<<16 ^ uint64(v.Text[n/2])<<8 ^ uint64(v.Text[n-1])
	}
	return hash
}

// place returns the place of v in the list, from 1, or 0.
func (r *recentValues) place(v *Value) int {
	hash := hashOf(v)
	for i, each := range r.hashes[:r.count] {
		if each == hash && r.values[r.order[i]] == *v {
			return i + 1
		}
	}
	return 0
}

// recall returns the value at a place, from 1, and makes it the latest.
func (r *recentValues) recall(place int) Value {
	slot, hash := r.order[place-1], r.hashes[place-1]
	copy(r.order[1:place], r.order[:place-1])
	copy(r.hashes[1:place], r.hashes[:place-1])
	r.order[0], r.hashes[0] = slot, hash
	return r.values[slot]
}

// placeOfAddend returns the place of a float whose sum with before is v, from 1, or 0. It is 0 for NaN, whose
// bits differ from one processor to another.
func (r *recentValues) placeOfAddend(v, before *Value) int {
	if before.Tag != TagFloat || math.IsNaN(math.Float64frombits(v.Float)) {
		return 0
	}
	for i, slot := range r.order[:r.count] {
		if each := &r.values[slot]; each.Tag == TagFloat && sum(before.Float, each.Float) == v.Float {
			return i + 1
		}
	}
	return 0
}

// sum returns the bits of the sum of two floats.
func sum(a, b uint64) uint64 {
	return math.Float64bits(math.Float64frombits(a) + math.Float64frombits(b))
}

// add adds a value as the latest. It replaces the oldest value of a full list.
func (r *recentValues) add(v *Value) {
	if r.count < maxRecentValues {
		r.order[r.count] = uint8(r.count)
		r.count++
	}
	r.values[r.order[r.count-1]] = *v
	r.hashes[r.count-1] = hashOf(v)
	r.recall(r.count)
}

// recentIntegers holds the latest integers that differ from the previous value, the latest first.
type recentIntegers struct {
	list  [maxRecentIntegers]int64
	count int
}

const maxRecentIntegers = 6

// place returns the place of n, from 1, or 0.
func (r *recentIntegers) place(n int64) int { return slices.Index(r.list[:r.count], n) + 1 }

// use makes n the latest.
func (r *recentIntegers) use(n int64) {
	place := r.place(n)
	if place == 0 {
		r.count = min(r.count+1, maxRecentIntegers)
		place = r.count
	}
	copy(r.list[1:place], r.list[:place-1])
	r.list[0] = n
}

// isShortDelta reports whether the difference of two integers takes one byte.
func isShortDelta(n, before int64) bool { return n-before >= -64 && n-before < 64 }
