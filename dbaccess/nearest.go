package dbaccess

// nearest is the closest name by edits, or "".
func nearest(name string, among map[string]bool) string {
	best, cost := "", max(len(name)/3, 1)+1
	for other := range among {
		if d := distance(name, other, cost); d < cost || d == cost && other < best {
			best, cost = other, d
		}
	}
	return best
}

func distance(a, b string, bound int) int {
	if len(a)-len(b) > bound || len(b)-len(a) > bound {
		return bound + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		last := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			keep := row[j]
			if a[i-1] == b[j-1] {
				row[j] = last
			} else {
				row[j] = 1 + min(last, row[j], row[j-1])
			}
			last = keep
		}
	}
	return row[len(b)]
}

func keys[V any](m map[string]V) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}
