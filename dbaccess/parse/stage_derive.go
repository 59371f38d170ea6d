package parse

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"glasshouse/sandbox/stages"
)

// deriveStages returns the stages of a query, which has $n in place of :name.
//
// Each derived statement is spliced from the text of the query, because a text that is made of a tree may mean
// something else. It is parsed again, and its tree must be the one that is made of the query's own tree. Otherwise its
// stage is refused. A heuristic for the places of clauses in a text can thus cost stages, and never gives a wrong one.
func deriveStages(numbered string, names []string, tables []Table, samples bool) (*StagePlan, *Fault) {
	d, bad := deriveBlocks(numbered, names, tables, samples)
	if bad != nil {
		return nil, bad
	}
	d.finish()
	d.findProbes()
	d.addParts(d.parts, false)
	d.finish()
	d.plan.Order = d.order
	return d.plan, nil
}

// deriveBlocks returns a deriver with the blocks and stages of a query.
func deriveBlocks(numbered string, names []string, tables []Table, samples bool) (*stageDeriver, *Fault) {
	tree, err := pg_query.Parse(numbered)
	if err != nil {
		return nil, syntaxFault(err)
	}
	if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return nil, newFault(stages.ReasonNoStages, "only a SELECT has stages")
	}
	c, err := newClauseText(numbered)
	if err != nil {
		return nil, syntaxFault(err)
	}
	query := tree.Stmts[0].Stmt.GetSelectStmt()
	if name := volatileCall(query); name != "" {
		return nil, newFault(stages.ReasonVolatile, "the statement calls %s, which gives other rows each time", name)
	}
	d := &stageDeriver{
		clauseText: c, names: names, tables: tables, samples: samples, tree: tree.Stmts[0].Stmt,
		plan: &StagePlan{Lines: strings.Count(numbered, "\n") + 1}, origins: map[int]*pg_query.SelectStmt{},
		bareSets: map[int]bareSet{}, views: map[*Table]int{},
	}
	all := span{0, len(c.tokens)}
	for all.end > 0 && c.is(all.end-1, pg_query.Token_ASCII_59) {
		all.end--
	}
	for all.start < all.end && c.is(all.start, pg_query.Token_ASCII_59) {
		all.start++
	}
	d.block(query, all, stages.BlockMain, "", nil)
	if len(d.plan.Stages) > maxStages {
		return nil, newFault(stages.ReasonTooManyStages, "the statement has %d stages; the limit is %d",
			len(d.plan.Stages), maxStages)
	}
	d.plan.Order = d.order
	return d, nil
}

// Table is what a derivation knows about a table that the statement may read.
type Table struct {
	Schema, Name string
	Columns      []Column
	PrimaryKey   []string
	Unique       []string // columns that are unique by themselves
	ForeignKeys  []ForeignKey
	IsView       bool
	Definition   string // of a view: its query
	IsVisible    bool   // without its schema
}

// Column is a column of a Table.
type Column struct {
	Name, Type string
	IsNullable bool
	IsMasked   bool
	FilteredBy string // a view over the table that reads the column and does not show it; "": none
}

// ForeignKey says that columns of a table have values of another's.
type ForeignKey struct {
	Columns           []string
	Table             string
	ReferencedColumns []string
}

// stageDeriver makes a plan.
type stageDeriver struct {
	*clauseText
	names    []string // of parameters, by number
	tables   []Table
	plan     *StagePlan
	drafts   []draft // of plan.Counts
	derived  int
	order    []int // blocks in the order in which they were finished
	parts    []*blockParts
	sets     []*setParts
	bareSets map[int]bareSet              // by their block
	tree     *pg_query.Node               // of the whole statement
	origins  map[int]*pg_query.SelectStmt // by block: its node in tree
	samples  bool
	views    map[*Table]int // the blocks of views
}

// bareSet is a set operation without its ORDER BY and LIMIT.
type bareSet struct {
	span
	id    int
	query *pg_query.SelectStmt
	scope scope
}

// draft is a statement of counts before it has the WITH queries that it reads.
type draft struct {
	derivedQuery
	scope  scope
	values []CountValue
	class  CountClass
}

