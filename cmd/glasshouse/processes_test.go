package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process identifies a process. The time of its start tells it from a later process of the same number.
type process struct {
	pid   int
	start string
}

// processes returns the parent of every running process. Zombies are left out.
func processes() map[process]int {
	parents := map[process]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		end := strings.LastIndex(string(text), ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(string(text)[end+2:]) // from the state, which proc_pid_stat(5) numbers 3
		if fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		parents[process{pid, fields[19]}], _ = strconv.Atoi(fields[1])
	}
	return parents
}

// descendants returns all processes below one.
func descendants(pid int) (all []process) {
	parents := processes()
	known := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for p, parent := range parents {
			if known[parent] && !known[p.pid] {
				known[p.pid], grown = true, true
				all = append(all, p)
			}
		}
	}
	return all
}

// alive returns those of a list that still run.
func alive(list []process) []process {
	parents := processes()
	return slices.DeleteFunc(slices.Clone(list), func(p process) bool { _, runs := parents[p]; return !runs })
}

// childrenOf returns the children of a process whose command line contains a text.
func childrenOf(pid int, text string) (pids []int) {
	for p, parent := range processes() {
		if parent != pid {
			continue
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); strings.Contains(string(line), text) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// zygotesOf returns the zygotes of a service whose command line or configuration contains a text. With namespaces they
// are children of their launchers.
func zygotesOf(pid int, text string) []int {
	const program = "/zygote.py"
	zygotes := childrenOf(pid, program)
	for _, launcher := range childrenOf(pid, "glasshouse-launcher") {
		zygotes = append(zygotes, childrenOf(launcher, program)...)
	}
	return slices.DeleteFunc(zygotes, func(zygote int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", zygote))
		configuration, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", zygote))
		return !bytes.Contains(line, []byte(text)) && !bytes.Contains(configuration, []byte(text))
	})
}

// cgroupsOf returns the cgroups that a service with this process number has made.
func cgroupsOf(pid int) (dirs []string) {
	own, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Split(string(own), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) < 3 {
			continue
		}
		for _, root := range []string{filepath.Join(parts[1], parts[2]), parts[1], parts[2]} {
			for _, pattern := range []string{"", "*"} {
				found, _ := filepath.Glob(
					filepath.Join("/sys/fs/cgroup", root, fmt.Sprintf("glasshouse-%d-*", pid), pattern),
				)
				for _, dir := range found {
					if info, err := os.Stat(dir); err == nil && info.IsDir() {
						dirs = append(dirs, dir)
					}
				}
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// countFiles returns how many paths match a pattern.
func countFiles(pattern string) int {
	found, _ := filepath.Glob(pattern)
	return len(found)
}
