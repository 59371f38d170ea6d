package parse

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// writeStatement is an INSERT, UPDATE or DELETE with the text of each of its parts. The lexer finds the parts. It can
// be wrong, so a text that is made of them must be parsed and compared with the tree that was meant (sameTree).
type writeStatement struct {
	sql    string
	tokens []Token // without those of empty statements around it
	depths []int   // open parentheses and brackets around each token

	insert *pg_query.InsertStmt // one of the three is not nil
	update *pg_query.UpdateStmt
	delete *pg_query.DeleteStmt

	target    *pg_query.RangeVar
	with      *pg_query.WithClause
	others    []*pg_query.Node // FROM or USING
	condition *pg_query.Node

	withText      string // with the word WITH; "": there is none
	targetText    string // the table with ONLY, * and its alias
	othersText    string // without the word FROM or USING
	conditionText string
	setText       string   // UPDATE: what follows SET
	valueTexts    []string // UPDATE: the new value of each item of SET
	rowsText      string   // INSERT: the query or VALUES
	bodyText      string   // the statement without RETURNING
}

// splitWrite splits a statement, which has $n in place of :name, into its parts.
func splitWrite(sql string) (*writeStatement, *Fault) {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		return nil, syntaxFault(err)
	}
	tokens, err := Scan(sql)
	if err != nil {
		return nil, syntaxFault(err)
	}
	if len(tree.Stmts) != 1 {
		return nil, newFault("no-sample", "a sample needs exactly one statement, got %d", len(tree.Stmts))
	}
	w := &writeStatement{sql: sql, tokens: withoutEmptyStatements(tokens)}
	switch s := tree.Stmts[0].Stmt.Node.(type) {
	case *pg_query.Node_InsertStmt:
		w.insert, w.target, w.with = s.InsertStmt, s.InsertStmt.Relation, s.InsertStmt.WithClause
	case *pg_query.Node_UpdateStmt:
		u := s.UpdateStmt
		w.update, w.target, w.with, w.others, w.condition = u, u.Relation, u.WithClause, u.FromClause, u.WhereClause
	case *pg_query.Node_DeleteStmt:
		d := s.DeleteStmt
		w.delete, w.target, w.with, w.others, w.condition = d, d.Relation, d.WithClause, d.UsingClause, d.WhereClause
	default:
		return nil, newFault("no-sample", "only INSERT, UPDATE and DELETE have a sample of their rows")
	}
	w.measureDepths()
	w.split()
	return w, nil
}