// scope has the WITH queries that a query can read: those of the statements around it, the outermost first.
type scope []*withLevel

// withLevel is a list of WITH queries. Only the first ones are visible.
type withLevel struct {
	source  *clauseText
	owner   *pg_query.WithClause
	queries []withQuery
	visible int
	blocks  []int // of the visible queries
}

// names returns the names of the queries, of those that are visible or of the others.
func (l *withLevel) names(isVisible bool) (names []string) {
	for i, n := range l.owner.Ctes {
		if i < l.visible == isVisible {
			names = append(names, n.GetCommonTableExpr().GetCtename())
		}
	}
	return names
}

// lookup returns the block of a WITH query with a name, or -1.
func (s scope) lookup(name string) int {
	for i := len(s) - 1; i >= 0; i-- {
		for j := s[i].visible - 1; j >= 0; j-- {
			if s[i].owner.Ctes[j].GetCommonTableExpr().GetCtename() == name {
				return s[i].blocks[j]
			}
		}
	}
	return -1
}

// blockParts is a SELECT with its parts, for the statements that look for findings.
type blockParts struct {
	id     int
	node   *pg_query.SelectStmt
	clause selectClauses
	scope  scope
	items  []*fromItem // of the list of FROM
	joins  []*fromItem // all joins in the order of their stages
	// conjuncts of WHERE; those of a list in FROM are conditions of its joins
	conjuncts  []conjunct
	last       int
	firstDraft int // of the block
}

// setParts is a set operation with its parts.
type setParts struct {
	span
	block, stage int
	left, right  int // the last stages of its sides
	rows         derivedQuery
	scope        scope
	whole        *derivedQuery // of the last one of a block: with ORDER BY and LIMIT
}

// conjunct is a condition of WHERE.
type conjunct struct {
	span
	node  *pg_query.Node
	stage int
}

// withText returns the text of the visible queries of a level and their tree.
func (d *stageDeriver) withText(l *withLevel, isMaterialized bool) (string, *pg_query.WithClause) {
	clause := proto.CloneOf(l.owner)
	clause.Ctes = clause.Ctes[:l.visible]
	var out strings.Builder
	out.WriteString("WITH ")
	if clause.Recursive {
		out.WriteString("RECURSIVE ")
	}
	for i := range clause.Ctes {
		q := l.queries[i]
		if i > 0 {
			out.WriteString(", ")
		}
		if !isMaterialized {
			out.WriteString(l.source.text(q.all))
			continue
		}
		clause.Ctes[i].GetCommonTableExpr().Ctematerialized = pg_query.CTEMaterialize_CTEMaterializeAlways
		out.WriteString(l.source.text(span{q.all.start, q.as}) + " AS MATERIALIZED (" + l.source.text(q.body) + ")")
		if rest := (span{q.body.end + 1, q.all.end}); !rest.isEmpty() {
			out.WriteString(" " + l.source.text(rest))
		}
	}
	return out.String(), clause
}

// inScope returns a query with the WITH queries of a scope.
func (d *stageDeriver) inScope(q derivedQuery, s scope, isMaterialized bool) derivedQuery {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i].visible == 0 {
			continue
		}
		if q.node.WithClause != nil {
			q = fill(`SELECT * FROM (@0) AS "stage rows"`, queryHole(q))
		}
		text, clause := d.withText(s[i], isMaterialized)
		q = derivedQuery{text + " " + q.text, proto.CloneOf(q.node)}
		q.node.WithClause = clause
	}
	return q
}

var errDiffers = errors.New("the parts of the statement were not found in its text")

// derive returns a query as a statement. It returns an error unless the text has the tree that is meant.
func (d *stageDeriver) derive(q derivedQuery) (DerivedStatement, error) {
	if d.derived++; d.derived > maxDerived {
		return DerivedStatement{}, errors.New("the statement has more stages than are derived")
	}
	text, err := nameParameters(q.text, d.names)
	if err != nil {
		return DerivedStatement{}, err
	}
	used, bad := compareTree(text, &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: q.node}}, d.names)
	if bad != nil {
		return DerivedStatement{}, errDiffers
	}
	slices.Sort(used)
	return DerivedStatement{text, slices.Compact(used)}, nil
}

