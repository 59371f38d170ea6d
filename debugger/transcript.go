package debugger

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var kindNames = strings.Fields("head name code lane push resume suspend return unwind frame line set global delete forget " +
	"object mutate free raise handled output event lost unread")

func (k Kind) String() string {
	if k > 0 && int(k) <= len(kindNames) {
		return kindNames[k-1]
	}
	return fmt.Sprintf("kind %#x", byte(k))
}

// Transcript writes a whole recording as text, one line a record; it is refused where
// a Journal would refuse it. sandbox/python/tests/recording.py writes the same.
func Transcript(b []byte) (string, error) {
	var out strings.Builder
	var table Table
	var rec Record
	s := newState()
	for len(b) > 0 {
		size, err := decode(b, &rec)
		if err == nil {
			var defined bool
			if defined, err = table.define(&rec); err == nil && !defined {
				err = s.apply(&table, &rec)
			}
		}
		if err != nil {
			return out.String(), fmt.Errorf("%w: %w", ErrForged, err)
		}
		b = b[size:]
		out.WriteString(strings.TrimRight(rec.Kind.String()+" "+table.text(&rec, s), " ") + "\n")
	}
	return out.String(), nil
}

func (t *Table) text(rec *Record, s *State) string {
	switch rec.Kind {
	case KindHead:
		return fmt.Sprintf("%d %s %s", rec.Number, rec.Text, rec.Extra)
	case KindName:
		return fmt.Sprintf("%d %s", len(t.names), quote(rec.Text))
	case KindCode:
		return fmt.Sprintf("%d %s %s line %d", len(t.codes), quote(t.Name(rec.File)), quote(t.Name(rec.Name)), rec.Number)
	case KindThread:
		return fmt.Sprintf("%s of %d %s", [...]string{"", "thread", "task"}[rec.Number], rec.Parent, quote(rec.Text))
	case KindPush:
		line := ""
		if rec.Number&FlagRestated != 0 {
			line = fmt.Sprintf(" at %d", rec.From)
		}
		return fmt.Sprintf("%d %s lane %d from %d flags %d%s", rec.Frame, quote(t.Name(t.Code(rec.Code).Name)), rec.Lane, rec.Parent, rec.Number, line)
	case KindResume:
		return fmt.Sprintf("%d from %d", rec.Frame, rec.Parent)
	case KindSuspend, KindReturn:
		return rec.Value.String()
	case KindUnwind, KindRaise:
		return t.Name(rec.Name) + " " + rec.Value.String()
	case KindFrame:
		return strconv.FormatUint(rec.Frame, 10)
	case KindLine:
		return strconv.FormatInt(s.Frames[s.Current].Line, 10)
	case KindSet, KindGlobal:
		return t.Name(rec.Name) + " = " + rec.Value.String()
	case KindDelete, KindForget, KindUnread:
		return t.Name(rec.Name)
	case KindObject:
		return fmt.Sprintf("%d %s %s", rec.Object.Number, t.Name(rec.Object.Type), rec.Object.contents())
	case KindMutate:
		return fmt.Sprintf("%d %s", rec.Object.Number, rec.Object.contents())
	case KindFree:
		return strconv.FormatUint(rec.Number, 10)
	case KindOutput:
		return fmt.Sprintf("%d %d %d", rec.Number, rec.From, rec.To)
	case KindEvent:
		return fmt.Sprintf("%s %d", t.Name(rec.Name), rec.Number)
	case KindLost:
		return fmt.Sprintf("%d %s", rec.Number, quote(rec.Text))
	}
	return ""
}

func (o *Object) contents() string {
	var parts []string
	for i := 0; i < len(o.Values); i++ {
		part := o.Values[i].String()
		if o.Form > Items && i+1 < len(o.Values) {
			i++
			part += ": " + o.Values[i].String()
		}
		parts = append(parts, part)
	}
	form := [...]string{"opaque", "items", "pairs", "attributes", "table"}[o.Form]
	return fmt.Sprintf("v%d %s length %d %s [%s]", o.Version, o.Exactness, o.Length, form, strings.Join(parts, ", "))
}

// String returns the value nearly as Python would write it, texts as their bytes.
func (v Value) String() string {
	switch v.Tag {
	case TagNone:
		return "None"
	case TagTrue:
		return "True"
	case TagFalse:
		return "False"
	case TagEllipsis:
		return "..."
	case TagInt, TagBigInt:
		return v.BigInt().String()
	case TagFloat:
		return double(v.Float)
	case TagComplex:
		return "complex(" + double(v.Float) + ", " + double(v.Imag) + ")"
	case TagText:
		return quote(v.Text)
	case TagTextCut:
		return fmt.Sprintf("%d chars %s", v.Length, quote(v.Text))
	case TagSurrogates, TagBytes:
		return string(v.Tag) + quote(v.Text)
	case TagBytesCut:
		return fmt.Sprintf("%d bytes %s", v.Length, quote(v.Text))
	case TagObject:
		return "@" + strconv.FormatUint(v.Object, 10)
	}
	return "?"
}

// double writes a float as Python's repr does.
func double(bits uint64) string {
	f := math.Float64frombits(bits)
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if f != 0 && (math.Abs(f) >= 1e16 || math.Abs(f) < 1e-4) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func quote(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c >= 32 && c < 127 && c != '"' && c != '\\' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "\\x%02x", c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
