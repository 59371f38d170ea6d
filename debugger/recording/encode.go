package recording

import (
	"encoding/binary"
	"math"
)

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func zigzag(n int64) uint64   { return uint64(n<<1) ^ uint64(n>>63) }
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// bit returns 1 for true.
func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func appendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.Tag))
	switch v.Tag {
	case TagInt:
		return binary.AppendVarint(b, v.Int)
	case TagFloat:
		if places, whole, ok := shortDecimal(math.Float64frombits(v.Float)); ok {
			b[len(b)-1] = byte(tagDecimal)
			return binary.AppendVarint(append(b, places), whole)
		}
		return binary.LittleEndian.AppendUint64(b, v.Float)
	case TagComplex:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, v.Float), v.imag())
	case TagText, TagBigInt, TagSurrogates, TagBytes, TagRaw:
		return appendText(b, v.Text)
	case TagTextCut, TagBytesCut:
		return appendText(binary.AppendUvarint(b, v.length()), v.Text)
	case TagObject:
		return binary.AppendUvarint(b, v.Object)
	}
	return b
}

// shortDecimal returns f as an integer and a number of decimal places, as the recorders write it. ok is false if that
// form is not exact, or not shorter than 8 bytes.
func shortDecimal(f float64) (places byte, whole int64, ok bool) {
	for i, power := range powersOfTen {
		if m := f * power; f != 0 && m > -maxDecimal && m < maxDecimal {
			whole = int64(m + math.Copysign(0.5, m))
			if float64(whole)/power == f {
				return byte(i), whole, true
			}
		}
	}
	return 0, 0, false
}

func appendContents(b []byte, o *Object) []byte {
	b = appendNumbers(b, o.Version, uint64(o.Exactness), uint64(o.Length+1), uint64(o.Form), uint64(len(o.Values)))
	for _, v := range o.Values {
		b = appendValue(b, v)
	}
	return b
}

// AppendRecord appends the encoded record to b. Chunks are built with it, and tests build recordings.
func AppendRecord(b []byte, rec *Record) []byte {
	if rec.Kind == KindLine && rec.Delta >= shortLineFirst-shortLineZero && rec.Delta <= 0xff-shortLineZero {
		return append(b, byte(rec.Delta+shortLineZero))
	}
	b = append(b, byte(rec.Kind))
	switch rec.Kind {
	case KindHead:
		return appendText(appendText(appendNumbers(b, rec.Number), rec.Text), rec.Python)
	case KindName, KindStatement:
		return appendText(b, rec.Text)
	case KindCode:
		return appendNumbers(b, rec.File, rec.Name, rec.Number)
	case KindThread:
		return appendText(appendNumbers(b, rec.Number, rec.Parent), rec.Text)
	case KindPush:
		b = appendNumbers(b, rec.Frame, rec.Code, rec.Thread, rec.Parent, rec.Number)
		if rec.Number&FlagRestated != 0 {
			b = appendNumbers(b, rec.From)
		}
		return b
	case KindResume:
		return appendNumbers(b, rec.Frame, rec.Parent)
	case KindSuspend, KindReturn:
		return appendValue(b, rec.Value)
	case KindUnwind, KindRaise, KindSet, KindGlobal:
		return appendValue(appendNumbers(b, rec.Name), rec.Value)
	case KindFrame:
		return appendNumbers(b, rec.Frame)
	case KindLine:
		return binary.AppendVarint(b, rec.Delta)
	case KindDelete, KindForget, KindUnread:
		return appendNumbers(b, rec.Name)
	case KindObject:
		return appendContents(appendNumbers(b, rec.Object.Number, rec.Object.Type), &rec.Object)
	case KindMutate:
		return appendContents(appendNumbers(b, rec.Object.Number), &rec.Object)
	case KindFree:
		return appendNumbers(b, rec.Number)
	case KindOutput:
		return appendNumbers(b, rec.Number, rec.From, rec.To)
	case KindEvent:
		return appendNumbers(b, rec.Name, rec.Number)
	case KindLost:
		return appendText(appendNumbers(b, rec.Number), rec.Text)
	}
	return b
}
