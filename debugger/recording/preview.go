package recording

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	previewDepth      = 4
	maxPreviewIntBits = 2000 // the digits of a longer integer are slow to compute
	exceptionPreview  = 200  // bytes
)

// Preview returns a value nearly as Python's repr writes it, in about limit bytes. It writes "..." for contents that
// are not recorded. It writes an object of a user-defined class with its attributes, because no __repr__ of the user's
// runs.
func (s *State) Preview(t *Table, v Value, limit int) string {
	p := previewer{state: s, table: t, limit: limit}
	p.value(v, 0)
	if p.out.Len() <= limit {
		return p.out.String()
	}
	cut := p.out.String()[:limit]
	for len(cut) > 0 && !utf8.ValidString(cut) {
		cut = cut[:len(cut)-1]
	}
	return cut + "..."
}

// ExceptionText returns an exception in the form of the last line of a traceback.
func (s *State) ExceptionText(t *Table, e Exception) string {
	switch e.Message.Tag {
	case TagNone:
		return t.Name(e.Type)
	case TagText, TagTextCut:
		return t.Name(e.Type) + ": " + e.Message.Text
	}
	return t.Name(e.Type) + ": " + s.Preview(t, e.Message, exceptionPreview)
}

// TypeOf returns the name of a value's type.
func (s *State) TypeOf(t *Table, v Value) string {
	switch v.Tag {
	case TagNone:
		return "NoneType"
	case TagTrue, TagFalse:
		return "bool"
	case TagEllipsis:
		return "ellipsis"
	case TagInt, TagBigInt:
		return "int"
	case TagFloat:
		return "float"
	case TagComplex:
		return "complex"
	case TagText, TagTextCut, TagSurrogates:
		return "str"
	case TagBytes, TagBytesCut:
		return "bytes"
	}
	if o := s.Objects[v.Object]; o != nil {
		return t.Name(o.Type)
	}
	return ""
}

// previewer writes one preview.
type previewer struct {
	out   strings.Builder
	state *State
	table *Table
	limit int
	path  []uint64 // the objects that are being written, outermost first
}

func (p *previewer) full() bool { return p.out.Len() > p.limit }

func (p *previewer) value(v Value, depth int) {
	switch v.Tag {
	case TagText, TagSurrogates:
		p.out.WriteString(PythonText(v.Text))
	case TagRaw:
		p.out.WriteString(v.Text)
	case TagTextCut:
		p.out.WriteString(PythonText(v.Text) + "... " + strconv.FormatUint(v.length(), 10) + " characters")
	case TagBytes:
		p.out.WriteString(pythonBytes(v.Text))
	case TagBytesCut:
		p.out.WriteString(pythonBytes(v.Text) + "... " + strconv.FormatUint(v.length(), 10) + " bytes")
	case TagEllipsis:
		p.out.WriteString("Ellipsis")
	case TagBigInt:
		n := v.BigInt()
		if n.BitLen() > maxPreviewIntBits {
			fmt.Fprintf(&p.out, "<int of %d bits>", n.BitLen())
			return
		}
		p.out.WriteString(n.String())
	case TagObject:
		p.object(v.Object, depth)
	default:
		p.out.WriteString(v.scalarText())
	}
}

// brackets are the brackets of Python's own containers.
var brackets = map[string][2]string{
	"list": {"[", "]"}, "tuple": {"(", ")"}, "set": {"{", "}"}, "frozenset": {"frozenset({", "})"}, "dict": {"{", "}"},
	"bytearray": {"bytearray(", ")"},
}

func (p *previewer) object(number uint64, depth int) {
	o := p.state.Objects[number]
	if o == nil {
		p.out.WriteString("...")
		return
	}
	name := p.table.Name(o.Type)
	for _, n := range p.path {
		if n == number {
			depth = previewDepth // a cycle
		}
	}
	if o.Form >= Described && len(o.Values) > 0 {
		p.value(o.Values[0], previewDepth)
		return
	}
	if o.Form == Opaque || o.Form >= Described || depth >= previewDepth || p.full() {
		if b, ok := brackets[name]; ok && o.Form != Opaque {
			p.out.WriteString(b[0] + "..." + b[1])
			return
		}
		p.out.WriteString("<" + name + ">")
		return
	}
	p.path = append(p.path, number)
	defer func() { p.path = p.path[:len(p.path)-1] }()
	switch o.Form {
	case Attributes:
		p.out.WriteString("<" + name)
		p.pairs(o, depth, " ", "=")
		p.out.WriteString(">")
	default:
		b, builtin := brackets[name]
		switch {
		case !builtin && o.Form == Items:
			b = [2]string{name + "([", "])"}
		case !builtin:
			b = [2]string{name + "({", "})"}
		case o.Length == 0 && (name == "set" || name == "frozenset"):
			p.out.WriteString(name + "()")
			return
		case o.Length == 1 && name == "tuple":
			b[1] = ",)"
		}
		p.out.WriteString(b[0])
		if o.Form == Items {
			p.items(o, depth)
		} else {
			p.pairs(o, depth, "", ": ")
		}
		p.out.WriteString(b[1])
	}
}

func (p *previewer) items(o *Object, depth int) {
	for i, v := range o.Values {
		if i > 0 {
			p.out.WriteString(", ")
		}
		if p.full() {
			break
		}
		p.value(v, depth+1)
	}
	if p.table.Name(o.Type) != "bytearray" && int64(len(o.Values)) < o.Length {
		p.out.WriteString(", ...")
	}
}

// pairs writes keys and values. The keys of attributes are written without quotes.
func (p *previewer) pairs(o *Object, depth int, first, join string) {
	for i := 0; i+1 < len(o.Values) && !p.full(); i += 2 {
		if i == 0 {
			p.out.WriteString(first)
		} else {
			p.out.WriteString(", ")
		}
		if o.Form == Attributes && o.Values[i].Tag == TagText {
			p.out.WriteString(o.Values[i].Text)
		} else {
			p.value(o.Values[i], depth+1)
		}
		p.out.WriteString(join)
		p.value(o.Values[i+1], depth+1)
	}
	if int64(len(o.Values)/2) < o.Length {
		p.out.WriteString(", ...")
	}
}

// PythonText returns a str as Python's repr writes it. Lone surrogates are encoded in s like UTF-8.
func PythonText(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var out strings.Builder
	out.WriteByte(quote)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1 && i+2 < len(s) && s[i] == 0xed: // a lone surrogate
			fmt.Fprintf(&out, `\u%04x`, 0xd000|int(s[i+1]&0x3f)<<6|int(s[i+2]&0x3f))
			size = 3
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case r == rune(quote) || r == '\\':
			out.WriteString(`\` + string(r))
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < 0x100 && !unicode.IsPrint(r):
			fmt.Fprintf(&out, `\x%02x`, r)
		case !unicode.IsPrint(r) && r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
		i += size
	}
	out.WriteByte(quote)
	return out.String()
}

// pythonBytes returns a bytes object as Python's repr writes it.
func pythonBytes(s string) string {
	var out strings.Builder
	out.WriteString("b'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			out.WriteString(`\` + string(c))
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < 32 || c > 126:
			fmt.Fprintf(&out, `\x%02x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('\'')
	return out.String()
}
