package recording

import (
	"fmt"
	"strconv"
	"strings"
)

// Transcript returns a whole stream as text, one line a record. It returns ErrIllegalRecord for the same streams as a
// Journal.
// sandbox/python/tests/recording.py writes the same text, so that both implementations of the format can be compared.
func Transcript(stream []byte) (string, error) {
	var out strings.Builder
	var table Table
	var rec Record
	s := newState()
	for b := stream; len(b) > 0; {
		size, err := decodeRecord(b, &rec, nil)
		if err == nil {
			var defined bool
			if defined, err = table.define(&rec); err == nil && !defined {
				err = s.apply(&table, &rec)
			}
		}
		if err != nil {
			return out.String(), fmt.Errorf("%w: %w", ErrIllegalRecord, err)
		}
		b = b[size:]
		out.WriteString(strings.TrimRight(rec.Kind.String()+" "+fieldText(&table, &rec, s), " ") + "\n")
	}
	return out.String(), nil
}

// fieldText returns the fields of a record as text. s is the state after the record.
func fieldText(t *Table, rec *Record, s *State) string {
	switch rec.Kind {
	case KindHead:
		return fmt.Sprintf("%d %s %s", rec.Number, rec.Text, rec.Python)
	case KindName:
		return fmt.Sprintf("%d %s", len(t.names), quoteBytes(rec.Text))
	case KindStatement:
		return fmt.Sprintf("%d %s", len(t.statements), quoteBytes(rec.Text))
	case KindCode:
		return fmt.Sprintf("%d %s %s line %d", len(t.codes), quoteBytes(t.Name(rec.File)),
			quoteBytes(t.Name(rec.Name)), rec.Number)
	case KindThread:
		kind := [...]string{"", "thread", "task"}[rec.Number]
		return fmt.Sprintf("%s of %d %s", kind, rec.Parent, quoteBytes(rec.Text))
	case KindPush:
		line := ""
		if rec.Number&FlagRestated != 0 {
			line = fmt.Sprintf(" at %d", rec.From)
		}
		function := quoteBytes(t.FunctionName(rec.Code))
		return fmt.Sprintf("%d %s lane %d from %d flags %d%s", rec.Frame, function, rec.Thread, rec.Parent,
			rec.Number, line)
	case KindResume:
		return fmt.Sprintf("%d from %d", rec.Frame, rec.Parent)
	case KindSuspend, KindReturn:
		return valueText(rec.Value)
	case KindUnwind, KindRaise:
		return t.Name(rec.Name) + " " + valueText(rec.Value)
	case KindFrame:
		return strconv.FormatUint(rec.Frame, 10)
	case KindLine:
		return strconv.FormatInt(s.CurrentFrame().Line, 10)
	case KindSet, KindGlobal:
		return t.Name(rec.Name) + " = " + valueText(rec.Value)
	case KindDelete, KindForget, KindUnread:
		return t.Name(rec.Name)
	case KindObject:
		return fmt.Sprintf("%d %s %s", rec.Object.Number, t.Name(rec.Object.Type), contentsText(&rec.Object))
	case KindMutate:
		return fmt.Sprintf("%d %s", rec.Object.Number, contentsText(&rec.Object))
	case KindFree:
		return strconv.FormatUint(rec.Number, 10)
	case KindOutput:
		return fmt.Sprintf("%d %d %d", rec.Number, rec.From, rec.To)
	case KindEvent:
		return fmt.Sprintf("%s %d", t.Name(rec.Name), rec.Number)
	case KindLost:
		return fmt.Sprintf("%d %s", rec.Number, quoteBytes(rec.Text))
	}
	return ""
}

// formNames are the names of the forms in transcripts.
var formNames = [...]string{"opaque", "items", "pairs", "attributes", "table", "described", "frame"}

func contentsText(o *Object) string {
	var parts []string
	for i := 0; i < len(o.Values); i++ {
		part := valueText(o.Values[i])
		if o.Form > Items && o.Form < Described && i+1 < len(o.Values) {
			i++
			part += ": " + valueText(o.Values[i])
		}
		parts = append(parts, part)
	}
	return fmt.Sprintf("v%d %s length %d %s [%s]", o.Version, o.Exactness, o.Length, formNames[o.Form],
		strings.Join(parts, ", "))
}

// valueText returns the value nearly as Python writes it. Texts are shown as their bytes.
func valueText(v Value) string {
	switch v.Tag {
	case TagEllipsis:
		return "..."
	case TagBigInt:
		return v.BigInt().String()
	case TagText:
		return quoteBytes(v.Text)
	case TagTextCut:
		return fmt.Sprintf("%d chars %s", v.Int, quoteBytes(v.Text))
	case TagRaw:
		return "raw " + quoteBytes(v.Text)
	case TagSurrogates, TagBytes:
		return string(v.Tag) + quoteBytes(v.Text)
	case TagBytesCut:
		return fmt.Sprintf("%d bytes %s", v.Int, quoteBytes(v.Text))
	case TagObject:
		return "@" + strconv.FormatUint(v.Object, 10)
	}
	return v.scalarText()
}

// quoteBytes quotes a text; bytes other than printable ASCII are escaped.
func quoteBytes(s string) string {
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
