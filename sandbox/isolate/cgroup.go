package isolate

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups is the subtree in which each child has a group of its own, on version
// 1 (one folder a controller) or 2 (one folder).
type cgroups struct {
	version int
	dirs    map[string]string // controller to our folder: memory, pids, cpu; on v2 all the same

	mu     sync.Mutex
	late   []string  // groups that were still busy when they were to go
	spare  []*cgroup // of nobody, for the next children
	closed bool      // no more of them
}

// cgroup is one child's group.
type cgroup struct {
	in    *cgroups
	name  string
	quota string // of CPU, as the kernel takes it
	held  bounds // what it was last held to

	mu   sync.Mutex // held while its files are used
	over bool       // it was removed: its files are gone, or another child's
	kept files      // open, for the next child as well
}

// bounds of a group: memory in bytes, CPU in percent of one core, and the number of
// threads and processes together.
type bounds struct {
	memory     int64
	cpu, tasks int
}

// opened counts the subtrees of this process: each Isolator has one.
var opened atomic.Int64

// openCgroups finds what this process may use by doing it: it makes a folder
// and sets a limit. The error says why it is not to be.
func openCgroups() (*cgroups, error) {
	own := map[string]string{}
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		part := strings.SplitN(lines.Text(), ":", 3)
		for _, controller := range strings.Split(part[1], ",") {
			own[controller] = part[2]
		}
	}
	name := fmt.Sprintf("glasshouse-%d-%d", os.Getpid(), opened.Add(1))
	var c *cgroups
	if _, v1 := own["memory"]; v1 {
		c = &cgroups{version: 1, dirs: map[string]string{}}
		for _, controller := range controllers {
			root := filepath.Join("/sys/fs/cgroup", controller)
			if _, err := os.Stat(filepath.Join(root, own[controller])); err != nil {
				own[controller] = "/"
			}
			c.dirs[controller] = filepath.Join(root, own[controller], name)
		}
	} else {
		base := filepath.Join("/sys/fs/cgroup", own[""])
		if os.Geteuid() == 0 {
			base = "/sys/fs/cgroup" // a group with processes cannot have controllers below it
		}
		c = &cgroups{version: 2, dirs: map[string]string{}}
		for _, controller := range controllers {
			c.dirs[controller] = filepath.Join(base, name)
		}
		for _, dir := range []string{base, filepath.Join(base, name)} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			if err := write(dir, "cgroup.subtree_control", "+memory +pids +cpu"); err != nil {
				_ = os.Remove(filepath.Join(base, name))
				return nil, err
			}
		}
	}
	for _, dir := range c.folders() {
		sweep(filepath.Dir(dir))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.remove()
			return nil, err
		}
	}
	probe, err := c.make("probe")
	if err == nil {
		err = probe.limit(bounds{64 << 20, 50, 16})
		probe.kept.close()
		err = errors.Join(err, c.rmdir(probe.name, 100))
	}
	if err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

func (c *cgroups) folders() []string {
	if c.version == 2 {
		return []string{c.dirs["memory"]}
	}
	return []string{c.dirs["memory"], c.dirs["pids"], c.dirs["cpu"]}
}

func (c *cgroups) remove() {
	c.mu.Lock()
	names := c.late
	for _, g := range c.spare {
		g.kept.close()
		names = append(names, g.name)
	}
	c.late, c.spare, c.closed = nil, nil, true
	c.mu.Unlock()
	for _, name := range names {
		_ = c.rmdir(name, 1000)
	}
	for _, dir := range c.folders() {
		_ = os.Remove(dir)
	}
}

// sweep removes what services that were killed left: groups named after
// processes that are no more.
func sweep(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, "glasshouse-*"))
	for _, dir := range left {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "glasshouse-"), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		children, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, child := range children {
			_ = os.Remove(child) // folders only: the kernel's own files refuse
		}
		_ = os.Remove(dir)
	}
}

// make returns a group without a process: one of this name, or one that was made before.
func (c *cgroups) make(name string) (*cgroup, error) {
	g, closed := c.again()
	if g != nil {
		return g, nil
	}
	if closed {
		return nil, errRemoved
	}
	for _, dir := range c.folders() {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return &cgroup{in: c, name: name}, nil
}

func (g *cgroup) dir(controller string) string { return filepath.Join(g.in.dirs[controller], g.name) }

// errGone is a child that died before it had its limits.
var errGone = errors.New("the child died as soon as it was forked")

// doors are the descriptors by which a process of one thread joins the group, with a 0 that it
// writes there; they are the group's. On version 1 that takes the kernel's lock of one process, where
// join takes that of all forks, execs and exits, and waits until all CPUs have seen it. None on version 2.
func (g *cgroup) doors() (fds []int, err error) {
	if g.in.version == 2 {
		return nil, nil
	}
	err = g.within(func() error {
		for _, controller := range controllers {
			fd, err := g.open(controller, "tasks")
			if err != nil {
				return err
			}
			fds = append(fds, fd)
		}
		return nil
	})
	return fds, err
}

var controllers = []string{"memory", "pids", "cpu"}

// join moves the process with this pid, as the host sees it, into the group.
func (g *cgroup) join(pid int) error {
	if pid <= 0 { // the kernel takes 0 for who writes it: the service itself
		return errGone
	}
	return g.within(func() error {
		for _, controller := range controllers[:len(g.in.folders())] {
			if err := g.write(controller, "cgroup.procs", strconv.Itoa(pid)); err != nil {
				return err
			}
		}
		return nil
	})
}

// within does something with the group's files, unless it was removed.
func (g *cgroup) within(use func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return errRemoved
	}
	return use()
}

