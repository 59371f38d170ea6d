package debugger

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Condition is an expression over recorded variables, in a part of Python's grammar:
// names, attributes, subscripts, literals, lists and tuples of them, arithmetic,
// comparisons with in and is, and, or, not, len() and abs(). No code runs: what the
// recording has not is an error.
type Condition struct {
	Text string
	node node
}

// node is one operation and its parts.
type node struct {
	op    string // "name", "value", "list", "attribute", "subscript", "call", or an operator
	text  string
	value any
	parts []node
	chain []string // of a comparison: what is between its parts
}

const maxCondition = 2000

// ParseCondition reads an expression.
func ParseCondition(text string) (c *Condition, err error) {
	if len(text) > maxCondition {
		return nil, fmt.Errorf("a condition has at most %d bytes", maxCondition)
	}
	p := &parser{text: text}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			c, err = nil, fmt.Errorf("%s, at %q", failure.why, strings.TrimSpace(text[min(p.at, len(text)):]))
		}
	}()
	p.next()
	n := p.or()
	if p.token != "" {
		p.fail("this is not understood here")
	}
	return &Condition{Text: text, node: n}, nil
}

type parseError struct{ why string }

// parser takes tokens from the front; it panics with a parseError.
type parser struct {
	text  string
	at    int // of the token
	end   int // of the token
	token string
	kind  byte // 'n' name, '0' number, 's' string, 'o' operator
	value any
	depth int
}

func (p *parser) fail(why string) { panic(parseError{why}) }

func (p *parser) deeper() func() {
	if p.depth++; p.depth > 50 {
		p.fail("this is nested too deep")
	}
	return func() { p.depth-- }
}

var operators = []string{"**", "//", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "."}

func (p *parser) next() {
	for p.end < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.end]) >= 0 {
		p.end++
	}
	p.at, p.token, p.kind = p.end, "", 0
	rest := p.text[p.at:]
	if rest == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(rest)
	switch {
	case first == '\'' || first == '"':
		p.kind = 's'
		p.literal(rest)
	case unicode.IsDigit(first) || first == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		p.kind = '0'
		p.number(rest)
	case first == '_' || unicode.IsLetter(first):
		p.kind = 'n'
		size := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if size < 0 {
			size = len(rest)
		}
		p.token, p.end = rest[:size], p.at+size
	default:
		p.kind = 'o'
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				p.token, p.end = op, p.at+len(op)
				return
			}
		}
		p.fail("this character is not understood")
	}
}

func (p *parser) literal(rest string) {
	var out strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			p.token, p.value, p.end = rest[:i+1], out.String(), p.at+i+1
			return
		case c == '\\' && i+1 < len(rest):
			i++
			plain, ok := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"', '0': 0}[rest[i]]
			if !ok {
				p.fail("this escape is not understood")
			}
			out.WriteByte(plain)
		default:
			out.WriteByte(c)
		}
	}
	p.fail("this text has no end")
}

func (p *parser) number(rest string) {
	size := 0
	for size < len(rest) && (strings.IndexByte("0123456789._", rest[size]) >= 0 || (rest[size] == 'e' || rest[size] == 'E') ||
		(rest[size] == '-' || rest[size] == '+') && (rest[size-1] == 'e' || rest[size-1] == 'E')) {
		size++
	}
	p.token, p.end = rest[:size], p.at+size
	var ok bool
	if p.value, ok = parseNumber(strings.ReplaceAll(p.token, "_", "")); !ok {
		p.fail("this is not a number")
	}
}

// took passes the token where it is one of these words or operators.
func (p *parser) took(tokens ...string) (string, bool) {
	if p.kind != 'n' && p.kind != 'o' {
		return "", false
	}
	for _, t := range tokens {
		if p.token == t {
			p.next()
			return t, true
		}
	}
	return "", false
}

func (p *parser) or() node {
	defer p.deeper()()
	n := p.and()
	for {
		if _, ok := p.took("or"); !ok {
			return n
		}
		n = node{op: "or", parts: []node{n, p.and()}}
	}
}

func (p *parser) and() node {
	n := p.not()
	for {
		if _, ok := p.took("and"); !ok {
			return n
		}
		n = node{op: "and", parts: []node{n, p.not()}}
	}
}

func (p *parser) not() node {
	if _, ok := p.took("not"); ok {
		defer p.deeper()()
		return node{op: "not", parts: []node{p.not()}}
	}
	return p.comparison()
}

// comparison reads a < b < c as one node: b is worked out once.
func (p *parser) comparison() node {
	n := node{op: "comparison", parts: []node{p.sum()}}
	for {
		op, ok := p.took("==", "!=", "<=", ">=", "<", ">", "in", "is", "not")
		if !ok {
			break
		}
		switch op {
		case "not":
			if _, ok := p.took("in"); !ok {
				p.fail("after not there is in")
			}
			op = "not in"
		case "is":
			if _, ok := p.took("not"); ok {
				op = "is not"
			}
		}
		n.chain, n.parts = append(n.chain, op), append(n.parts, p.sum())
	}
	if len(n.chain) == 0 {
		return n.parts[0]
	}
	return n
}

func (p *parser) sum() node {
	n := p.product()
	for {
		op, ok := p.took("+", "-")
		if !ok {
			return n
		}
		n = node{op: op, parts: []node{n, p.product()}}
	}
}

func (p *parser) product() node {
	n := p.unary()
	for {
		op, ok := p.took("*", "//", "/", "%")
		if !ok {
			return n
		}
		n = node{op: op, parts: []node{n, p.unary()}}
	}
}

func (p *parser) unary() node {
	if _, ok := p.took("-"); ok {
		defer p.deeper()()
		return node{op: "negate", parts: []node{p.unary()}}
	}
	return p.primary()
}

func (p *parser) primary() node {
	n := p.atom()
	for {
		op, ok := p.took(".", "[", "(")
		if !ok {
			return n
		}
		switch op {
		case ".":
			if p.kind != 'n' {
				p.fail("after a dot there is a name")
			}
			n = node{op: "attribute", text: p.token, parts: []node{n}}
			p.next()
		case "[":
			n = node{op: "subscript", parts: []node{n, p.or()}}
			p.close("]")
		default:
			if n.op != "name" || n.text != "len" && n.text != "abs" {
				p.fail("only len() and abs() can be called")
			}
			n = node{op: "call", text: n.text, parts: []node{p.or()}}
			p.close(")")
		}
	}
}

func (p *parser) close(token string) {
	if _, ok := p.took(token); !ok {
		p.fail(token + " is missing")
	}
}

var keywords = map[string]any{"True": true, "False": false, "None": nil}

func (p *parser) atom() node {
	switch p.kind {
	case '0', 's':
		n := node{op: "value", value: p.value}
		p.next()
		return n
	case 'n':
		name := p.token
		p.next()
		if v, ok := keywords[name]; ok {
			return node{op: "value", value: v}
		}
		return node{op: "name", text: name}
	}
	open, ok := p.took("(", "[")
	if !ok {
		p.fail("a value is missing")
	}
	end := map[string]string{"(": ")", "[": "]"}[open]
	n := node{op: "list"}
	for {
		if _, ok := p.took(end); ok {
			return n
		}
		n.parts = append(n.parts, p.or())
		_, comma := p.took(",")
		if !comma {
			p.close(end)
			if open == "(" && len(n.parts) == 1 {
				return n.parts[0]
			}
			return n
		}
	}
}
