package policy

import "iter"

// Nearest returns the name closest to one that does not exist, by edit distance, or "" if none is close. A
// transposition counts as one edit.
func Nearest(name string, among iter.Seq[string]) string {
	best, cost := "", max(len(name)/3, 1)+1
	for other := range among {
		if d := editDistance(name, other, cost); d < cost || d == cost && other < best {
			best, cost = other, d
		}
	}
	return best
}

func editDistance(a, b string, bound int) int {
	if len(a)-len(b) > bound || len(b)-len(a) > bound {
		return bound + 1
	}
	// rows i-2, i-1 and i of the distance matrix
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			if a[i-1] == b[j-1] {
				row[j] = last[j-1]
			} else {
				row[j] = 1 + min(last[j-1], last[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
