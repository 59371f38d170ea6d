package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What the kernel says of the service's processes, by /proc.

// descendants are the service and all that it has started, by parent.
func (s *service) descendants() map[int][]int {
	of := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if fields := statOf(path); fields != nil {
			parent, _ := strconv.Atoi(fields[1])
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			of[parent] = append(of[parent], pid)
		}
	}
	return of
}

// statOf returns the fields of a stat file after the command's name: the state is
// the first (proc_pid_stat(5) numbers it 3).
func statOf(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // it has ended
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// children are the sandboxes' processes, those that wait and those in use: what the
// warm interpreters have forked.
func (s *service) children() []int {
	of := s.descendants()
	var found []int
	var walk func(pid int)
	walk = func(pid int) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		for _, child := range of[pid] {
			if bytes.Contains(command, []byte("zygote.py")) {
				found = append(found, child)
			}
			walk(child)
		}
	}
	walk(s.cmd.Process.Pid)
	return found
}

// all counts the processes below the service, and itself.
func (s *service) all() int {
	of := s.descendants()
	n := 0
	var walk func(pid int)
	walk = func(pid int) {
		n++
		for _, child := range of[pid] {
			walk(child)
		}
	}
	walk(s.cmd.Process.Pid)
	return n
}

// cpuTicks is the user time of each process, in clock ticks.
func cpuTicks(pids []int) map[int]int {
	ticks := map[int]int{}
	for _, pid := range pids {
		if fields := statOf(fmt.Sprintf("/proc/%d/stat", pid)); fields != nil {
			ticks[pid], _ = strconv.Atoi(fields[11])
		}
	}
	return ticks
}

// privateMB is the memory that each process shares with no other; those that have ended are left out.
func privateMB(pids []int) map[int]float64 {
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
