package check

import (
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// The target of a statement that writes is not an item of FROM, so its masked columns cannot be replaced. Such a
// statement may give a masked column a new value. Whatever could read one, of the target or of a masked item of FROM,
// is refused by its name, because the constant of an item would be stored.

// checkMaskedWrite refuses a statement that writes and may read a masked column. It is called after the walk.
func (w *walker) checkMaskedWrite() {
	target := w.findRelation(w.target)
	hasTarget := target != nil && len(target.maskedColumns) > 0
	if !hasTarget && len(w.masks.items) == 0 {
		return
	}
	for _, n := range w.masks.columns {
		items := w.fromItems[n.Fields[max(len(n.Fields)-2, 0)].GetString_().GetSval()]
		if !w.spend(1 + len(items) + len(w.masks.items)) {
			return
		}
		if !w.isUnmasked(n) {
			w.refuseMaskedWrite(int(n.Location), "a column that is masked, or that may be, is read here")
			return
		}
	}
	for _, m := range w.masks.items {
		if w.masks.renames || len(m.node.Alias.GetColnames()) > 0 {
			w.refuseMaskedWrite(int(m.node.Location), "the columns of a table with masked columns are renamed")
			return
		}
	}
	if conflict := w.masks.conflict; hasTarget && conflict.GetInfer() != nil {
		for _, e := range conflict.Infer.IndexElems {
			if target.maskedColumns[e.GetIndexElem().GetName()] {
				w.refuseMaskedWrite(int(conflict.Infer.Location), "ON CONFLICT compares a masked column")
			}
		}
		if conflict.Infer.Conname != "" {
			w.refuseMaskedWrite(int(conflict.Infer.Location), "ON CONFLICT ON CONSTRAINT may compare a masked column")
		}
	}
}

func (w *walker) refuseMaskedWrite(at int, what string) {
	no := sandbox.Refusef("masked-column",
		"%s: a statement that writes may only give a masked column a new value", what)
	no.Hint = "name the columns that you read, each with its table (users.name), and none of them masked"
	w.fail(at, no)
}

// isUnmasked reports whether a reference is certain to read no masked column.
func (w *walker) isUnmasked(n *pg_query.ColumnRef) bool {
	last := len(n.Fields) - 1
	name := n.Fields[last].GetString_().GetSval() // "" for *
	if last == 0 {
		return name != "" && !w.isMaskedName(name) && w.areUnmasked(w.fromItems[name])
	}
	of := n.Fields[last-1].GetString_().GetSval()
	if name == "" {
		return w.areUnmasked(w.fromItems[of])
	}
	for _, item := range w.fromItems[of] {
		if r := item.relation; r == nil {
			if w.isMaskedName(name) {
				return false
			}
		} else if column, ok := item.columnOf(name); !ok || r.maskedColumns[column] {
			return false // staff.name may call the function name with a row
		}
	}
	return len(w.fromItems[of]) > 0
}

// areUnmasked reports whether no item has a masked column.
func (w *walker) areUnmasked(items []*fromItem) bool {
	for _, item := range items {
		if r := item.relation; r == nil || len(r.maskedColumns) > 0 {
			return false
		}
	}
	return true
}

// isMaskedName reports whether a masked column of the statement has the name.
func (w *walker) isMaskedName(name string) bool {
	if r := w.findRelation(w.target); r != nil && r.maskedColumns[name] {
		return true
	}
	for _, m := range w.masks.items {
		if m.relation.maskedColumns[name] {
			return true
		}
	}
	return false
}
