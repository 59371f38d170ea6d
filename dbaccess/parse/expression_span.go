package parse

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// spanOf returns the tokens of an expression, without parentheses around all of it. It knows the location of each node
// and the syntax after it; as all spans it can be wrong. ok is false if the tokens were not found.
func (c *clauseText) spanOf(n *pg_query.Node) (s span, ok bool) {
	s = span{len(c.tokens), -1}
	add := func(start, end int) {
		s.start, s.end = min(s.start, start), max(s.end, end)
	}
	forEachNode(n, func(n *pg_query.Node) bool {
		if name := n.GetTypeCast().GetTypeName(); name != nil {
			if at := c.at(name.Location); at >= 0 {
				end := c.typeEnd(at)
				if c.is(at-1, pg_query.Token_TYPECAST) || c.is(end, pg_query.Token_SCONST) { // date '...'
					add(at, end)
				}
			}
		}
		at := c.at(locationOf(n))
		if at < 0 {
			return true
		}
		switch v := n.Node.(type) {
		case *pg_query.Node_ColumnRef:
			add(at, at+2*len(v.ColumnRef.Fields)-1)
		case *pg_query.Node_AConst:
			if c.is(at, pg_query.Token_ASCII_45) { // the sign of a negative number
				at++
				add(at-1, at)
			}
			add(at, at+1)
		case *pg_query.Node_SubLink, *pg_query.Node_CaseExpr, *pg_query.Node_AArrayExpr, *pg_query.Node_RowExpr:
			end := c.constructEnd(at)
			add(at, end)
			if link := n.GetSubLink(); link != nil && link.Testexpr != nil {
				if test, ok := c.spanOf(link.Testexpr); ok {
					add(test.start, test.end)
				}
			}
			return false
		case *pg_query.Node_NullTest, *pg_query.Node_BooleanTest:
			end := at + 1
			for c.is(end, pg_query.Token_NOT, pg_query.Token_NULL_P, pg_query.Token_TRUE_P, pg_query.Token_FALSE_P,
				pg_query.Token_UNKNOWN) {
				end++
			}
			add(at, end)
		case *pg_query.Node_CollateClause:
			add(at, at+2*len(v.CollateClause.Collname))
		default:
			add(at, c.constructEnd(at))
		}
		return true
	})
	if s.end > len(c.tokens) || s.isEmpty() {
		return s, false
	}
	return c.balance(s)
}

// constructEnd returns the index after what begins at a token: a function with its parentheses and what follows them,
// CASE ... END, or the token alone.
func (c *clauseText) constructEnd(at int) int {
	if c.opensAny(at) {
		return c.closes[at] + 1
	}
	end := at + 1
	for c.is(end, pg_query.Token_ASCII_46) { // the name of a schema comes first
		end += 2
	}
	for c.is(end, pg_query.Token_IN_P, pg_query.Token_ALL, pg_query.Token_ANY, pg_query.Token_SOME) {
		end++ // NOT IN (...), <> ALL (...)
	}
	if !c.is(end, pg_query.Token_ASCII_40, pg_query.Token_ASCII_91) || c.isOperator(at) && end == at+1 {
		return end
	}
	end = c.closes[end] + 1
	for {
		switch {
		case c.is(end, pg_query.Token_WITHIN) && c.is(end+2, pg_query.Token_ASCII_40):
			end = c.closes[end+2] + 1
		case c.is(end, pg_query.Token_FILTER, pg_query.Token_OVER) && c.is(end+1, pg_query.Token_ASCII_40):
			end = c.closes[end+1] + 1
		case c.is(end, pg_query.Token_OVER):
			end += 2
		default:
			return end
		}
	}
}

// isOperator reports whether a token may connect two expressions, so that parentheses after it are those of the second.
func (c *clauseText) isOperator(at int) bool {
	return c.is(at, pg_query.Token_Op, pg_query.Token_ASCII_43, pg_query.Token_ASCII_45, pg_query.Token_ASCII_42,
		pg_query.Token_ASCII_47, pg_query.Token_ASCII_37, pg_query.Token_ASCII_94, pg_query.Token_ASCII_60,
		pg_query.Token_ASCII_61, pg_query.Token_ASCII_62, pg_query.Token_LESS_EQUALS, pg_query.Token_GREATER_EQUALS,
		pg_query.Token_NOT_EQUALS, pg_query.Token_AND, pg_query.Token_OR, pg_query.Token_NOT, pg_query.Token_TYPECAST,
		pg_query.Token_LIKE, pg_query.Token_ILIKE, pg_query.Token_BETWEEN, pg_query.Token_IS)
}

// typeEnd returns the index after the name of a type.
func (c *clauseText) typeEnd(at int) int {
	end := at + 1
	for c.is(end, pg_query.Token_ASCII_46) {
		end += 2
	}
	if c.is(at, pg_query.Token_DOUBLE_P) || c.is(end, pg_query.Token_VARYING) {
		end++
	}
	if c.is(end, pg_query.Token_ASCII_40) {
		end = c.closes[end] + 1
	}
	if c.is(end, pg_query.Token_WITH, pg_query.Token_WITH_LA, pg_query.Token_WITHOUT, pg_query.Token_WITHOUT_LA) &&
		c.is(end+1, pg_query.Token_TIME) {
		end += 3
	}
	for c.is(end, pg_query.Token_ASCII_91) {
		end = c.closes[end] + 1
	}
	return end
}

// balance extends a span to the parentheses that begin or end in it.
func (c *clauseText) balance(s span) (span, bool) {
	least := c.depths[s.start]
	for i := s.start; i < s.end; i++ {
		least = min(least, c.depths[i])
	}
	for c.depths[s.start] > least {
		s.start--
		if s.start < 0 || !c.opensAny(s.start) && c.depths[s.start] > least {
			return s, false
		}
	}
	for i := s.start; i < s.end; i++ {
		if c.opensAny(i) && c.closes[i] >= s.end {
			s.end = c.closes[i] + 1
		}
	}
	return s, s.end <= len(c.tokens)
}

// locationOf returns the location of a node, or -1 if it has none.
func locationOf(n *pg_query.Node) int32 {
	if n.GetNode() == nil {
		return -1
	}
	m := n.ProtoReflect()
	one := m.WhichOneof(m.Descriptor().Oneofs().Get(0))
	if one == nil {
		return -1
	}
	inner := m.Get(one).Message()
	field := inner.Descriptor().Fields().ByName("location")
	if field == nil {
		return -1
	}
	return int32(inner.Get(field).Int())
}

// expression returns a hole for an expression of the statement.
func (d *stageDeriver) expression(n *pg_query.Node) (h hole, ok bool) {
	s, ok := d.spanOf(n)
	if !ok {
		return h, false
	}
	return exprHole(d.text(s), n), true
}

// constant returns a hole for a text of this package.
func constant(text string) hole {
	node := pg_query.MakeAConstStrNode(text, -1)
	return hole{text: quoteText(text), nodes: []*pg_query.Node{node}}
}

// equalNodes reports whether two expressions are the same text but for their locations.
func equalNodes(a, b *pg_query.Node) bool {
	return a != nil && b != nil && proto.Equal(normalize(a, nil), normalize(b, nil))
}
