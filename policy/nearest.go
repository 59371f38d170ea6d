package policy

import "iter"

// maxNameBytes is the length in bytes of the longest name of PostgreSQL, NAMEDATALEN - 1. No longer one can be meant.
const maxNameBytes = 63

// maxCandidates bounds the names of similar length that Nearest compares. A comparison takes at most 10 us.
const maxCandidates = 5000

// Nearest returns the name closest to one that does not exist, by edit distance, or "" if none is close. A
// transposition counts as one edit. It returns "" for a name of more than maxNameBytes, and compares at most
// maxCandidates names.
func Nearest(name string, among iter.Seq[string]) string {
	if len(name) > maxNameBytes {
		return ""
	}
	best, cost, compared := "", max(len(name)/3, 1)+1, 0
	for other := range among {
		if len(other) > maxNameBytes || max(len(name)-len(other), len(other)-len(name)) > cost {
			continue
		}
		if compared++; compared > maxCandidates {
			break
		}
		if d := editDistance(name, other); d < cost || d == cost && other < best {
			best, cost = other, d
		}
	}
	return best
}

// editDistance returns the edit distance of two names of at most maxNameBytes.
func editDistance(a, b string) int {
	var rows [3][maxNameBytes + 1]int
	before, last, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1] // i-2, i-1 and i of the matrix
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