// addStage adds a stage and returns its ID.
func (d *stageDeriver) addStage(block int, kind, name string, s span) int {
	from, to := d.lines(s)
	text, err := nameParameters(d.text(s), d.names)
	if err != nil {
		text = d.text(s)
	}
	d.plan.Stages = append(d.plan.Stages, PlanStage{
		Block: block, Kind: kind, Name: name, Text: text, From: from, To: to, Reads: -1, Left: -1, Right: -1,
		Follows: -1, PartOf: -1, Same: -1,
	})
	return len(d.plan.Stages) - 1
}

func (d *stageDeriver) stage(id int) *PlanStage { return &d.plan.Stages[id] }

// count adds a statement of counts.
func (d *stageDeriver) count(q derivedQuery, s scope, isMore bool, values ...CountValue) {
	class := CountsRows
	if isMore {
		class = CountsMatches
	}
	d.drafts = append(d.drafts, draft{q, s, values, class})
}

// sample gives a stage a statement for a few of its rows. q has all of them.
func (d *stageDeriver) sample(stage int, q derivedQuery, s scope) {
	if !d.samples {
		return
	}
	q = fill(`SELECT * FROM (@0) AS "stage rows" LIMIT 5`, queryHole(q))
	if statement, err := d.derive(d.inScope(q, s, false)); err == nil {
		d.plan.Stages[stage].Sample = &statement
	}
}

// finish derives the statements of the drafts since it was last called.
func (d *stageDeriver) finish() {
	var kept []draft
	first := len(d.plan.Counts)
	for _, one := range d.drafts {
		statement, err := d.derive(d.inScope(one.derivedQuery, one.scope, false))
		if err != nil {
			for _, v := range one.values {
				if one.class != CountsMatches {
					d.refuse(v.Stage, err)
				}
			}
			continue
		}
		kept = append(kept, one)
		d.plan.Counts = append(d.plan.Counts, CountStatement{statement, one.values, one.class})
	}
	d.drafts = nil
	for _, class := range []CountClass{CountsRows, CountsMatches, CountsPart} {
		d.share(kept, first, class)
	}
}

// refuse refuses a stage.
func (d *stageDeriver) refuse(stage int, err error) {
	s := &d.plan.Stages[stage]
	if s.Reason != "" {
		return
	}
	s.Reason, s.Message = stages.ReasonDiffers, err.Error()
	if !errors.Is(err, errDiffers) {
		s.Reason = stages.ReasonTooManyStages
	}
}

// share makes one statement of the counts that read WITH queries, which computes each of these once. first is the index
// of the first draft in plan.Counts.
func (d *stageDeriver) share(drafts []draft, first int, class CountClass) {
	var all *withLevel
	var holes []hole
	known := map[CountValue]bool{}
	var out SharedCounts
	for i, one := range drafts {
		if one.class != class || len(one.scope) != 1 || one.node.WithClause != nil {
			continue
		}
		level := one.scope[0]
		if !readsAny(one.node, level.names(true)) || readsAny(one.node, level.names(false)) {
			continue // the same name may be a table here, and another WITH query in the shared statement
		}
		if all == nil {
			full := *level
			full.visible = len(full.owner.Ctes)
			all = &full
		}
		if all.owner != level.owner {
			continue
		}
		isKnown := true
		for _, v := range one.values {
			isKnown = isKnown && known[v]
			known[v] = true
		}
		if isKnown {
			continue
		}
		holes = append(holes, queryHole(one.derivedQuery))
		out.Counts = append(out.Counts, first+i)
	}
	if len(holes) < 2 {
		return
	}
	template := "SELECT * FROM "
	for i := range holes {
		if i > 0 {
			template += ", "
		}
		template += "(@" + strconv.Itoa(i) + `) AS "count ` + strconv.Itoa(i) + `"`
	}
	statement, err := d.derive(d.inScope(fill(template, holes...), scope{all}, true))
	if err == nil {
		out.DerivedStatement = statement
		d.plan.Shared = append(d.plan.Shared, out)
	}
}