var errRemoved = errors.New("the control group is removed")

// limit holds the group to bounds, unless it is held to them already.
func (g *cgroup) limit(b bounds) error { return g.within(func() error { return g.hold(b) }) }

func (g *cgroup) hold(b bounds) error {
	if b == g.held {
		return nil
	}
	memory, quota := strconv.FormatInt(b.memory, 10), strconv.Itoa(b.cpu*period/100)
	var err error
	if g.in.version == 2 {
		g.quota = quota + " " + strconv.Itoa(period)
		_ = write(g.dir("memory"), "memory.swap.max", "0") // absent without swap
		err = write(g.dir("memory"), "memory.max", memory)
	} else {
		g.quota = quota
		if b.memory > g.held.memory && g.held.memory > 0 { // never less than memory alone
			_ = write(g.dir("memory"), "memory.memsw.limit_in_bytes", memory)
		}
		err = errors.Join(
			write(g.dir("memory"), "memory.limit_in_bytes", memory),
			write(g.dir("cpu"), "cpu.cfs_period_us", strconv.Itoa(period)))
	}
	err = errors.Join(err, g.share(), write(g.dir("pids"), "pids.max", strconv.Itoa(b.tasks)))
	if g.in.version == 1 {
		_ = write(g.dir("memory"), "memory.memsw.limit_in_bytes", memory) // absent without swap accounting
	}
	if g.held = b; err != nil {
		g.held = bounds{} // or some of both
	}
	return err
}

// period is that of the CPU quota in microseconds: the share is of each second.
const period = 1_000_000

// throttle holds the group to its share of CPU; unthrottle lets it have all.
func (g *cgroup) throttle() error { return g.within(g.share) }

func (g *cgroup) share() error {
	return g.write("cpu", g.in.file("cpu.cfs_quota_us", "cpu.max"), g.quota)
}

func (g *cgroup) unthrottle() error {
	return g.within(func() error {
		return g.write("cpu", g.in.file("cpu.cfs_quota_us", "cpu.max"), g.in.file("-1", "max"))
	})
}

// oomKills is how often the kernel killed in this group for want of memory.
func (g *cgroup) oomKills() (n int64) {
	_ = g.within(func() error { n = g.killed(); return nil })
	return n
}

func (g *cgroup) killed() int64 {
	for _, line := range strings.Split(g.read("memory", g.in.file("memory.oom_control", "memory.events")), "\n") {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			v, _ := strconv.ParseInt(n, 10, 64)
			return v
		}
	}
	return 0
}

// memory is what the group has now, in bytes.
func (g *cgroup) memory() int64 {
	return g.number(g.in.file("memory.usage_in_bytes", "memory.current"))
}

// peak is the most memory that the group had, in bytes; 0 where it is removed.
func (g *cgroup) peak() int64 {
	return g.number(g.in.file("memory.max_usage_in_bytes", "memory.peak"))
}

// number is what a file of memory says.
func (g *cgroup) number(file string) (n int64) {
	_ = g.within(func() (err error) {
		n, err = strconv.ParseInt(strings.TrimSpace(g.read("memory", file)), 10, 64)
		return err
	})
	return n
}

// file is the name of one in version 1, or in version 2.
func (c *cgroups) file(one, two string) string {
	if c.version == 2 {
		return two
	}
	return one
}

// remove takes the group away, or makes it another child's; its processes must be gone, and the kernel may
// need a moment more to see that they are. On a busy machine that is a long one: the
// group is then left to the next remove.
func (g *cgroup) remove() error { return g.end(true) }

// abandon takes the group away though a process may be about to join it, which then can't.
func (g *cgroup) abandon() error { return g.end(false) }

// end is remove, or abandon where the group may not be used again.
func (g *cgroup) end(again bool) error {
	g.mu.Lock()
	g.over = true
	reused := again && g.reuse()
	if !reused {
		g.kept.close()
	}
	g.mu.Unlock()
	c := g.in
	c.mu.Lock()
	names := c.late
	c.late = nil
	c.mu.Unlock()
	if !reused {
		names = append(names, g.name)
	}
	var failed error
	for _, name := range names {
		tries := 1
		if name == g.name {
			tries = 100
		}
		if err := c.rmdir(name, tries); errors.Is(err, unix.EBUSY) {
			c.mu.Lock()
			c.late = append(c.late, name)
			c.mu.Unlock()
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// rmdir removes the folders of a group, trying so often, a millisecond apart.
func (c *cgroups) rmdir(name string, tries int) error {
	for _, dir := range c.folders() {
		path := filepath.Join(dir, name)
		err := os.Remove(path)
		for try := 1; errors.Is(err, unix.EBUSY) && try < tries; try++ {
			time.Sleep(time.Millisecond)
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
