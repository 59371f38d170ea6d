// Package cgroup gives each child process its own control group, on version 1 or
// version 2 of the kernel's interface.
//
//	tree, err := cgroup.Open()     // a subtree of this process's own
//	group, err := tree.Make()
//	err = group.SetLimits(cgroup.Limits{MemoryBytes: 512 << 20, CPUPercent: 100, Tasks: 33})
//	err = group.Join(pid)
//	group.Release()                // after the process has ended
//	tree.Close()
//
// On version 1, creating and removing a group takes longer than all other steps of starting
// a child together. Therefore Release keeps up to maxSpares empty groups for the next
// children, and a group keeps its files open.
package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/procfs"
)

// Tree is the subtree in which each child has a Group: one folder for each controller
// on version 1, and one folder on version 2.
type Tree struct {
	// Log gets the reason why groups cannot be removed, once until all are; nil: not. Set it before the first Release.
	Log func(format string, args ...any)

	version int
	dirs    map[string]string // by controller; the same folder three times on version 2
	serial  atomic.Int64      // number of groups made

	maxMemory int64 // bytes of all groups together; 0: no limit
	maxTasks  int   // of all groups together; 0: no limit
	maxSpares int
	all       Group // the group that has all others

	mu      sync.Mutex
	ended   []endedGroup // released groups that are not removed yet
	due     time.Time    // when they are removed at the latest
	removal *time.Timer  // removes them; nil: none is pending
	spares  []*Group     // empty groups for the next children
	closed  bool
	late    int // of ended: the groups that could not be removed for long

	removing sync.Mutex // held while ended groups are removed
}

// Group is the control group of one child.
type Group struct {
	tree   *Tree
	name   string
	quota  string // of CPU, in the kernel's format
	limits Limits // as last set

	mu       sync.Mutex // held while the group's files are used
	released bool       // its files are closed, or belong to another Group
	files    openFiles
	isClosed bool // files are not kept open
	divisor  int  // as last set by Divide; 0: never
}

// Limits are the limits of a group.
type Limits struct {
	MemoryBytes int64
	CPUPercent  int // of one core
	Tasks       int // threads and processes together

	// TCPBytes limits the buffers of the group's TCP sockets. Version 1 counts them only if it is set, and does
	// not add them to MemoryBytes. Version 2 always counts them in MemoryBytes, and ignores TCPBytes.
	TCPBytes int64
}

// The files of version 1 with the memory of TCP sockets.
const (
	tcpLimitFile = "memory.kmem.tcp.limit_in_bytes"
	tcpUsageFile = "memory.kmem.tcp.usage_in_bytes"
	tcpPeakFile  = "memory.kmem.tcp.max_usage_in_bytes"
)

// ErrReleased is the error for the use of a Group after Release, or of a Tree after Close.
var ErrReleased = errors.New("the control group is removed")

var controllers = []string{"memory", "pids", "cpu"}

// period is the period of the CPU quota, in microseconds.
const period = 1_000_000

// treeCount counts the trees of this process, because each needs a name.
var treeCount atomic.Int64

// Open makes a subtree below this process's own group, and checks that it works by
// making a group with limits. The error says why this process can't have a subtree.
func Open() (*Tree, error) {
	own, err := ownGroups()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("glasshouse-%d-%d", os.Getpid(), treeCount.Add(1))
	t := &Tree{dirs: map[string]string{}, maxSpares: maxSpares}
	t.all.tree = t
	if _, ok := own["memory"]; ok {
		t.version = 1
		for _, controller := range controllers {
			root := filepath.Join("/sys/fs/cgroup", controller)
			if _, err := os.Stat(filepath.Join(root, own[controller])); err != nil {
				own[controller] = "/"
			}
			t.dirs[controller] = filepath.Join(root, own[controller], name)
		}
	} else {
		t.version = 2
		base := filepath.Join("/sys/fs/cgroup", own[""])
		if os.Geteuid() == 0 {
			base = "/sys/fs/cgroup" // a group that contains processes can't have controllers below it
		} else if filepath.Base(base) == serviceGroup {
			base = filepath.Dir(base)
		}
		for _, controller := range controllers {
			t.dirs[controller] = filepath.Join(base, name)
		}
		err := delegate(base, filepath.Join(base, name))
		if errors.Is(err, unix.EBUSY) {
			if err = vacate(base, os.Getpid()); err == nil {
				err = delegate(base, filepath.Join(base, name))
			}
		}
		if err != nil {
			return nil, err
		}
	}
	for _, dir := range t.folders() {
		removeStale(filepath.Dir(dir))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Close()
			return nil, err
		}
	}
	_ = t.weigh(runtime.NumCPU()) // otherwise guests only wait longer
	probe, err := t.Make()
	if err == nil {
		err = probe.SetLimits(Limits{MemoryBytes: 64 << 20, CPUPercent: 50, Tasks: 16})
		probe.Remove()
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// ownGroups returns this process's groups by controller; the key "" has the group of version 2.
func ownGroups() (map[string]string, error) {
	file, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	own := map[string]string{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		part := strings.SplitN(lines.Text(), ":", 3) // hierarchy:controllers:path
		for controller := range strings.SplitSeq(part[1], ",") {
			own[controller] = part[2]
		}
	}
	return own, lines.Err()
}

// delegate makes both folders, and enables the controllers for the groups in them.
func delegate(base, subtree string) error {
	for _, dir := range []string{base, subtree} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := writeFile(dir, "cgroup.subtree_control", "+memory +pids +cpu"); err != nil {
			_ = os.Remove(subtree)
			return err
		}
	}
	return nil
}

