package isolate

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A child that is no more has no pid, and 0 would move the service itself into the
// child's group, under its limits.
func TestNobodyJoinsForTheDead(t *testing.T) {
	dir := t.TempDir()
	procs := filepath.Join(dir, "1", "cgroup.procs")
	if err := os.Mkdir(filepath.Dir(procs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := &cgroup{in: &cgroups{version: 2, dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir}}, name: "1"}
	for _, pid := range []int{0, -1} {
		if err := g.join(pid); err == nil {
			t.Errorf("%d joined", pid)
		}
	}
	if text, _ := os.ReadFile(procs); len(text) > 0 {
		t.Errorf("%q was written", text)
	}
	if err := g.join(42); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(procs); string(text) != "42" {
		t.Errorf("%q was written for 42", text)
	}
}

// inGroup starts a shell command in the group, and ends it.
func inGroup(t *testing.T, g *cgroup, command string, kill bool) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "read go; "+command)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.join(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(stdin, "go\n"); err != nil {
		t.Error(err)
	}
	if kill {
		_ = cmd.Process.Kill()
	}
	_ = cmd.Wait()
}

// groups are the machine's, until the test's end; nil, and a report, where it gives none of a version
// that will do.
func groups(t *testing.T, versions ...int) *cgroups {
	t.Helper()
	c, err := openCgroups()
	if err == nil {
		t.Cleanup(c.remove)
	}
	if err != nil || !slices.Contains(versions, c.version) {
		t.Logf("report: no control groups of version %v here, so they are not tested: %v", versions, err)
		return nil
	}
	return c
}

// fresh is a group of this name, or one that was made before.
func fresh(t *testing.T, c *cgroups, name string) *cgroup {
	t.Helper()
	g, err := c.make(name)
	if err == nil {
		err = g.limit(bounds{32 << 20, 50, 16})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A group is used again where the next child can't tell, and only there.
func TestGroupsAreUsedAgain(t *testing.T) {
	c := groups(t, 1, 2)
	if c == nil {
		return
	}
	fresh := func(name string) *cgroup { t.Helper(); return fresh(t, c, name) }
	// emptied removes the group; the kernel may need a moment to see that it is empty.
	emptied := func(g *cgroup) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			if strings.TrimSpace(read(filepath.Join(g.dir("pids"), "pids.current"))) == "0" && g.memory() <= leftover {
				break
			}
		}
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	}
	first := fresh("1")
	inGroup(t, first, "head -c 8000000 /dev/zero | tail -n 1 >/dev/null", false)
	if peak := first.peak(); peak < 4<<20 {
		t.Errorf("the peak of 8 MB is %d", peak)
	}
	if err := first.unthrottle(); err != nil {
		t.Error(err)
	}
	emptied(first)
	second := fresh("2")
	if c.version == 2 {
		if second.name != "2" {
			t.Error("a group of version 2, whose peak stays, is used again")
		}
		return
	}
	if second.name != "1" || second.peak() > leftover {
		t.Errorf("the next child's group is %s, and its peak %d", second.name, second.peak())
	}
	// Whoever still has the first one does nothing to it.
	if err := first.unthrottle(); !errors.Is(err, errRemoved) || first.peak() != 0 || first.limit(bounds{64 << 20, 100, 99}) == nil {
		t.Errorf("what was removed is used: %v", err)
	}
	if quota := second.read("cpu", "cpu.cfs_quota_us"); quota != strconv.Itoa(period/2)+"\n" {
		t.Errorf("it may use %s us of CPU each second", quota)
	}
	inGroup(t, second, "tail /dev/zero", false)
	if second.oomKills() == 0 {
		t.Error("nothing was killed for want of memory")
	}
	emptied(second)
	third := fresh("3")
	if third.name != "3" || third.oomKills() != 0 {
		t.Errorf("the group %s is used again, after a process was killed in it", third.name)
	}
	// One that is not empty is left to the next remove.
	busy := exec.Command("sleep", "60")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	if err := third.join(busy.Process.Pid); err != nil {
		t.Error(err)
	}
	_ = third.remove()
	fourth := fresh("4")
	if fourth.name != "4" {
		t.Errorf("the group %s is used again, with a process in it", fourth.name)
	}
	_ = busy.Process.Kill()
	_ = busy.Wait()
	emptied(fourth)
	// What its process left in memory is charged to it still.
	shared, err := os.MkdirTemp("/dev/shm", "group")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(shared)
	fifth := fresh("5")
	inGroup(t, fifth, "head -c 4000000 /dev/zero >"+shared+"/left", false)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline) && strings.TrimSpace(read(filepath.Join(fifth.dir("pids"), "pids.current"))) != "0"; {
		time.Sleep(time.Millisecond)
	}
	_ = fifth.remove()
	if sixth := fresh("6"); sixth.name != "6" {
		t.Errorf("the group %s is used again, with %d bytes in it", sixth.name, sixth.memory())
	}
	_ = c.rmdir("6", 100)
	c.remove()
	for _, dir := range c.folders() {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if _, err := c.make("late"); !errors.Is(err, errRemoved) {
		t.Errorf("a group after the last: %v", err)
	}
}

// A group that is given up can't be joined by a child that is born too late, nor is it another's.
func TestNobodyJoinsWhatWasAbandoned(t *testing.T) {
	c := groups(t, 1) // of the other, children do not join by themselves
	if c == nil {
		return
	}
	g := fresh(t, c, "1")
	doors, err := g.doors()
	if err != nil || len(doors) != 3 {
		t.Fatalf("%d doors, %v", len(doors), err)
	}
	var late []*os.File
	for _, door := range doors {
		fd, err := unix.Dup(door)
		if err != nil {
			t.Fatal(err)
		}
		late = append(late, os.NewFile(uintptr(fd), "door"))
	}
	if err := g.abandon(); err != nil {
		t.Fatal(err)
	}
	for _, door := range late {
		cmd := exec.Command("sh", "-c", "echo 0 >&3")
		cmd.ExtraFiles = []*os.File{door}
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("a process joins by %d: %s", door.Fd(), out)
		}
		door.Close()
	}
	if other, err := c.make("2"); err != nil || other.name != "2" {
		t.Errorf("it is another's: %+v, %v", other, err)
	}
}
