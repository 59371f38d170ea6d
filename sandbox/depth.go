package sandbox

// JSONDepth is how deep valid JSON nests, in lists and objects.
func JSONDepth(text []byte) int {
	now, most := 0, 0
	structure(text, func(c byte) {
		switch c {
		case '[', '{':
			now++
			most = max(most, now)
		case ']', '}':
			now--
		}
	})
	return most
}

// JSONValueCount is how many values valid JSON has within, at the most.
func JSONValueCount(text []byte) int {
	n := 0
	structure(text, func(c byte) {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	})
	return n
}

// JSONMemberCount is how many values stand directly in a list or an object of valid JSON, at the
// most: an empty one has one.
func JSONMemberCount(text []byte) int {
	n, depth := 1, 0
	structure(text, func(c byte) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				n++
			}
		}
	})
	return n
}

// structure hands over what of valid JSON stands outside of its texts.
func structure(text []byte, take func(c byte)) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted:
			take(c)
		}
	}
}
