package debugger

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

func appendValue(b []byte, v Value) []byte {
	b = append(b, byte(v.Tag))
	switch v.Tag {
	case TagInt:
		return binary.AppendVarint(b, v.Int)
	case TagFloat:
		if places, whole, short := decimal(math.Float64frombits(v.Float)); short {
			b[len(b)-1] = byte(tagDecimal)
			return binary.AppendVarint(append(b, places), whole)
		}
		return binary.LittleEndian.AppendUint64(b, v.Float)
	case TagComplex:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, v.Float), v.Imag)
	case TagText, TagBigInt, TagSurrogates, TagBytes:
		return appendText(b, v.Text)
	case TagTextCut, TagBytesCut:
		return appendText(binary.AppendUvarint(b, v.Length), v.Text)
	case TagObject:
		return binary.AppendUvarint(b, v.Object)
	}
	return b
}

// decimal is a float as a whole number and so many decimal places, where that is short
// and exact: as the recorders write it.
func decimal(f float64) (places byte, whole int64, short bool) {
	const most = 1e9
	for i, power := range powers {
		if m := f * power; f != 0 && m > -most && m < most {
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

// appendRecord writes what decode reads; a key frame is made of it.
func appendRecord(b []byte, rec *Record) []byte {
	if rec.Kind == KindLine && rec.Delta >= shortLine-shortZero && rec.Delta <= 0xff-shortZero {
		return append(b, byte(rec.Delta+shortZero))
	}
	b = append(b, byte(rec.Kind))
	switch rec.Kind {
	case KindHead:
		return appendText(appendText(appendNumbers(b, rec.Number), rec.Text), rec.Extra)
	case KindName:
		return appendText(b, rec.Text)
	case KindCode:
		return appendNumbers(b, rec.File, rec.Name, rec.Number)
	case KindThread:
		return appendText(appendNumbers(b, rec.Number, rec.Parent), rec.Text)
	case KindPush:
		b = appendNumbers(b, rec.Frame, rec.Code, rec.Lane, rec.Parent, rec.Number)
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
