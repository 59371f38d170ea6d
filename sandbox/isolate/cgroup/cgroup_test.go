package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/policy/polltest"
	"glasshouse/sandbox/isolate/procfs"
)

// To the kernel, pid 0 means the writing process, so Join(0) would put the service itself
// under a child's limits. A pid is 0 if the child has already died.
func TestJoinRejectsPIDsOfNoProcess(t *testing.T) {
	dir := t.TempDir()
	procs := filepath.Join(dir, "1", "cgroup.procs")
	if err := os.Mkdir(filepath.Dir(procs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := &Group{tree: &Tree{version: 2, dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir}}, name: "1"}
	for _, pid := range []int{0, -1} {
		if err := g.Join(pid); err == nil {
			t.Errorf("Join(%d): got no error", pid)
		}
	}
	if text, _ := os.ReadFile(procs); len(text) > 0 {
		t.Errorf("cgroup.procs: got %q, want nothing written", text)
	}
	if err := g.Join(42); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(procs); string(text) != "42" {
		t.Errorf("cgroup.procs: got %q, want 42", text)
	}
}

// runIn runs a shell command in the group and waits for its end.
func runIn(t *testing.T, g *Group, command string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read go; "+command)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Join(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(stdin, "go\n"); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}

// openTree opens a tree for the test. If this machine has no control groups, it logs that
// and returns nil.
func openTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Open()
	if err != nil {
		t.Logf("report: not tested, because this machine gives no control groups: %v", err)
		return nil
	}
	t.Cleanup(tree.Close)
	return tree
}

func makeGroup(t *testing.T, tree *Tree) *Group {
	t.Helper()
	g, err := tree.Make()
	if err == nil {
		err = g.SetLimits(Limits{MemoryBytes: 32 << 20, CPUPercent: 50, Tasks: 16})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func hasNoProcess(g *Group) bool {
	return procfs.ReadFile(filepath.Join(g.dir("pids"), "pids.current")) == "0\n"
}

func TestGroupIsReusedOnlyIfItLooksNew(t *testing.T) {
	tree := openTree(t)
	if tree == nil {
		return
	}
	release := func(g *Group) {
		t.Helper()
		polltest.Eventually(t, "the group is empty", func() bool {
			return hasNoProcess(g) && g.Memory() <= maxLeftover
		})
		g.Release()
	}
	first := makeGroup(t, tree)
	runIn(t, first, "head -c 8000000 /dev/zero | tail -n 1 >/dev/null")
	if peak := first.PeakMemory(); peak < 4<<20 {
		t.Errorf("peak of a process that holds 8 MB: got %d bytes", peak)
	}
	if err := first.LiftCPU(); err != nil {
		t.Error(err)
	}
	release(first)
	second := makeGroup(t, tree)
	if tree.version == 2 {
		if second.name == first.name {
			t.Error("a group of version 2, whose peak can't be reset, was reused")
		}
		return
	}
	if second.name != first.name || second.PeakMemory() > maxLeftover {
		t.Errorf("after %s: got the group %s with the peak %d, want the same group with none",
			first.name, second.name, second.PeakMemory())
	}
	err := first.LiftCPU()
	if !errors.Is(err, ErrReleased) || first.PeakMemory() != 0 || first.SetLimits(Limits{Tasks: 99}) == nil {
		t.Errorf("use after Release: got %v, want %v", err, ErrReleased)
	}
	if quota := second.read("cpu", "cpu.cfs_quota_us"); quota != strconv.Itoa(period/2)+"\n" {
		t.Errorf("CPU quota of a reused group: got %q, want %d", quota, period/2)
	}
	runIn(t, second, "tail /dev/zero")
	if second.OOMKills() == 0 {
		t.Error("OOMKills of a process that allocates without limit: got 0, want at least 1")
	}
	release(second)
	third := makeGroup(t, tree)
	if third.name == second.name || third.OOMKills() != 0 {
		t.Errorf("the group %s was reused after an OOM kill in it", third.name)
	}
	busy := exec.Command("sleep", "60")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := third.Join(busy.Process.Pid); err != nil {
		t.Error(err)
	}
	third.Release()
	fourth := makeGroup(t, tree)
	if fourth.name == third.name {
		t.Errorf("the group %s was reused with a process in it", fourth.name)
	}
	_ = busy.Process.Kill()
	_ = busy.Wait()
	release(fourth)
	// A file in shared memory stays charged to the group of the process that wrote it.
	shared, err := os.MkdirTemp("/dev/shm", "group")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(shared)
	fifth := makeGroup(t, tree)
	runIn(t, fifth, "head -c 4000000 /dev/zero >"+shared+"/left")
	polltest.Eventually(t, "the group has no process", func() bool { return hasNoProcess(fifth) })
	fifth.Release()
	sixth := makeGroup(t, tree)
	if sixth.name == fifth.name {
		t.Errorf("the group %s was reused with %d bytes in it", sixth.name, sixth.Memory())
	}
	sixth.Remove()
	tree.Close()
	for _, dir := range tree.folders() {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("after Close: %s is left: %v", dir, err)
		}
	}
	if _, err := tree.Make(); !errors.Is(err, ErrReleased) {
		t.Errorf("Make after Close: got %v, want %v", err, ErrReleased)
	}
}

// Groups that are not reused are removed without another call, also those whose last process ends after Release. Those
// that are late are counted, and logged once.
func TestReleasedGroupsAreRemoved(t *testing.T) {
	tree := openTree(t)
	if tree == nil {
		return
	}
	logged := make(chan string, 10)
	tree.Log = func(format string, args ...any) { logged <- fmt.Sprintf(format, args...) }
	held := makeGroup(t, tree)
	busy := exec.Command("sleep", "60")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := held.Join(busy.Process.Pid); err != nil {
		t.Error(err)
	}
	groups := []*Group{held}
	for range 2 * maxSpares {
		groups = append(groups, makeGroup(t, tree))
	}
	for _, g := range groups {
		g.Release()
	}
	left := func() (names []string) {
		for _, dir := range tree.folders() {
			for _, g := range groups {
				if _, err := os.Stat(filepath.Join(dir, g.name)); err == nil {
					names = append(names, filepath.Join(dir, g.name))
				}
			}
		}
		return names
	}
	spares := 0
	if tree.version == 1 {
		spares = maxSpares
	}
	folders := len(tree.folders())
	polltest.Eventually(t, "groups are removed", func() bool { return len(left()) <= (spares+1)*folders })
	if names := left(); len(names) != (spares+1)*folders {
		t.Errorf("after Release: got %v, want %d spare groups and the one with a process", names, spares)
	}
	polltest.Eventually(t, "a group is late", func() bool { return tree.Late() > 0 })
	if late := tree.Late(); late != 1 {
		t.Errorf("got %d late groups, want the one with a process", late)
	}
	_ = busy.Process.Kill()
	_ = busy.Wait()
	polltest.Eventually(t, "the late group is removed", func() bool {
		return len(left()) <= spares*folders && tree.Late() == 0
	})
	if names := left(); len(names) != spares*folders {
		t.Errorf("after the last process has ended: got %v, want %d spare groups", names, spares)
	}
	if late := tree.Late(); late != 0 {
		t.Errorf("after the last process has ended: got %d late groups, want none", late)
	}
	if len(logged) != 1 || !strings.Contains(<-logged, "busy") {
		t.Errorf("got %d lines in the log, want one with the reason", len(logged))
	}
}

// A child may start after its group was removed. It must not join another child's group.
func TestRemovedGroupCannotBeJoined(t *testing.T) {
	tree := openTree(t)
	if tree == nil || tree.version == 2 { // on version 2 children do not join by themselves
		return
	}
	g := makeGroup(t, tree)
	fds, err := g.JoinFDs()
	if err != nil || len(fds) != 3 {
		t.Fatalf("JoinFDs: got %d descriptors and %v, want 3", len(fds), err)
	}
	var files []*os.File
	for _, fd := range fds {
		own, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, os.NewFile(uintptr(own), "tasks"))
	}
	g.Remove()
	for _, file := range files {
		cmd := exec.Command("sh", "-c", "echo 0 >&3")
		cmd.ExtraFiles = []*os.File{file}
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("a process joined a removed group: %s", out)
		}
		file.Close()
	}
	if other, err := tree.Make(); err != nil || other.name == g.name {
		t.Errorf("Make after Remove: got %+v, %v, want another group", other, err)
	}
}

