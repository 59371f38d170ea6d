package debugger

import (
	"slices"

	"glasshouse/sandbox/stages"
)

// sqlPlace is a stage of a block of a statement.
type sqlPlace struct {
	block int // its ID
	stage int // its index in the block; 0 also for a block without stages
}

// sqlPath is where a session stands in a statement: a place in the main block, one in the block that was entered from
// there, and so on.
type sqlPath []sqlPlace

// Bounds of a walk. A block that is read several times is entered each time.
const (
	maxSQLDepth  = 40
	maxSQLPlaces = 2000
)

// sqlWalk moves through the stages of a statement.
type sqlWalk struct {
	blocks  map[int]*stages.Block
	entered map[sqlPlace][]int // the blocks that can be entered at a place
	main    int
}

func newSQLWalk(s *stages.Stages) *sqlWalk {
	w := &sqlWalk{blocks: map[int]*stages.Block{}, entered: map[sqlPlace][]int{}, main: -1}
	isRead := map[int]bool{}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		w.blocks[b.ID] = b
		if b.Kind == stages.BlockMain {
			w.main = b.ID
		}
		for index, stage := range b.Stages {
			if stage.Reads >= 0 {
				place := sqlPlace{b.ID, index}
				w.entered[place], isRead[stage.Reads] = append(w.entered[place], stage.Reads), true
			}
		}
	}
	for i := range s.Blocks { // the sides of a set operation, and WITH queries that only expressions read
		b := &s.Blocks[i]
		if b.ID == w.main || isRead[b.ID] {
			continue
		}
		parent := b.Parent
		if w.blocks[parent] == nil {
			parent = w.main
		}
		place := sqlPlace{parent, 0}
		w.entered[place] = append(w.entered[place], b.ID)
	}
	return w
}

// start returns the first stage of the main block.
func (w *sqlWalk) start() sqlPath { return sqlPath{{w.main, 0}} }

// stage returns the stage at the end of a path, or nil.
func (w *sqlWalk) stage(p sqlPlace) *stages.Stage {
	if b := w.blocks[p.block]; b != nil && p.stage < len(b.Stages) {
		return b.Stages[p.stage]
	}
	return nil
}

// children returns the blocks that can be entered at the end of a path.
func (w *sqlWalk) children(path sqlPath) []int {
	if len(path) >= maxSQLDepth {
		return nil
	}
	children := slices.Clone(w.entered[path[len(path)-1]])
	return slices.DeleteFunc(children, func(id int) bool {
		isWithin := func(p sqlPlace) bool { return p.block == id }
		return w.blocks[id] == nil || slices.ContainsFunc(path, isWithin)
	})
}

// in returns the path after a step into the n-th block that can be entered, or like next if there is none.
func (w *sqlWalk) in(path sqlPath, n int) sqlPath {
	if children := w.children(path); n < len(children) {
		return append(slices.Clone(path), sqlPlace{children[n], 0})
	}
	return w.next(path)
}

// next returns the path after a step over the blocks that can be entered, and nil after the statement. At the end of a
// side of a set operation the next one begins, if the session stepped into this one.
func (w *sqlWalk) next(path sqlPath) sqlPath {
	last := path[len(path)-1]
	if b := w.blocks[last.block]; b != nil && last.stage+1 < len(b.Stages) {
		path = slices.Clone(path)
		path[len(path)-1].stage++
		return path
	}
	return w.out(path, true)
}

// out returns the path after the innermost block: at the next side of a set operation if that is wanted, else after the
// stage that reads the block. It is nil after the statement.
func (w *sqlWalk) out(path sqlPath, entersNext bool) sqlPath {
	outer := path[:len(path)-1]
	if len(outer) == 0 {
		return nil
	}
	if children := w.children(outer); entersNext {
		at := slices.Index(children, path[len(path)-1].block)
		if at >= 0 && at+1 < len(children) {
			return w.in(outer, at+1)
		}
	}
	if reader := w.stage(outer[len(outer)-1]); reader != nil && reader.Reads < 0 {
		return slices.Clone(outer) // the sides come before the stage itself
	}
	return w.next(outer)
}

// back returns the path of the stage before, and nil at the beginning of the statement.
func (w *sqlWalk) back(path sqlPath) sqlPath {
	path = slices.Clone(path)
	if last := &path[len(path)-1]; last.stage > 0 {
		last.stage--
		return path
	}
	if len(path) == 1 {
		return nil
	}
	return path[:len(path)-1]
}

// all returns all places of the statement in the order in which steps into each block reach them.
func (w *sqlWalk) all() (list []sqlPath) {
	sides := map[sqlPlace]bool{} // stages whose sides were visited
	for path := w.start(); path != nil && len(list) < maxSQLPlaces; {
		list = append(list, path)
		last := path[len(path)-1]
		if s := w.stage(last); s != nil && s.Reads < 0 && sides[last] {
			path = w.next(path)
			continue
		}
		sides[last] = true
		path = w.in(path, 0)
	}
	return list
}