func withoutEmptyStatements(tokens []Token) []Token {
	isSemicolon := func(t Token) bool { return t.Kind == pg_query.Token_ASCII_59 }
	for len(tokens) > 0 && isSemicolon(tokens[0]) {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && isSemicolon(tokens[len(tokens)-1]) {
		tokens = tokens[:len(tokens)-1]
	}
	return tokens
}

// measureDepths sets w.depths. A parenthesis has the depth of what is around it.
func (w *writeStatement) measureDepths() {
	depth := 0
	for _, t := range w.tokens {
		if t.Kind == pg_query.Token_ASCII_41 || t.Kind == pg_query.Token_ASCII_93 {
			depth--
		}
		w.depths = append(w.depths, depth)
		if t.Kind == pg_query.Token_ASCII_40 || t.Kind == pg_query.Token_ASCII_91 {
			depth++
		}
	}
}

// split finds the parts. The tree says which parts there are.
func (w *writeStatement) split() {
	name := slices.IndexFunc(w.tokens, func(t Token) bool { return t.Start == int(w.target.Location) })
	target := max(name, 0)
	for w.is(target-1, pg_query.Token_ASCII_40) || w.is(target-1, pg_query.Token_ONLY) {
		target--
	}
	verb := target - 2 // DELETE FROM, INSERT INTO
	if w.update != nil {
		verb = target - 1
	}
	w.withText = w.text(0, verb)
	returning := w.find(name+1, pg_query.Token_RETURNING)
	w.bodyText = w.text(0, returning)
	where := returning
	if w.condition != nil {
		where = w.find(name+1, pg_query.Token_WHERE)
		w.conditionText = w.text(where+1, returning)
	}
	switch {
	case w.update != nil:
		set, from := w.find(name+1, pg_query.Token_SET), where
		if len(w.others) > 0 {
			from = w.findFrom(set + 1)
			w.othersText = w.text(from+1, where)
		}
		w.targetText, w.setText = w.text(target, set), w.text(set+1, from)
		w.splitSet(set+1, from)
	case w.delete != nil:
		using := where
		if len(w.others) > 0 {
			using = w.find(name+1, pg_query.Token_USING)
			w.othersText = w.text(using+1, where)
		}
		w.targetText = w.text(target, using)
	default:
		w.rowsText = w.text(w.findRows(name), w.findConflict(returning))
	}
}

// splitSet sets w.valueTexts from the tokens of a list of assignments.
func (w *writeStatement) splitSet(start, end int) {
	for start < end {
		comma := min(w.find(start, pg_query.Token_ASCII_44), end)
		w.valueTexts = append(w.valueTexts, w.text(w.find(start, pg_query.Token_ASCII_61)+1, comma))
		start = comma + 1
	}
}

// findFrom returns the index of the FROM of an UPDATE, which is not that of IS DISTINCT FROM.
func (w *writeStatement) findFrom(i int) int {
	for {
		i = w.find(i, pg_query.Token_FROM)
		if i == len(w.tokens) || !w.is(i-1, pg_query.Token_DISTINCT) || !w.isKeyword(i-1) {
			return i
		}
		i++
	}
}

// findRows returns the index of the first token of the rows of an INSERT, whose table's name begins at an index.
func (w *writeStatement) findRows(name int) int {
	i := name + 1
	for w.is(i, pg_query.Token_ASCII_46) { // the name of its schema comes first
		i += 2
	}
	if w.is(i, pg_query.Token_AS) {
		i += 2
	}
	if len(w.insert.Cols) > 0 {
		i = w.find(i+1, pg_query.Token_ASCII_41) + 1
	}
	if w.is(i, pg_query.Token_OVERRIDING) { // SYSTEM VALUE, USER VALUE
		i += 3
	}
	return i
}

// findConflict returns the index of ON CONFLICT, or end if there is none before it.
func (w *writeStatement) findConflict(end int) int {
	if w.insert.OnConflictClause == nil {
		return end
	}
	for i := end - 1; i > 0; i-- { // a condition of a join before it may begin with a column of that name
		if w.depths[i] == 0 && w.is(i, pg_query.Token_ON) && w.is(i+1, pg_query.Token_CONFLICT) {
			return i
		}
	}
	return end
}

// find returns the index of the first token of a kind that is in no parentheses, from index i on, or the number of
// tokens if there is none.
func (w *writeStatement) find(i int, kind pg_query.Token) int {
	for i = max(i, 0); i < len(w.tokens); i++ {
		if w.depths[i] == 0 && w.tokens[i].Kind == kind && w.isKeyword(i) {
			return i
		}
	}
	return i
}

// is reports whether the token at an index, which may not exist, is of a kind.
func (w *writeStatement) is(i int, kind pg_query.Token) bool {
	return i >= 0 && i < len(w.tokens) && w.tokens[i].Kind == kind
}

// isKeyword reports whether the token at an index may be a keyword. After a dot and after AS it is a name.
func (w *writeStatement) isKeyword(i int) bool {
	return !w.is(i-1, pg_query.Token_ASCII_46) && !w.is(i-1, pg_query.Token_AS)
}

// text returns the text from the token at index i to that before index end, or "" if there is none.
func (w *writeStatement) text(i, end int) string {
	if i < 0 || i >= end || end > len(w.tokens) {
		return ""
	}
	return w.sql[w.tokens[i].Start:w.tokens[end-1].End]
}