// removeStale removes the subtrees of services that were killed: those named after
// processes that no longer exist.
func removeStale(parent string) {
	trees, _ := filepath.Glob(filepath.Join(parent, "glasshouse-*"))
	for _, dir := range trees {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "glasshouse-"), "-")
		pid, err := strconv.Atoi(owner)
		if err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		groups, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, group := range groups {
			_ = os.Remove(group) // removes the folders; the kernel refuses to remove its control files
		}
		_ = os.Remove(dir)
	}
}

// Version returns 1 or 2.
func (t *Tree) Version() int { return t.version }

func (t *Tree) folders() []string {
	if t.version == 2 {
		return []string{t.dirs["memory"]}
	}
	return []string{t.dirs["memory"], t.dirs["pids"], t.dirs["cpu"]}
}

// file returns the name of a file, which differs between versions 1 and 2.
func (t *Tree) file(v1, v2 string) string {
	if t.version == 2 {
		return v2
	}
	return v1
}

// Close removes the tree and its groups. They must not contain a process.
func (t *Tree) Close() {
	t.mu.Lock()
	t.closed = true
	if t.removal != nil {
		t.removal.Stop()
	}
	t.mu.Unlock()
	t.removing.Lock()
	defer t.removing.Unlock()
	t.mu.Lock()
	ended := t.ended
	for _, g := range t.spares {
		g.files.close()
		ended = append(ended, endedGroup{name: g.name})
	}
	t.ended, t.spares = nil, nil
	t.mu.Unlock()
	t.all.CloseFiles()
	for _, g := range ended {
		_ = t.rmdir(g.name, 1000)
	}
	for _, dir := range t.folders() {
		_ = os.Remove(dir)
	}
}

