package parse

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox/stages"
)

// KeySample is a statement for a few keys of one side of a join.
type KeySample struct {
	DerivedStatement
	Kind, Side string // as in stages.Keys
}

// keySamples gives the stage of a join statements for keys that repeat rows of the other side, and for keys whose rows
// it loses. left and right are the expressions that it compares.
func (d *stageDeriver) keySamples(item *fromItem, left, right []hole, s scope) {
	if !d.samples || len(left) == 0 {
		return
	}
	st := d.stage(item.stage)
	add := func(kind, side string, q derivedQuery) {
		if statement, err := d.derive(d.inScope(q, s, false)); err == nil {
			st.Keys = append(st.Keys, KeySample{statement, kind, side})
		}
	}
	if st.JoinKind == "right" {
		add(stages.KeysRepeated, "left", d.repeatedKeys(item.left, left))
	} else {
		add(stages.KeysRepeated, "right", d.repeatedKeys(item.right, right))
	}
	if st.JoinKind == "inner" || st.JoinKind == "right" {
		add(stages.KeysLost, "left", d.lostKeys(item, item.left, left))
	}
	if st.JoinKind == "inner" || st.JoinKind == "left" {
		add(stages.KeysLost, "right", d.lostKeys(item, item.right, right))
	}
}

// repeatedKeys returns the keys that most rows of an item have, with the number of these rows.
func (d *stageDeriver) repeatedKeys(item *fromItem, keys []hole) derivedQuery {
	list := marks(len(keys))
	return fill(`SELECT `+list+`, count(*) AS "rows" FROM @0 GROUP BY `+list+
		` HAVING count(*) > 1 ORDER BY count(*) DESC, `+list+` LIMIT 5`,
		append([]hole{item.hole(d.clauseText)}, keys...)...)
}

// lostKeys returns keys of a side of a join that match no row of the other side.
func (d *stageDeriver) lostKeys(join, side *fromItem, keys []hole) derivedQuery {
	list, order := marks(len(keys)), "1"
	for i := 1; i < len(keys); i++ {
		order += ", " + strconv.Itoa(i+1)
	}
	pairs := d.variant(join, pg_query.JoinType_JOIN_INNER)
	return fill(`SELECT * FROM (SELECT `+list+` FROM @0 EXCEPT SELECT `+list+` FROM @`+strconv.Itoa(len(keys)+1)+
		`) AS "stage rows" ORDER BY `+order+` LIMIT 5`,
		append(append([]hole{side.hole(d.clauseText)}, keys...), pairs)...)
}

// marks returns "@1, @2" and so on.
func marks(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = "@" + strconv.Itoa(i+1)
	}
	return strings.Join(list, ", ")
}