// fillSockets fills the buffers of TCP connections that nobody reads, and exits when stdin ends.
const fillSockets = `
import select, socket, sys
sys.stdin.readline()
listener, held, poll = socket.create_server(("127.0.0.1", 0)), {}, select.poll()
for _ in range(40):
    ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
    ends[0].setblocking(False)
    held[ends[0].fileno()] = ends
    poll.register(ends[0], select.POLLOUT)
while ready := poll.poll(500):
    for number, _ in ready:
        held[number][0].send(bytes(1 << 20))
print("filled", flush=True)
sys.stdin.read()
`

// On version 1 the memory limit does not count the buffers of TCP sockets, which have a limit of their own. Version 2
// counts them as memory.
func TestTCPBuffersAreCountedAndLimited(t *testing.T) {
	tree := openTree(t)
	if tree == nil {
		return
	}
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_PYTHON must name an interpreter; scripts/test sets it")
	}
	used := map[int64]int64{} // by limit
	const low, high = 4 << 20, 256 << 20
	for _, limit := range []int64{low, high} {
		g, err := tree.Make()
		if err != nil {
			t.Fatal(err)
		}
		if err := g.SetLimits(Limits{MemoryBytes: 512 << 20, CPUPercent: 200, Tasks: 16, TCPBytes: limit}); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(python, "-c", fillSockets)
		stdin, inErr := cmd.StdinPipe()
		stdout, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start(), g.Join(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		before := g.Memory()
		_, _ = io.WriteString(stdin, "go\n")
		if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "filled\n" {
			t.Fatalf("fill sockets: got %q, %v", line, err)
		}
		used[limit] = g.Memory() - before
		if peak := g.PeakMemory(); peak < g.Memory() {
			t.Errorf("the peak: got %d bytes, want at least the %d in use", peak, g.Memory())
		}
		_ = stdin.Close()
		_ = cmd.Wait()
		g.Release()
	}
	if tree.Version() == 1 && used[low] > used[high]/2 || used[high] < 32<<20 {
		t.Errorf("memory of a process with full sockets, by limit: got %v, want at least 32 MiB, "+
			"and with the low limit of version 1 at most half of it", used)
	}
}

// The code of packages makes a child join its group, so the service looks whether it has.
func TestHoldsSaysWhetherAProcessHasJoined(t *testing.T) {
	tree := openTree(t)
	if tree == nil {
		return
	}
	g, other := makeGroup(t, tree), makeGroup(t, tree)
	defer g.Remove()
	defer other.Remove()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	pid := cmd.Process.Pid
	if g.Holds(pid) {
		t.Error("before it joins: got true")
	}
	if err := g.write("pids", "cgroup.procs", strconv.Itoa(pid)); err != nil {
		t.Fatal(err)
	}
	if tree.version == 1 && g.Holds(pid) {
		t.Error("with one of three controllers: got true")
	}
	if err := g.Join(pid); err != nil {
		t.Fatal(err)
	}
	if !g.Holds(pid) {
		t.Error("after it has joined: got false")
	}
	if other.Holds(pid) || g.Holds(0) {
		t.Errorf("got %v in another group and %v for the pid 0, want false", other.Holds(pid), g.Holds(0))
	}
}
