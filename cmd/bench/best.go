package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed best.txt
var bestText string

// anyRow is the suite and the name of the entry for rows without one.
const anyRow = "*"

// bestRevisions has the revision with the best figures of each row, by suite and name.
type bestRevisions map[[2]string]string

// readBest parses the text of best.txt.
func readBest(text string) (bestRevisions, error) {
	best := bestRevisions{}
	for number, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("best.txt, line %d: got %q, want a suite, a row and a revision with tabs between them",
				number+1, line)
		}
		row := [2]string{fields[0], fields[1]}
		if best[row] != "" {
			return nil, fmt.Errorf("best.txt, line %d: the row %q is there twice", number+1, fields[1])
		}
		best[row] = fields[2]
	}
	if best[[2]string{anyRow, anyRow}] == "" {
		return nil, fmt.Errorf("best.txt has no revision for the row %q of the suite %q", anyRow, anyRow)
	}
	return best, nil
}

// of returns the best revision of a row.
func (b bestRevisions) of(m measurement) string {
	if revision := b[[2]string{m.suite, m.name}]; revision != "" {
		return revision
	}
	return b[[2]string{anyRow, anyRow}]
}

// revisions returns each revision once.
func (b bestRevisions) revisions() (list []string) {
	for _, revision := range b {
		list = append(list, revision)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// only returns the rows whose best revision is this one.
func (b bestRevisions) only(rows []measurement, revision string) (list []measurement) {
	for _, m := range rows {
		if b.of(m) == revision {
			list = append(list, m)
		}
	}
	return list
}
