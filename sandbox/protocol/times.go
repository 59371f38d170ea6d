package protocol

import (
	"encoding/binary"
	"math"
	"time"

	"glasshouse/sandbox"
)

const notATime = math.MinInt64 // numpy's NaT

// times encodes a column of times as numpy stores them: timestamps in microseconds and dates
// in seconds since 1970, intervals in microseconds; NULL is NaT. If the column is of another
// kind, or a value does not fit, such as infinity, ok is false and times adds nothing.
func (f *frames) times(c sandbox.Column, v *sandbox.ColumnValues) (ok bool) {
	if c.Array {
		return false
	}
	var value func(i int) (int64, bool)
	switch c.Kind {
	case "date":
		value = func(i int) (int64, bool) { return parseDate(v.TextAt(i)) }
	case "timestamp", "timestamptz":
		value = func(i int) (int64, bool) { return parseTimestamp(v.TextAt(i)) }
	case "timedelta":
		value = func(i int) (int64, bool) { return intervalMicroseconds(v.Others[i]) }
	default:
		return false
	}
	size, count := len(f.tail), len(v.Ends)+len(v.Others)
	f.tuple(3, "q", 8*count)
	b := f.space(8 * count)
	for i := range count {
		t := int64(notATime)
		if v.Nulls == nil || !v.Nulls[i] {
			if t, ok = value(i); !ok {
				f.tail = f.tail[:size]
				return false
			}
		}
		binary.LittleEndian.PutUint64(b[8*i:], uint64(t))
	}
	return true
}

// parseTimestamp parses 2006-01-02T15:04:05[.999999][+00:00], and no other form, into
// microseconds since 1970.
func parseTimestamp(s []byte) (int64, bool) {
	if len(s) > 6 && string(s[len(s)-6:]) == "+00:00" {
		s = s[:len(s)-6]
	}
	const dateSize, clockSize = len("2006-01-02"), len("2006-01-02T15:04:05")
	if len(s) < clockSize || len(s) == clockSize+1 || len(s) > clockSize+7 || s[10] != 'T' || s[13] != ':' ||
		s[16] != ':' {
		return 0, false
	}
	t, ok1 := parseDate(s[:dateSize])
	hour, ok2 := parseDigits(s[11:13])
	minute, ok3 := parseDigits(s[14:16])
	second, ok4 := parseDigits(s[17:19])
	fraction, ok5 := int64(0), true
	if len(s) > clockSize {
		fraction, ok5 = parseDigits(s[clockSize+1:])
		ok5 = ok5 && s[clockSize] == '.'
		for range 6 - len(s[clockSize+1:]) {
			fraction *= 10
		}
	}
	return (t+3600*hour+60*minute+second)*1_000_000 + fraction, ok1 && ok2 && ok3 && ok4 && ok5
}

// parseDate parses 2006-01-02, and no other form, into seconds since 1970.
func parseDate(s []byte) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	year, ok1 := parseDigits(s[:4])
	month, ok2 := parseDigits(s[5:7])
	day, ok3 := parseDigits(s[8:])
	return time.Date(int(year), time.Month(month), int(day), 0, 0, 0, 0, time.UTC).Unix(), ok1 && ok2 && ok3
}

// parseDigits parses a number that has digits only.
func parseDigits(s []byte) (n int64, ok bool) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// intervalMicroseconds converts an interval of months, days and microseconds as the guest
// does: a year has 365 days, and a month 30.
func intervalMicroseconds(v any) (int64, bool) {
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
	const day, maxDays = 24 * 3600 * 1_000_000, 100_000_000 // an int64 holds this many days of microseconds, and more
	if max(days, -days) > maxDays || max(micros, -micros) > math.MaxInt64-maxDays*day || micros == notATime {
		return 0, false
	}
	return days*day + micros, true
}
