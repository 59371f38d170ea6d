package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenByParent returns the processes of the machine by the number of their parent.
func childrenByParent() map[int][]int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if fields := statFields(path); fields != nil {
			parent, _ := strconv.Atoi(fields[1])
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

// statFields returns the fields of a stat file after the command's name: the first is the state, which
// proc_pid_stat(5) numbers 3.
func statFields(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // the process has ended
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// descendants calls visit for the service's process and all below it.
func (g *glasshouse) descendants(visit func(pid int, children []int)) {
	children := childrenByParent()
	var walk func(pid int)
	walk = func(pid int) {
		visit(pid, children[pid])
		for _, child := range children[pid] {
			walk(child)
		}
	}
	walk(g.cmd.Process.Pid)
}

// children returns the processes of sandboxes, waiting or in use: those that zygotes have forked.
func (g *glasshouse) children() (found []int) {
	g.descendants(func(pid int, children []int) {
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(command, []byte("zygote.py")) {
			found = append(found, children...)
		}
	})
	return found
}

// processCount counts the service's process and all below it.
func (g *glasshouse) processCount() (n int) {
	g.descendants(func(int, []int) { n++ })
	return n
}

// cpuTicks returns the user time of each process in clock ticks.
func cpuTicks(pids []int) map[int]int {
	ticks := map[int]int{}
	for _, pid := range pids {
		if fields := statFields(fmt.Sprintf("/proc/%d/stat", pid)); fields != nil {
			ticks[pid], _ = strconv.Atoi(fields[11])
		}
	}
	return ticks
}

// privateMegabytes returns the memory that each process shares with no other. Processes that have ended are
// left out.
func privateMegabytes(pids []int) map[int]float64 {
	sizes := map[int]float64{}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) == 3 && strings.HasPrefix(fields[0], "Private_") {
				kb, _ := strconv.ParseFloat(fields[1], 64)
				sizes[pid] += kb / 1024
			}
		}
	}
	return sizes
}
