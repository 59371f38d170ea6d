package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// span is a part of a text: the tokens from start to before end.
type span struct{ start, end int }

func (s span) isEmpty() bool { return s.start >= s.end }

// clauseText finds the clauses of queries in a text. It knows tokens only and can be wrong, so a text that is made of
// its spans must be parsed and compared with the tree that was meant (stageDeriver.derive).
type clauseText struct {
	sql    string
	tokens []Token // without comments
	depths []int   // open parentheses, brackets and CASEs around each token
	closes []int   // of an opening token: the index of the one that closes it
}

func newClauseText(sql string) (*clauseText, error) {
	tokens, err := Scan(sql)
	if err != nil {
		return nil, err
	}
	c := &clauseText{sql: sql, tokens: tokens, depths: make([]int, len(tokens)), closes: make([]int, len(tokens))}
	var open []int
	for i := range tokens {
		if c.closesAny(i) && len(open) > 0 {
			c.closes[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
		c.depths[i] = len(open)
		if c.opensAny(i) {
			open = append(open, i)
		}
	}
	for _, i := range open {
		c.closes[i] = len(tokens)
	}
	return c, nil
}

func (c *clauseText) opensAny(i int) bool {
	return c.is(i, pg_query.Token_ASCII_40) || c.is(i, pg_query.Token_ASCII_91) ||
		c.is(i, pg_query.Token_CASE) && c.isKeyword(i)
}

func (c *clauseText) closesAny(i int) bool {
	return c.is(i, pg_query.Token_ASCII_41) || c.is(i, pg_query.Token_ASCII_93) ||
		c.is(i, pg_query.Token_END_P) && c.isKeyword(i)
}

// is reports whether the token at an index, which may not exist, is of a kind.
func (c *clauseText) is(i int, kinds ...pg_query.Token) bool {
	return i >= 0 && i < len(c.tokens) && slices.Contains(kinds, c.tokens[i].Kind)
}

// isKeyword reports whether the token at an index may be a keyword. After a dot and after AS it is a name.
func (c *clauseText) isKeyword(i int) bool {
	return !c.is(i-1, pg_query.Token_ASCII_46, pg_query.Token_AS)
}

// find returns the index of the first keyword of the kinds in a span that is in no parentheses of it, or s.end.
func (c *clauseText) find(s span, kinds ...pg_query.Token) int {
	for i := s.start; i < s.end; i++ {
		if c.depths[i] == c.depths[s.start] && c.is(i, kinds...) && c.isKeyword(i) {
			return i
		}
	}
	return s.end
}

// split splits a span at the keywords of a kind that are in no parentheses of it.
func (c *clauseText) split(s span, kind pg_query.Token) (parts []span) {
	for at := s.start; ; {
		next := c.find(span{at, s.end}, kind)
		parts = append(parts, span{at, next})
		if next == s.end {
			return parts
		}
		at = next + 1
		if at < s.end && c.depths[at] != c.depths[s.start] { // malformed
			return append(parts, span{at, s.end})
		}
	}
}

// splitAnd splits a condition at its ANDs, which are not those of BETWEEN.
func (c *clauseText) splitAnd(s span) (parts []span) {
	start, betweens := s.start, 0
	for i := s.start; i < s.end; i++ {
		if c.depths[i] != c.depths[s.start] || !c.isKeyword(i) {
			continue
		}
		switch {
		case c.is(i, pg_query.Token_BETWEEN):
			betweens++
		case c.is(i, pg_query.Token_AND) && betweens > 0:
			betweens--
		case c.is(i, pg_query.Token_AND):
			parts = append(parts, span{start, i})
			start = i + 1
		}
	}
	return append(parts, span{start, s.end})
}

// unwrap takes the parentheses off that are around all of a span.
func (c *clauseText) unwrap(s span) span {
	for c.is(s.start, pg_query.Token_ASCII_40) && s.end-s.start > 2 && c.closes[s.start] == s.end-1 {
		s = span{s.start + 1, s.end - 1}
	}
	return s
}

// text returns the text of a span, or "" if it is empty.
func (c *clauseText) text(s span) string {
	if s.start < 0 || s.isEmpty() || s.end > len(c.tokens) {
		return ""
	}
	return c.sql[c.tokens[s.start].Start:c.tokens[s.end-1].End]
}

// lines returns the first and the last line of a span, from 1.
func (c *clauseText) lines(s span) (from, to int) {
	if s.start < 0 || s.isEmpty() || s.end > len(c.tokens) {
		return 0, 0
	}
	from = strings.Count(c.sql[:c.tokens[s.start].Start], "\n") + 1
	return from, from + strings.Count(c.text(s), "\n")
}

// at returns the index of the token that begins at a byte offset, or -1.
func (c *clauseText) at(offset int32) int {
	i, found := slices.BinarySearchFunc(c.tokens, int(offset), func(t Token, at int) int { return t.Start - at })
	if !found {
		return -1
	}
	return i
}

// selectClauses are the clauses of a SELECT without set operations. An empty span stands for a clause that is absent.
// The spans have no keywords but for tail.
type selectClauses struct {
	all        span
	distinctOn span // the list of DISTINCT ON, in its parentheses
	targets    span
	from       span
	where      span
	group      span
	having     span
	window     span
	tail       span // ORDER BY, LIMIT, OFFSET and so on, with their keywords
	order      span
}

// splitSelect finds the clauses of a SELECT in a span. ok is false if it is something else.
func (c *clauseText) splitSelect(s span) (q selectClauses, ok bool) {
	q.all = s
	at := s.start
	if c.is(at, pg_query.Token_TABLE) {
		q.from = span{at + 1, c.find(s, pg_query.Token_ORDER, pg_query.Token_LIMIT, pg_query.Token_OFFSET,
			pg_query.Token_FETCH, pg_query.Token_FOR)}
		q.tail = span{q.from.end, s.end}
		return q, !q.from.isEmpty()
	}
	if !c.is(at, pg_query.Token_SELECT) {
		return q, false
	}
	at++
	switch {
	case c.is(at, pg_query.Token_ALL):
		at++
	case c.is(at, pg_query.Token_DISTINCT) && c.is(at+1, pg_query.Token_ON):
		q.distinctOn = span{at + 3, c.closes[at+2]}
		at = c.closes[at+2] + 1
	case c.is(at, pg_query.Token_DISTINCT):
		at++
	}
	if at > s.end {
		return q, false
	}
	into := &q.targets
	into.start = at
	for i := at; i < s.end; i++ {
		if c.depths[i] != c.depths[s.start] || !c.isKeyword(i) {
			continue
		}
		var next *span
		skip := 1
		switch c.tokens[i].Kind {
		case pg_query.Token_FROM:
			if into == &q.targets && !c.is(i-1, pg_query.Token_DISTINCT) { // not that of IS DISTINCT FROM
				next = &q.from
			}
		case pg_query.Token_WHERE:
			next = &q.where
		case pg_query.Token_GROUP_P:
			if c.is(i+1, pg_query.Token_BY) { // not that of WITHIN GROUP
				next, skip = &q.group, 2
				if c.is(i+2, pg_query.Token_DISTINCT, pg_query.Token_ALL) {
					skip = 3
				}
			}
		case pg_query.Token_HAVING:
			next = &q.having
		case pg_query.Token_WINDOW:
			next = &q.window
		case pg_query.Token_ORDER, pg_query.Token_LIMIT, pg_query.Token_OFFSET, pg_query.Token_FETCH,
			pg_query.Token_FOR:
			next, skip = &q.tail, 0
		}
		if next == nil || next.end > 0 || into == &q.tail {
			continue
		}
		into.end = i
		into = next
		into.start, into.end = i+skip, i+skip
	}
	into.end = s.end
	if c.is(q.tail.start, pg_query.Token_ORDER) && !q.tail.isEmpty() {
		rest := span{q.tail.start + 2, q.tail.end}
		q.order = span{rest.start, c.find(rest, pg_query.Token_LIMIT, pg_query.Token_OFFSET, pg_query.Token_FETCH,
			pg_query.Token_FOR)}
	}
	return q, true
}

// withQuery is a query of WITH.
type withQuery struct {
	all  span // the name, AS and the body in parentheses
	as   int  // the index of AS
	body span // without the parentheses
}

// splitWith finds the queries of a span that begins with WITH.
func (c *clauseText) splitWith(s span) (queries []withQuery) {
	at := s.start + 1
	if c.is(at, pg_query.Token_RECURSIVE) {
		at++
	}
	if at >= s.end {
		return nil
	}
	for _, part := range c.split(span{at, s.end}, pg_query.Token_ASCII_44) {
		q := withQuery{all: part, as: -1}
		for i := part.start; i < part.end; i++ {
			if c.depths[i] == c.depths[s.start] && c.is(i, pg_query.Token_AS) {
				q.as = i
				break
			}
		}
		if q.as < 0 {
			return nil
		}
		open := q.as
		for open < part.end && !c.is(open, pg_query.Token_ASCII_40) { // after NOT MATERIALIZED
			open++
		}
		if open >= part.end {
			return nil
		}
		q.body = span{open + 1, c.closes[open]}
		queries = append(queries, q)
	}
	return queries
}

// joinText is an item of FROM: a table, or a join of two others.
type joinText struct {
	all         span
	left, right *joinText // nil: no join
	qual        span      // ON ... or USING (...), with the keyword; empty: CROSS or NATURAL
	inner       span      // of a join in parentheses: what is in them; else all
}

// isJoinWord reports whether a token begins a join.
func (c *clauseText) isJoinWord(i int) bool {
	if !c.isKeyword(i) {
		return false
	}
	switch {
	case c.is(i, pg_query.Token_JOIN, pg_query.Token_CROSS, pg_query.Token_NATURAL, pg_query.Token_INNER_P,
		pg_query.Token_FULL):
		return true
	case c.is(i, pg_query.Token_LEFT, pg_query.Token_RIGHT):
		return !c.is(i+1, pg_query.Token_ASCII_40) // not the functions
	}
	return false
}

// parseItem parses an item of FROM that fills a span, or returns nil.
func (c *clauseText) parseItem(s span) *joinText {
	if s.isEmpty() {
		return nil
	}
	item, at := c.parseJoins(s.start, s.end, false)
	if item == nil || at != s.end {
		return nil
	}
	return item
}

// parseJoins parses an item and the joins after it. isRight stops it where the ON of the join around it comes.
func (c *clauseText) parseJoins(at, end int, isRight bool) (*joinText, int) {
	left, at := c.parseTable(at, end)
	for left != nil && at < end && c.isJoinWord(at) {
		hasNoQual := false
		for at < end && !c.is(at, pg_query.Token_JOIN) {
			hasNoQual = hasNoQual || c.is(at, pg_query.Token_CROSS, pg_query.Token_NATURAL)
			at++
		}
		var right *joinText
		join := &joinText{left: left}
		if hasNoQual {
			right, at = c.parseTable(at+1, end)
		} else {
			right, at = c.parseJoins(at+1, end, true)
		}
		if right == nil {
			return nil, at
		}
		if !hasNoQual {
			if !c.is(at, pg_query.Token_ON, pg_query.Token_USING) {
				return nil, at
			}
			join.qual.start = at
			for at++; at < end && (c.depths[at] != c.depths[join.qual.start] || !c.isJoinWord(at) &&
				!(c.is(at, pg_query.Token_ON, pg_query.Token_USING) && c.isKeyword(at))); at++ {
			}
			join.qual.end = at
		}
		join.right, join.all = right, span{left.all.start, at}
		join.inner = join.all
		left = join
		if isRight && c.is(at, pg_query.Token_ON, pg_query.Token_USING) {
			break
		}
	}
	return left, at
}

// parseTable parses a table, a subquery, a function or a join in parentheses.
func (c *clauseText) parseTable(at, end int) (*joinText, int) {
	start := at
	if start >= end {
		return nil, at
	}
	for at < end && (c.depths[at] != c.depths[start] || at == start || !c.isJoinWord(at) &&
		!(c.is(at, pg_query.Token_ON, pg_query.Token_USING) && c.isKeyword(at))) {
		at++
	}
	item := &joinText{all: span{start, at}}
	item.inner = item.all
	if c.is(start, pg_query.Token_ASCII_40) && !c.is(start+1, pg_query.Token_SELECT, pg_query.Token_WITH,
		pg_query.Token_VALUES, pg_query.Token_TABLE) {
		if inner := c.parseItem(span{start + 1, c.closes[start]}); inner != nil && inner.left != nil {
			inner.all = item.all
			return inner, at
		}
	}
	return item, at
}

// setPart splits a span of a set operation into its sides. The operation is that of its tree.
func (c *clauseText) setPart(s span, op pg_query.SetOperation) (left, right span, ok bool) {
	kinds := []pg_query.Token{pg_query.Token_UNION, pg_query.Token_EXCEPT}
	if op == pg_query.SetOperation_SETOP_INTERSECT {
		kinds = []pg_query.Token{pg_query.Token_INTERSECT}
	}
	last := -1
	for i := s.start; i < s.end; i++ {
		if c.depths[i] == c.depths[s.start] && c.is(i, kinds...) && c.isKeyword(i) {
			last = i
		}
	}
	if last < 0 {
		return left, right, false
	}
	next := last + 1
	if c.is(next, pg_query.Token_ALL, pg_query.Token_DISTINCT) {
		next++
	}
	return span{s.start, last}, span{next, s.end}, next < s.end && last > s.start
}
