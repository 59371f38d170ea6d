package debugger

import "fmt"

// reference names something that a client can open: a frame's variables, the namespace, or an object.
type reference struct {
	isScope    bool
	frame      uint64 // of a scope, 0 for the namespace; otherwise the frame of expression
	object     uint64 // its number in the recording; 0 if only the program has it
	indexed    bool   // the parts are numbered
	columns    int    // number of named parts of a DataFrame, which come before the numbered ones
	expression string // evaluates to the object; "" if there is none
}

// references numbers, from 1, the references that clients have got since the last move. A reference keeps its number
// when a client asks for it again.
type references struct {
	list    []reference
	numbers map[reference]int
	bytes   int
}

// Limits of one position: 100 000 references with short expressions.
const (
	maxReferenceBytes = 25 << 20
	referenceOverhead = 250 // typical bytes of a reference without its expression
)

// number returns the number of a reference.
func (l *references) number(r reference) (int, error) {
	if n := l.numbers[r]; n > 0 {
		return n, nil
	}
	bytes := referenceOverhead + len(r.expression)
	if l.bytes+bytes > maxReferenceBytes {
		return 0, fmt.Errorf("%w: too many values were requested since the last move; move, or request fewer",
			ErrRequest)
	}
	if l.numbers == nil {
		l.numbers = map[reference]int{}
	}
	l.list = append(l.list, r)
	l.numbers[r] = len(l.list)
	l.bytes += bytes
	return len(l.list), nil
}

func (l *references) get(number int) (reference, error) {
	if number < 1 || number > len(l.list) {
		return reference{}, fmt.Errorf("%w: reference %d does not exist; references are valid until the next move",
			ErrRequest, number)
	}
	return l.list[number-1], nil
}
