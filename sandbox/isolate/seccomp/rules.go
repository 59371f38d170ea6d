package seccomp

import (
	"maps"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// rules maps the number of a system call to the instructions that answer the call. When they
// start, the accumulator holds the call's number. Each path through them returns.
type rules map[int][]bpf.Instruction

// add sets the rule of the given calls, unless a call has a rule already.
func (r rules) add(rule []bpf.Instruction, calls ...int) {
	for _, nr := range calls {
		if r[nr] == nil {
			r[nr] = rule
		}
	}
}

// callRange is a range of call numbers with the same rule. It ends where the next range
// begins.
type callRange struct {
	first int
	rule  []bpf.Instruction
}

// compile returns a program that finds a call's rule by binary search. The search must be
// fast, because the kernel evaluates a new filter for each call number, in each child. Calls
// without a rule get the answer other.
func (r rules) compile(other bpf.Instruction) []bpf.Instruction {
	noRule := []bpf.Instruction{other}
	ranges := []callRange{{0, noRule}}
	add := func(first int, rule []bpf.Instruction) {
		if last := ranges[len(ranges)-1]; last.first == first {
			ranges = ranges[:len(ranges)-1]
		}
		if len(ranges) == 0 || !slices.Equal(ranges[len(ranges)-1].rule, rule) {
			ranges = append(ranges, callRange{first, rule})
		}
	}
	for _, nr := range slices.Sorted(maps.Keys(r)) {
		add(nr, r[nr])
		add(nr+1, noRule)
	}
	return search(ranges)
}

func search(ranges []callRange) []bpf.Instruction {
	if len(ranges) == 1 {
		return ranges[0].rule
	}
	half := len(ranges) / 2
	below, above := search(ranges[:half]), search(ranges[half:])
	first := uint32(ranges[half].first)
	// A conditional jump skips at most 255 instructions, an unconditional one any number.
	jump := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: first, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(below))},
	}
	if len(below) < 256 {
		jump = []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: first, SkipTrue: uint8(len(below))}}
	}
	return slices.Concat(jump, below, above)
}

var (
	allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	eperm = fail(unix.EPERM)
	// ask leaves a call to the process that has the listener of the filter.
	ask = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}
	// succeed returns success to the caller without making the call.
	succeed = bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO}
)

func fail(errno unix.Errno) bpf.Instruction {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// allowValues allows a call if the low 32 bits of an argument equal one of the values.
// Otherwise the call fails with EPERM.
func allowValues(arg uint32, values ...uint32) []bpf.Instruction {
	n := uint8(len(values))
	prog := []bpf.Instruction{bpf.LoadAbsolute{Off: arg, Size: 4}}
	for i, v := range values {
		prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: n - uint8(i)})
	}
	return append(prog, eperm, allow)
}

// require makes a call fail with EPERM unless the comparison cond of the low 32 bits of an
// argument, masked, with value is true. If it is true, the next instruction decides.
func require(arg, mask uint32, cond bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: arg, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask},
		bpf.JumpIf{Cond: cond, Val: value, SkipTrue: 1},
		eperm,
	}
}
