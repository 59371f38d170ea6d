package sandbox

// JSONDepth returns the number of nested lists and objects in valid JSON.
func JSONDepth(text []byte) int {
	depth, deepest := 0, 0
	forEachOutsideStrings(text, func(c byte) {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	})
	return deepest
}

// JSONValueCount returns an upper bound of the number of values inside valid JSON.
func JSONValueCount(text []byte) int {
	n := 0
	forEachOutsideStrings(text, func(c byte) {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	})
	return n
}

// JSONMemberCount returns an upper bound of the number of values directly in a list or an
// object of valid JSON: 1 for an empty one.
func JSONMemberCount(text []byte) int {
	n, depth := 1, 0
	forEachOutsideStrings(text, func(c byte) {
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

// forEachOutsideStrings calls visit with each byte of valid JSON that is not in a string.
func forEachOutsideStrings(text []byte, visit func(c byte)) {
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString:
			visit(c)
		}
	}
}
