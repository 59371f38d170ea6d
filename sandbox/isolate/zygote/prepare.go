package zygote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/protocol"
)

// Sizes and numbers of files of a child's mounts.
const (
	tmpBytes   = 64 << 20
	maxInodes  = 16384
	dataBytes  = 2 << 30 // only the service writes to /data, and it enforces lower limits
	dataInodes = 1 << 18
)

// maxWaiting is the backlog of the listener in a child's network.
const maxWaiting = 64

// maxRequest is the largest request to the launcher, and maxAnswer its largest answer, in bytes.
const (
	maxRequest = 64 << 10
	maxAnswer  = 4 << 10
)

// preparer gives children their ids, mounts and networks. A child has a user namespace of its own, and could do that
// itself, but the filter that it inherits from its zygote allows no such call.
type preparer struct {
	spec     Spec
	zygote   int      // its uid
	machine  int      // the machine's /proc
	mounts   int      // the launcher's own mount namespace,
	network  int      // and network namespace
	dataSets []string // names of folders and files in /data of the root
	isFolder map[string]bool
}

func newPreparer(spec Spec, machine int) (*preparer, error) {
	p := &preparer{spec: spec, machine: machine, isFolder: map[string]bool{}}
	for name, fd := range map[string]*int{"self/ns/mnt": &p.mounts, "self/ns/net": &p.network} {
		var err error
		if *fd, err = unix.Openat(machine, name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return nil, fmt.Errorf("open /proc/%s: %w", name, err)
		}
	}
	if spec.UIDs.Count > 0 && !spec.Without.Has(layer.User) {
		p.zygote = innerZygoteUID
	}
	entries, err := os.ReadDir("/data")
	for _, e := range entries {
		p.dataSets = append(p.dataSets, e.Name())
		p.isFolder[e.Name()] = e.IsDir()
	}
	return p, err
}

// answerPrepare is the answer to a request: descriptors come with it unless it has an error.
type answerPrepare struct {
	Error string `json:"error"`
}

// serve answers requests over a socket until the service closes it. Each is a protocol.Enter with a pidfd of a child
// and then the descriptors that Enter describes. The answer has a clone of the tree of the child's mounts, and the
// listener in its network, if it has one.
func (p *preparer) serve(socket int) error {
	runtime.LockOSThread() // its file system attributes and namespaces are not those of other threads
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	message, control := make([]byte, maxRequest), make([]byte, unix.CmsgSpace(4*4))
	for {
		n, controlLen, err := receive(socket, message, control)
		if err != nil || n == 0 {
			return err
		}
		given := allFDs(control[:controlLen])
		made, err := p.handle(message[:n], given)
		closeFDs(given)
		var a answerPrepare
		if err != nil {
			a.Error = err.Error()
		}
		body, _ := json.Marshal(a)
		err = unix.Sendmsg(socket, body, unix.UnixRights(made...), nil, unix.MSG_NOSIGNAL)
		closeFDs(made)
		if err != nil {
			return err
		}
	}
}

// handle answers one request.
func (p *preparer) handle(body []byte, given []int) (made []int, err error) {
	var enter protocol.Enter
	if err := json.Unmarshal(body, &enter); err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return nil, errors.New("the request has no pidfd")
	}
	if enter.UID == 0 {
		enter.UID = p.zygote // a child that keeps it
	}
	if !p.spec.Without.Has(layer.User) {
		if err := p.assignID(given[0], enter.UID); err != nil {
			return nil, err
		}
	}
	namespaces := unix.CLONE_NEWNS
	if enter.Network != nil {
		namespaces |= unix.CLONE_NEWNET
	}
	if err := unix.Setns(given[0], namespaces); err != nil {
		return nil, fmt.Errorf("enter the namespaces of a child: %w", err)
	}
	defer func() {
		// Otherwise the child's files would live until the next child.
		err := unix.Setns(p.mounts, unix.CLONE_NEWNS)
		if enter.Network != nil {
			err = errors.Join(err, unix.Setns(p.network, unix.CLONE_NEWNET))
		}
		if err != nil {
			os.Exit(1)
		}
	}()
	tree, err := p.mountFiles(enter, given[1:])
	if err != nil {
		return nil, err
	}
	made = []int{tree}
	if enter.Network != nil {
		listener, err := switchOn(enter.Network, given[len(given)-1])
		if err != nil {
			closeFDs(made)
			return nil, fmt.Errorf("make the network of a child: %w", err)
		}
		made = append(made, listener)
	}
	return made, nil
}

// assignID maps two ids into a child's user namespace: the one that the child has, as 0, and the one that it changes
// to. A change from 0 takes the capabilities away.
func (p *preparer) assignID(pidfd, id int) error {
	var info [4096]byte
	n, err := p.read("self/fdinfo/"+strconv.Itoa(pidfd), info[:])
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(info[:n]), "\nPid:")
	pid, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	ids := fmt.Sprintf("0 %d 1\n", p.zygote)
	if id != p.zygote {
		ids += fmt.Sprintf("%d %d 1\n", id, id)
	}
	for _, file := range []string{"/uid_map", "/gid_map"} {
		fd, err := unix.Openat(p.machine, pid+file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte(ids))
			_ = unix.Close(fd)
		}
		if err != nil {
			return fmt.Errorf("write %s of a child: %w", file[1:], err)
		}
	}
	return nil
}

