// Package expr evaluates conditions over a recorded state: breakpoint conditions at past steps, searches, and watch
// expressions. No user code runs; a value that the recording does not have is an error.
//
// A condition is an expression in a subset of Python: names, attributes, subscripts, literals, lists and tuples, the
// operators + - * / // %, comparisons (== != < <= > >= in is, and their chains), and, or, not, len() and abs().
//
// The package has its own parser, because the best parser for Go, go.starlark.net/syntax, reads another language:
// Starlark has no chained comparison (a < b < c) and no operator "is". Both are common in Python (x is None).
package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxTextBytes bounds the text of a condition.
const maxTextBytes = 2000

// Condition is a parsed expression.
type Condition struct {
	node node
}

// Name returns the variable that the condition consists of, and "" for any other expression.
func (c *Condition) Name() string {
	if c.node.op != opName {
		return ""
	}
	return c.node.text
}

// Names returns the variables in the expression, each once.
func (c *Condition) Names() []string {
	names := map[string]bool{}
	var visit func(node)
	visit = func(n node) {
		if n.op == opName {
			names[n.text] = true
		}
		for _, operand := range n.operands {
			visit(operand)
		}
	}
	visit(c.node)
	return slices.Sorted(maps.Keys(names))
}

// node is an operation and its operands.
type node struct {
	op          string // one of the constants below, or a keyword or operator of Python
	text        string // of opName, opAttribute and opCall: the name
	value       any    // of opValue
	operands    []node
	comparisons []string // of opComparison: the operators between the operands
}

// Operations that have no Python keyword or operator.
const (
	opName       = "name"
	opValue      = "value"
	opList       = "list"
	opAttribute  = "attribute"
	opSubscript  = "subscript"
	opCall       = "call"
	opNegate     = "negate"
	opComparison = "comparison"
)

// Parse parses a condition. Its errors quote the text from the first token that is invalid.
func Parse(text string) (c *Condition, err error) {
	if len(text) > maxTextBytes {
		return nil, fmt.Errorf("the condition has %d bytes; at most %d are allowed", len(text), maxTextBytes)
	}
	p := &parser{text: text}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(parseError)
			if !ok {
				panic(r)
			}
			c, err = nil, fmt.Errorf("%s at %q", failure.message, strings.TrimSpace(text[min(p.start, len(text)):]))
		}
	}()
	p.next()
	n := p.or()
	if p.token != "" {
		p.fail("expected an operator or the end of the condition")
	}
	return &Condition{n}, nil
}
