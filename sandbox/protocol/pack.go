package protocol

import (
	"encoding/binary"
	"math"
	"time"

	"glasshouse/sandbox"
)

const notATime = math.MinInt64 // numpy's NaT

// times writes one array of a column of times, as numpy has it: microseconds, since 1970
// for instants, and seconds for dates. A NULL is NaT. Not ok, and nothing written, where
// the column is of another kind, or has a value that does not fit, such as infinity.
func (o *output) times(c sandbox.Column, v *sandbox.ColumnValues) (ok bool) {
	if c.Array {
		return false
	}
	var one func(i int) (int64, bool)
	switch c.Kind {
	case "date":
		one = func(i int) (int64, bool) { return seconds(v.TextAt(i)) }
	case "timestamp", "timestamptz":
		one = func(i int) (int64, bool) { return microseconds(v.TextAt(i)) }
	case "timedelta":
		one = func(i int) (int64, bool) { return span(v.Others[i]) }
	default:
		return false
	}
	before, count := len(o.b), len(v.Ends)+len(v.Others)
	o.tuple(3, "q", 8*count)
	for i := range count {
		t := int64(notATime)
		if v.Nulls == nil || !v.Nulls[i] {
			if t, ok = one(i); !ok {
				o.b = o.b[:before]
				return false
			}
		}
		o.b = binary.LittleEndian.AppendUint64(o.b, uint64(t))
	}
	return true
}

// microseconds reads 2006-01-02T15:04:05[.999999][+00:00], and no other form.
func microseconds(s []byte) (int64, bool) {
	if len(s) > 6 && string(s[len(s)-6:]) == "+00:00" {
		s = s[:len(s)-6]
	}
	const date, clock = len("2006-01-02"), len("2006-01-02T15:04:05")
	if len(s) < clock || len(s) == clock+1 || len(s) > clock+7 || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	t, ok1 := seconds(s[:date])
	hour, ok2 := number(s[11:13])
	minute, ok3 := number(s[14:16])
	second, ok4 := number(s[17:19])
	fraction, ok5 := int64(0), true
	if len(s) > clock {
		fraction, ok5 = number(s[clock+1:])
		ok5 = ok5 && s[clock] == '.'
		for range 6 - len(s[clock+1:]) {
			fraction *= 10
		}
	}
	return (t+3600*hour+60*minute+second)*1_000_000 + fraction, ok1 && ok2 && ok3 && ok4 && ok5
}

// seconds reads 2006-01-02, and no other form.
func seconds(s []byte) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	year, ok1 := number(s[:4])
	month, ok2 := number(s[5:7])
	day, ok3 := number(s[8:])
	return time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC).Unix(), ok1 && ok2 && ok3
}

// number reads digits alone.
func number(s []byte) (n int64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// span is an interval in microseconds, as Python's side counts it: a year is 365
// days, and a month 30.
func span(v any) (int64, bool) {
	parts, _ := v.([]any)
	if len(parts) != 3 {
		return 0, false
	}
	months, ok1 := parts[0].(int64)
	days, ok2 := parts[1].(int64)
	micros, ok3 := parts[2].(int64)
	if !ok1 || !ok2 || !ok3 || max(months, -months) > 1<<40 || max(days, -days) > 1<<40 {
		return 0, false
	}
	days += months/12*365 + months%12*30
	const day, most = 24 * 3600 * 1_000_000, 100_000_000 // as many days fit, with any time
	if max(days, -days) > most || max(micros, -micros) > math.MaxInt64-most*day || micros == notATime {
		return 0, false
	}
	return days*day + micros, true
}
