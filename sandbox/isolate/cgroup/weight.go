package cgroup

import "strconv"

// The kernel's limits of cpu.shares, the weight of a group among its siblings in version 1, and its default.
const (
	minShares     = 2
	defaultShares = 1024
	maxShares     = 1 << 18
)

// The least value and the default of cpu.weight, the weight in version 2.
const (
	minWeight     = 1
	defaultWeight = 100
)

// weigh gives the tree the weight of one thread on each CPU, relative to the threads of other groups.
// The kernel divides the weight of a group among the CPUs where its processes run, so guests
// with the weight of one thread would wait behind every other thread, also those with a higher nice
// value. Version 2 compares the tree with other groups only, for which the same holds.
func (t *Tree) weigh(cpus int) error {
	if t.version == 2 {
		return nil
	}
	return writeFile(t.dirs["cpu"], "cpu.shares", strconv.Itoa(min(defaultShares*cpus, maxShares)))
}

// Divide gives the group 1/n of the default weight. Groups that compete for the CPUs get CPU
// time in proportion to their weights, so n groups with Divide(n) get as much as one group
// with the default weight. n is at least 1.
func (g *Group) Divide(n int) error {
	return g.use(func() error {
		if n == max(g.divisor, 1) {
			return nil
		}
		value, file := max(defaultShares/n, minShares), "cpu.shares"
		if g.tree.version == 2 {
			value, file = max(defaultWeight/n, minWeight), "cpu.weight"
		}
		err := g.write("cpu", file, strconv.Itoa(value))
		if err == nil {
			g.divisor = n
		}
		return err
	})
}
