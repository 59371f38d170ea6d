package dbaccess

import (
	"context"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// viewsSQL returns the queries of views, in which all names have their schema.
const viewsSQL = `
SELECT v::int8, pg_catalog.pg_get_viewdef(v::pg_catalog.oid, true)
FROM pg_catalog.unnest($1::int8[]) v`

// definitions returns the queries of the views in a list of tables, by their object identifiers. A reader may look them
// up with pg_get_viewdef, too.
func (r *Reader) definitions(ctx context.Context, tables []catalogTable) (map[int64]string, error) {
	var oids []int64
	for _, t := range tables {
		if t.Kind == "view" {
			oids = append(oids, t.oid)
		}
	}
	found := map[int64]string{}
	if len(oids) == 0 {
		return found, nil
	}
	var oid int64
	var definition *string
	err := r.forEachRowOn(ctx, "pg_catalog", viewsSQL, []any{&oid, &definition}, func() {
		if definition != nil && len(*definition) <= maxViewBytes {
			found[oid] = *definition
		}
	}, oids)
	return found, err
}

// maxViewBytes bounds the query of a view that is divided into stages.
const maxViewBytes = 64 << 10

// settleParts computes the values of the stages that are parts of others.
func (run *stageRun) settleParts() {
	for i, s := range run.stages {
		p, v := run.plan.Stages[i], run.values[i]
		if p.Same >= 0 {
			same := run.stages[p.Same]
			s.RowsIn, s.RowsOut, s.Null = same.RowsIn, same.RowsOut, same.Null
			s.State, s.Reason, s.Message = same.State, same.Reason, same.Message
		}
		switch s.Kind {
		case stages.KindFilter, stages.KindSubquery:
			if s.RowsIn != nil && s.RowsOut != nil {
				s.Lost = new(*s.RowsIn - *s.RowsOut)
			}
			if n, ok := v[parse.CountEmptyGroups]; ok {
				s.EmptyGroups = &n
			}
		case stages.KindWindow:
			if n, ok := v[parse.CountPartitions]; ok {
				s.Window = &stages.Window{Partitions: n, Largest: v[parse.CountLargest]}
				if tied, ok := v[parse.CountTied]; ok {
					s.Window.Tied = &tied
				}
			}
		}
	}
}

// checkViews takes the values of a view's block back if its rows are not those of the view: the view may read with the
// rights and the row policies of its owner.
func (run *stageRun) checkViews() {
	for i := range run.out.Blocks {
		b := &run.out.Blocks[i]
		if b.Kind != stages.BlockView || b.Rows == nil {
			continue
		}
		for _, s := range run.stages {
			if s.Reads == b.ID && s.RowsOut != nil && *s.RowsOut != *b.Rows {
				refuseBlock(b, "the rows of the view's query are not those of the view")
				break
			}
		}
	}
}

// refuseBlock takes the values of a block back.
func refuseBlock(b *stages.Block, message string) {
	b.Rows, b.Reason = nil, stages.ReasonInconsistent
	for _, s := range b.Stages {
		s.RowsIn, s.RowsRight, s.RowsOut, s.Lost, s.Null, s.Multiplied, s.Sample = nil, nil, nil, nil, nil, nil, nil
		s.Keys, s.EmptyGroups, s.Window, s.EstimatedOut = nil, nil, nil, nil
		s.State, s.Reason, s.Message = stages.Refused, stages.ReasonInconsistent, message
	}
}