// Make returns a group without processes: a spare one, or a new one.
func (t *Tree) Make() (*Group, error) {
	g, closed := t.takeSpare()
	if g != nil {
		return g, nil
	}
	if closed {
		return nil, ErrReleased
	}
	name := strconv.FormatInt(t.serial.Add(1), 10)
	for _, dir := range t.folders() {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return &Group{tree: t, name: name}, nil
}

// rmdir removes the folders of a group. While a folder is busy it tries up to tries
// times, one millisecond apart.
func (t *Tree) rmdir(name string, tries int) error {
	for _, dir := range t.folders() {
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

// Name returns the name of the group's folder. A reused group keeps its name.
func (g *Group) Name() string { return g.name }

func (g *Group) dir(controller string) string { return filepath.Join(g.tree.dirs[controller], g.name) }

// JoinFDs returns the descriptors through which a single-threaded process joins the
// group: it writes "0" to each. The group closes them. On version 1 this takes a lock of
// one process, while Join takes the lock of all forks, execs and exits of the machine,
// and waits for every CPU. On version 2 JoinFDs returns none: use Join.
func (g *Group) JoinFDs() (fds []int, err error) {
	if g.tree.version == 2 {
		return nil, nil
	}
	err = g.use(func() error {
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

// Join moves a process into the group. pid is its number in this process's namespace.
func (g *Group) Join(pid int) error {
	if pid <= 0 { // to the kernel, 0 means the writing process, which is the service itself
		return fmt.Errorf("join a control group: no process has the pid %d", pid)
	}
	return g.use(func() error {
		for _, controller := range controllers[:len(g.tree.folders())] {
			if err := g.write(controller, "cgroup.procs", strconv.Itoa(pid)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Holds reports whether a process is in the group, with every controller.
func (g *Group) Holds(pid int) bool {
	n := 0
	for line := range strings.SplitSeq(procfs.ReadFile("/proc/"+strconv.Itoa(pid)+"/cgroup"), "\n") {
		for _, dir := range g.tree.folders() {
			if strings.HasSuffix(line, "/"+filepath.Base(dir)+"/"+g.name) {
				n++
				break
			}
		}
	}
	return n == len(g.tree.folders())
}

// use calls f with the group's files locked, unless the group was released.
func (g *Group) use(f func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released {
		return ErrReleased
	}
	defer g.closeUnkept()
	return f()
}

// SetLimits sets the group's limits, unless they are set already.
func (g *Group) SetLimits(l Limits) error { return g.use(func() error { return g.setLimits(l) }) }

func (g *Group) setLimits(l Limits) error {
	if l == g.limits {
		return nil
	}
	memory, quota := strconv.FormatInt(l.MemoryBytes, 10), strconv.Itoa(l.CPUPercent*period/100)
	var err error
	if g.tree.version == 2 {
		g.quota = quota + " " + strconv.Itoa(period)
		_ = writeFile(g.dir("memory"), "memory.swap.max", "0") // the file is absent without swap
		err = writeFile(g.dir("memory"), "memory.max", memory)
	} else {
		g.quota = quota
		if l.MemoryBytes > g.limits.MemoryBytes && g.limits.MemoryBytes > 0 { // the kernel keeps memsw at or above memory
			_ = writeFile(g.dir("memory"), "memory.memsw.limit_in_bytes", memory)
		}
		err = errors.Join(
			writeFile(g.dir("memory"), "memory.limit_in_bytes", memory),
			writeFile(g.dir("cpu"), "cpu.cfs_period_us", strconv.Itoa(period)))
	}
	err = errors.Join(err, g.setQuota(), writeFile(g.dir("pids"), "pids.max", strconv.Itoa(l.Tasks)))
	if g.tree.version == 1 && l.TCPBytes > 0 {
		tcpErr := writeFile(g.dir("memory"), tcpLimitFile, strconv.FormatInt(l.TCPBytes, 10))
		if !errors.Is(tcpErr, os.ErrNotExist) { // absent in kernels that do not count sockets
			err = errors.Join(err, tcpErr)
		}
	}
	if g.tree.version == 1 {
		_ = writeFile(g.dir("memory"), "memory.memsw.limit_in_bytes", memory) // absent without swap accounting
	}
	if g.limits = l; err != nil {
		g.limits = Limits{} // unknown, so the next call sets all of them
	}
	return err
}

// RestoreCPU sets the CPU limit again after LiftCPU.
func (g *Group) RestoreCPU() error { return g.use(g.setQuota) }

func (g *Group) setQuota() error {
	return g.write("cpu", g.tree.file("cpu.cfs_quota_us", "cpu.max"), g.quota)
}

// LiftCPU suspends the CPU limit.
func (g *Group) LiftCPU() error {
	return g.use(func() error {
		return g.write("cpu", g.tree.file("cpu.cfs_quota_us", "cpu.max"), g.tree.file("-1", "max"))
	})
}

// OOMKills returns how often the kernel killed a process of the group at its memory limit.
func (g *Group) OOMKills() (n int64) {
	_ = g.use(func() error {
		for line := range strings.SplitSeq(g.read("memory", g.tree.file("memory.oom_control", "memory.events")), "\n") {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ = strconv.ParseInt(count, 10, 64)
			}
		}
		return nil
	})
	return n
}

// IsFarFromLimit reports whether the group never used nine tenths of its memory limit. Then a
// process that the kernel killed for lack of memory was not killed for this limit.
func (g *Group) IsFarFromLimit() bool {
	peak := g.PeakMemory() // 0 if the kernel does not count it
	return peak > 0 && peak < g.limits.MemoryBytes/10*9
}

// Memory returns the bytes of memory that the group uses.
func (g *Group) Memory() int64 {
	return g.sum(g.tree.file("memory.usage_in_bytes", "memory.current"), tcpUsageFile)
}

// PeakMemory returns the most memory that the group used, in bytes; 0 after Release. On version 1 it is
// the sum of the peaks with and without TCP sockets, which may have been at different times.
func (g *Group) PeakMemory() int64 {
	return g.sum(g.tree.file("memory.max_usage_in_bytes", "memory.peak"), tcpPeakFile)
}

// sum returns the number in a file, plus that in the file tcp if version 1 counts TCP sockets apart.
func (g *Group) sum(file, tcp string) (n int64) {
	_ = g.use(func() error {
		n = g.number(file)
		if g.tree.version == 1 && g.limits.TCPBytes > 0 {
			n += g.number(tcp)
		}
		return nil
	})
	return n
}

// number returns the number in a file of the memory controller; 0 if the file can't be read. The
// caller holds g.mu.
func (g *Group) number(file string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(g.read("memory", file)), 10, 64)
	return n
}

// Release returns the group to the tree after its processes have ended: the group becomes a
// spare, or the tree removes it soon.
func (g *Group) Release() {
	if !g.end(true) {
		g.tree.removeLater(g.name)
	}
}

// Remove removes the group without reusing it. A process that still has its JoinFDs then
// fails to join. The kernel may need a moment to notice that the group is empty; on a busy
// machine the tree removes it later.
func (g *Group) Remove() {
	g.end(false)
	if g.tree.rmdir(g.name, removeTries) != nil {
		g.tree.removeLater(g.name)
	}
}

// end ends the use of the group, and reports whether it became a spare.
func (g *Group) end(mayReuse bool) (reused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.released = true
	if reused = mayReuse && g.reuse(); !reused {
		g.files.close()
	}
	return reused
}
