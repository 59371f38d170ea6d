package expr

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nesting of an expression.
const maxDepth = 50

type parseError struct{ message string }

type tokenKind byte

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenString
	tokenOperator
)

// parser is a recursive-descent parser. Each of its methods for a grammar rule begins at the current token. It ends
// with the first token after the rule as the current one, or panics with a parseError.
type parser struct {
	text       string
	start, end int // of the current token
	token      string
	kind       tokenKind
	value      any // of a number or string
	depth      int
}

func (p *parser) fail(message string) { panic(parseError{message}) }

// nest enters a nested expression and returns a function that leaves it.
func (p *parser) nest() (leave func()) {
	if p.depth++; p.depth > maxDepth {
		p.fail("the expression is nested too deeply")
	}
	return func() { p.depth-- }
}

// operators lists each operator after all longer operators that begin with it.
var operators = strings.Fields("** // == != <= >= < > + - * / % ( ) [ ] , .")

// next scans the next token.
func (p *parser) next() {
	for p.end < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.end]) >= 0 {
		p.end++
	}
	p.start, p.token, p.kind = p.end, "", tokenEnd
	rest := p.text[p.start:]
	if rest == "" {
		return
	}
	first, _ := utf8.DecodeRuneInString(rest)
	switch {
	case first == '\'' || first == '"':
		p.kind = tokenString
		p.scanString(rest)
	case unicode.IsDigit(first) || first == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		p.kind = tokenNumber
		p.scanNumber(rest)
	case isNameRune(first):
		p.kind = tokenName
		size := strings.IndexFunc(rest, func(r rune) bool { return !isNameRune(r) && !unicode.IsDigit(r) })
		if size < 0 {
			size = len(rest)
		}
		p.token, p.end = rest[:size], p.start+size
	default:
		p.kind = tokenOperator
		for _, op := range operators {
			if strings.HasPrefix(rest, op) {
				p.token, p.end = op, p.start+len(op)
				return
			}
		}
		p.fail("unexpected character")
	}
}

// isNameRune reports whether a name may begin with r.
func isNameRune(r rune) bool { return r == '_' || unicode.IsLetter(r) }

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', '\\': '\\', '\'': '\'', '"': '"', '0': 0}

func (p *parser) scanString(rest string) {
	var out strings.Builder
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == rest[0]:
			p.token, p.value, p.end = rest[:i+1], out.String(), p.start+i+1
			return
		case c == '\\' && i+1 < len(rest):
			i++
			plain, ok := escapes[rest[i]]
			if !ok {
				p.fail("unsupported escape in the string")
			}
			out.WriteByte(plain)
		default:
			out.WriteByte(c)
		}
	}
	p.fail("the string is not closed")
}

var numberToken = regexp.MustCompile(`^(?:[0-9._]|[eE][+-]?)*`)

func (p *parser) scanNumber(rest string) {
	p.token = numberToken.FindString(rest)
	p.end = p.start + len(p.token)
	digits := strings.ReplaceAll(p.token, "_", "")
	if n, ok := new(big.Int).SetString(digits, 10); ok {
		p.value = n
		return
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		p.fail("invalid number")
	}
	p.value = f
}

// accept consumes the current token if it is one of these keywords or operators, and returns it.
func (p *parser) accept(tokens ...string) (string, bool) {
	if p.kind != tokenName && p.kind != tokenOperator {
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

func (p *parser) expect(token string) {
	if _, ok := p.accept(token); !ok {
		p.fail("expected " + token)
	}
}

// binary parses operands that are joined by left-associative operators.
func (p *parser) binary(operand func() node, operators ...string) node {
	n := operand()
	for {
		op, ok := p.accept(operators...)
		if !ok {
			return n
		}
		n = node{op: op, operands: []node{n, operand()}}
	}
}

func (p *parser) or() node {
	defer p.nest()()
	return p.binary(p.and, "or")
}

func (p *parser) and() node { return p.binary(p.not, "and") }

func (p *parser) not() node {
	if _, ok := p.accept("not"); ok {
		defer p.nest()()
		return node{op: "not", operands: []node{p.not()}}
	}
	return p.comparison()
}

// comparison parses a chain such as a < b < c as one node, so that b is evaluated once.
func (p *parser) comparison() node {
	n := node{op: opComparison, operands: []node{p.sum()}}
	for {
		op, ok := p.accept("==", "!=", "<=", ">=", "<", ">", "in", "is", "not")
		if !ok {
			break
		}
		switch op {
		case "not":
			p.expect("in")
			op = "not in"
		case "is":
			if _, ok := p.accept("not"); ok {
				op = "is not"
			}
		}
		n.comparisons, n.operands = append(n.comparisons, op), append(n.operands, p.sum())
	}
	if len(n.comparisons) == 0 {
		return n.operands[0]
	}
	return n
}

func (p *parser) sum() node     { return p.binary(p.product, "+", "-") }
func (p *parser) product() node { return p.binary(p.unary, "*", "//", "/", "%") }

func (p *parser) unary() node {
	if _, ok := p.accept("-"); ok {
		defer p.nest()()
		return node{op: opNegate, operands: []node{p.unary()}}
	}
	return p.primary()
}

func (p *parser) primary() node {
	n := p.atom()
	for {
		op, ok := p.accept(".", "[", "(")
		if !ok {
			return n
		}
		switch op {
		case ".":
			if p.kind != tokenName {
				p.fail("expected a name after the dot")
			}
			n = node{op: opAttribute, text: p.token, operands: []node{n}}
			p.next()
		case "[":
			n = node{op: opSubscript, operands: []node{n, p.or()}}
			p.expect("]")
		default:
			if n.op != opName || n.text != "len" && n.text != "abs" {
				p.fail("only len() and abs() can be called")
			}
			n = node{op: opCall, text: n.text, operands: []node{p.or()}}
			p.expect(")")
		}
	}
}

var constants = map[string]any{"True": true, "False": false, "None": nil}

func (p *parser) atom() node {
	switch p.kind {
	case tokenNumber, tokenString:
		n := node{op: opValue, value: p.value}
		p.next()
		return n
	case tokenName:
		name := p.token
		p.next()
		if v, ok := constants[name]; ok {
			return node{op: opValue, value: v}
		}
		return node{op: opName, text: name}
	}
	open, ok := p.accept("(", "[")
	if !ok {
		p.fail("expected a value")
	}
	end := map[string]string{"(": ")", "[": "]"}[open]
	n := node{op: opList}
	for {
		if _, ok := p.accept(end); ok {
			return n
		}
		n.operands = append(n.operands, p.or())
		if _, ok := p.accept(","); !ok {
			p.expect(end)
			if open == "(" && len(n.operands) == 1 {
				return n.operands[0]
			}
			return n
		}
	}
}
