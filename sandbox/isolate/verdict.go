package isolate

import (
	"maps"
	"slices"

	"golang.org/x/net/bpf"
)

// verdicts are what a filter answers to system calls, by their numbers: instructions
// that return in the end. They begin with the number in the accumulator.
type verdicts map[int][]bpf.Instruction

// add gives calls a verdict, but for those that have one: the first holds.
func (v verdicts) add(verdict []bpf.Instruction, calls ...int) {
	for _, nr := range calls {
		if v[nr] == nil {
			v[nr] = verdict
		}
	}
}

// span is a run of numbers with the same verdict, up to the next span.
type span struct {
	from    int
	verdict []bpf.Instruction
}

// tree finds a call's verdict in the number of steps that a binary search takes: the kernel
// tries a filter on every number there is when it is put on, for each child anew. All
// other calls get the verdict else.
func (v verdicts) tree(other bpf.Instruction) []bpf.Instruction {
	rest := []bpf.Instruction{other}
	spans := []span{{0, rest}}
	next := func(from int, verdict []bpf.Instruction) {
		if last := spans[len(spans)-1]; last.from == from {
			spans = spans[:len(spans)-1]
		}
		if len(spans) == 0 || !slices.Equal(spans[len(spans)-1].verdict, verdict) {
			spans = append(spans, span{from, verdict})
		}
	}
	for _, nr := range slices.Sorted(maps.Keys(v)) {
		next(nr, v[nr])
		next(nr+1, rest)
	}
	return search(spans)
}

func search(spans []span) []bpf.Instruction {
	if len(spans) == 1 {
		return spans[0].verdict
	}
	half := len(spans) / 2
	below, above := search(spans[:half]), search(spans[half:])
	// A conditional jump reaches 255 instructions far, a plain one anywhere.
	prog := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(spans[half].from), SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(below))},
	}
	if len(below) < 256 {
		prog = []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: uint32(spans[half].from), SkipTrue: uint8(len(below))}}
	}
	return slices.Concat(prog, below, above)
}
