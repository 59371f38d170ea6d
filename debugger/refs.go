package debugger

import "fmt"

// ref is what a variablesReference means until the next move: a scope, or an object by
// its number and by the expression that comes to it.
type ref struct {
	scope      bool
	frame      uint64
	object     uint64
	indexed    bool // it has a length, and its parts are numbered
	expression string
}

// refs are those of a session: each has one number, however often it is asked for.
type refs struct {
	list    []ref
	numbers map[ref]int
	bytes   int
}

// The bounds of one stop: of 100 000 refs with short expressions.
const (
	maxRefs   = 25 << 20 // bytes
	refWeight = 250      // of a ref without its expression
)

// refer gives a number to something that can be opened. The caller holds mu.
func (s *Session) refer(r ref) (int, error) {
	if n := s.refs.numbers[r]; n > 0 {
		return n, nil
	}
	weight := refWeight + len(r.expression)
	if s.refs.bytes+weight > maxRefs {
		return 0, fmt.Errorf("%w: too many values were asked for since the last move; move, or ask for less", ErrRequest)
	}
	if s.refs.numbers == nil {
		s.refs.numbers = map[ref]int{}
	}
	s.refs.list = append(s.refs.list, r)
	s.refs.numbers[r] = len(s.refs.list)
	s.refs.bytes += weight
	return len(s.refs.list), nil
}

func (s *Session) referred(number int) (ref, error) {
	if number < 1 || number > len(s.refs.list) {
		return ref{}, fmt.Errorf("%w: there is no variablesReference %d since the last move", ErrRequest, number)
	}
	return s.refs.list[number-1], nil
}