// read reads a file of the machine's /proc.
func (p *preparer) read(name string, into []byte) (int, error) {
	fd, err := unix.Openat(p.machine, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.Read(fd, into)
}

// mountFiles mounts /tmp, /session and /data, and in it the operator's data sets, all of /data read-only.
//
// The files of a session are one tree of mounts: a file system with the uploads in its directory files, and the session
// mounted at its directory session. mountFiles returns a writable clone of the tree, by which the service keeps the
// files for the next child. given has the mount of an earlier child's tree, if enter says so.
func (p *preparer) mountFiles(enter protocol.Enter, given []int) (tree int, err error) {
	m := &mounter{}
	defer m.closeAll()
	m.mount("/tmp", p.tmpfs(m, "mode=1777", tmpBytes, maxInodes))
	sets := map[string]int{}
	for _, name := range p.dataSets {
		sets[name] = m.clone("/data/"+name, true)
	}
	if enter.Attach == protocol.AttachFiles {
		m.mount("/data", given[0])
	} else {
		size, inodes := fmt.Sprintf("size=%d", dataBytes), fmt.Sprintf("nr_inodes=%d", dataInodes)
		m.mount("/data", m.tmpfs("mode=755", size, inodes))
		m.makeDir("/data/files")
		m.makeDir("/data/session")
		if enter.Attach == protocol.AttachSession {
			m.mount("/data/session", given[0])
		} else {
			owner := fmt.Sprintf("uid=%d,gid=%d", enter.UID, enter.UID)
			m.mount("/data/session", p.tmpfs(m, "mode=700,"+owner, enter.Workspace, maxInodes))
			m.makeDir("/data/session/artifacts")
			m.chown("/data/session/artifacts", enter.UID)
		}
	}
	tree = m.clone("/data", true)
	m.mount("/session", m.clone("/data/session", false))
	for _, name := range p.dataSets {
		if p.isFolder[name] {
			m.makeDir("/data/files/" + name)
		} else {
			m.makeFile("/data/files/" + name)
		}
	}
	m.mount("/data", m.clone("/data/files", false))
	for _, name := range p.dataSets {
		m.mount("/data/"+name, sets[name])
	}
	m.do("make /data read-only", func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/data", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	})
	m.keep(tree)
	return tree, m.err
}

// tmpfs returns a tmpfs with a limit for its bytes and files, unless a test leaves it out.
func (p *preparer) tmpfs(m *mounter, options string, size int64, inodes int) int {
	all := strings.Split(options, ",")
	if !p.spec.Without.Has(layer.Quota) {
		all = append(all, "size="+strconv.FormatInt(size, 10), "nr_inodes="+strconv.Itoa(inodes))
	}
	return m.tmpfs(all...)
}

// mounter makes mounts until one fails. It closes the descriptors of mounts.
type mounter struct {
	err  error
	open []int
}

func (m *mounter) do(what string, call func() error) {
	if m.err == nil {
		if err := call(); err != nil {
			m.err = fmt.Errorf("%s: %w", what, err)
		}
	}
}

// opened returns the descriptor that call returns, and -1 if it fails.
func (m *mounter) opened(what string, call func() (int, error)) (fd int) {
	fd = -1
	m.do(what, func() (err error) {
		if fd, err = call(); err == nil {
			m.open = append(m.open, fd)
		}
		return err
	})
	return fd
}

func (m *mounter) closeAll() { closeFDs(m.open) }

// keep leaves a descriptor open if everything succeeded.
func (m *mounter) keep(fd int) {
	if m.err == nil {
		m.open = slices.DeleteFunc(m.open, func(each int) bool { return each == fd })
	}
}

// tmpfs returns a new tmpfs, nosuid and nodev, with these options ("KEY=VALUE").
func (m *mounter) tmpfs(options ...string) int {
	fs := m.opened("fsopen tmpfs", func() (int, error) { return unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC) })
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		m.do("tmpfs "+key, func() error { return unix.FsconfigSetString(fs, key, value) })
	}
	m.do("create a tmpfs", func() error { return unix.FsconfigCreate(fs) })
	return m.opened("fsmount tmpfs", func() (int, error) {
		return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	})
}

// clone returns a clone of the mount at path, with within also the mounts in it.
func (m *mounter) clone(path string, within bool) int {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if within {
		flags |= unix.AT_RECURSIVE
	}
	return m.opened("open_tree "+path, func() (int, error) { return unix.OpenTree(unix.AT_FDCWD, path, flags) })
}

func (m *mounter) mount(path string, fd int) {
	m.do("move_mount "+path, func() error {
		return unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	})
}

// makeDir makes a directory, unless there is one.
func (m *mounter) makeDir(path string) {
	m.do("make "+path, func() error {
		if err := unix.Mkdir(path, 0o755); err != unix.EEXIST {
			return err
		}
		return nil
	})
}

// makeFile makes an empty file, unless there is one.
func (m *mounter) makeFile(path string) {
	m.do("make "+path, func() error {
		fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDONLY|unix.O_CLOEXEC, 0o755)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	})
}

func (m *mounter) chown(path string, id int) {
	m.do("chown "+filepath.Base(path), func() error { return unix.Lchown(path, id, id) })
}

// switchOn switches the loopback device of this thread's network namespace on and returns a listener in it. sysctls is
// the folder /proc/sys/net, if network has values for it.
func switchOn(network *protocol.Network, sysctls int) (listener int, err error) {
	for path, value := range network.Sysctls {
		// The kernel looks the path up in the network namespace of this thread.
		fd, err := unix.Openat(sysctls, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.Write(fd, []byte(value))
			_ = unix.Close(fd)
		}
		if err != nil {
			return -1, fmt.Errorf("sysctl %s: %w", path, err)
		}
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	lo, err := unix.NewIfreq("lo")
	if err == nil {
		lo.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
	}
	address := &unix.SockaddrInet4{Port: network.Port, Addr: netip.MustParseAddr(network.Host).As4()}
	if err == nil {
		err = unix.Bind(fd, address)
	}
	if err == nil {
		err = unix.Listen(fd, maxWaiting)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
