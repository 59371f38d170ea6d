package supervisor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
)

// Workspace reads and changes the files of a sandbox's /session from outside. It is safe for concurrent use, also
// while code runs.
//
// User code has written the files and may change them at any time. So a Workspace follows no link, opens only regular
// files, never blocks, and never leaves the folder. A path is relative to /session; "." is /session itself. An error of
// a caller is FaultInvalid, FaultNotFound, FaultForbidden or FaultTooLarge.
type Workspace struct {
	session *Session

	mu       sync.Mutex
	reserved int64 // bytes of the space of all uploads

	isChanged atomic.Bool // somebody else than the code has changed it
}

// Workspace returns the files of its /session.
func (s *Session) Workspace() *Workspace { return s.workspace }

// open opens /session, which the caller closes.
func (w *Workspace) open() (int, error) {
	s := w.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory == nil {
		return -1, errDeleted()
	}
	return s.directory.OpenSession()
}

// openParent opens the folder that has the entry name, which the caller closes. If create is set, it makes the folder
// and its parents if they do not exist.
func (w *Workspace) openParent(name string, create bool) (int, error) {
	if wrong := sandbox.CheckPath(name); wrong != "" {
		return -1, invalidPath(name, wrong)
	}
	root, err := w.open()
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	folder := path.Dir(name)
	fd, err := openBeneath(root, folder, unix.O_PATH|unix.O_DIRECTORY)
	if create && errors.Is(err, unix.ENOENT) {
		if err = makeFolders(root, folder); err == nil {
			fd, err = openBeneath(root, folder, unix.O_PATH|unix.O_DIRECTORY)
		}
	}
	return fd, pathError(folder, err)
}

// makeFolders makes a folder and its parents below root, for the owner of root.
func makeFolders(root int, folder string) error {
	names := strings.Split(folder, "/")
	for n, name := range names {
		parent, err := openBeneath(root, path.Join(".", path.Join(names[:n]...)), unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		err = asOwner(root, func() error { return unix.Mkdirat(parent, name, 0o755) })
		_ = unix.Close(parent)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// asOwner makes the call create as the owner of root, to whom what it creates then belongs. The file system of a
// sandbox has no id for the service's own account.
func asOwner(root int, create func() error) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil || int(st.Uid) == os.Geteuid() {
		return errors.Join(err, create())
	}
	runtime.LockOSThread() // the ids belong to the thread
	gid, err := unix.SetfsgidRetGid(int(st.Gid))
	if err != nil {
		return err
	}
	uid, err := unix.SetfsuidRetUid(int(st.Uid))
	if err == nil {
		err = create()
	}
	_, uidErr := unix.SetfsuidRetUid(uid)
	_, gidErr := unix.SetfsgidRetGid(gid)
	if uidErr == nil && gidErr == nil { // otherwise the thread ends with the goroutine
		runtime.UnlockOSThread()
	}
	return err
}

func invalidPath(name, problem string) error {
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path", Detail: fmt.Sprintf("%.200q: %s", name, problem)}
}

// pathError returns the error for a caller whose path led to err.
func pathError(name string, err error) error {
	if _, known := errors.AsType[*sandbox.Error](err); known || err == nil {
		return err
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return sandbox.Errorf(sandbox.FaultNotFound, "%.200q does not exist", name)
	case errors.Is(err, unix.ENOTDIR):
		return invalidPath(name, "a part of it is a file, not a folder")
	case errors.Is(err, unix.EISDIR):
		return invalidPath(name, "it is a folder, not a file")
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return invalidPath(
			name,
			"a part of it is a link, and links are not followed from outside; use its target's path",
		)
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return invalidPath(name, "it exists")
	case errors.Is(err, unix.EINVAL):
		return invalidPath(name, "a folder cannot be moved into itself")
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return sandbox.Errorf(sandbox.FaultForbidden, "%.200q: code has removed the permissions for it", name)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "workspace_max_bytes",
			Detail: "the sandbox's folder is full; remove files"}
	}
	return fmt.Errorf("workspace: %w", err)
}

func entryOf(name string, st *unix.Stat_t) sandbox.Entry {
	kinds := map[uint32]sandbox.EntryKind{
		unix.S_IFREG: sandbox.EntryFile, unix.S_IFDIR: sandbox.EntryFolder, unix.S_IFLNK: sandbox.EntryLink,
	}
	kind, ok := kinds[st.Mode&unix.S_IFMT]
	if !ok {
		kind = sandbox.EntryOther
	}
	return sandbox.Entry{
		Path: name, Kind: kind, Size: st.Size, Mode: st.Mode & 0o7777, ModifiedAt: time.Unix(st.Mtim.Unix()).UTC(),
	}
}

// Stat returns an entry.
func (w *Workspace) Stat(name string) (e sandbox.Entry, err error) {
	var st unix.Stat_t
	if name == "." {
		root, err := w.open()
		if err != nil {
			return e, err
		}
		defer unix.Close(root)
		err = unix.Fstat(root, &st)
		return entryOf(name, &st), err
	}
	parent, err := w.openParent(name, false)
	if err != nil {
		return e, err
	}
	defer unix.Close(parent)
	if err := unix.Fstatat(parent, path.Base(name), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return e, pathError(name, err)
	}
	return entryOf(name, &st), nil
}

// maxListBytes bounds the paths of a list, because code may have given each file a path of kilobytes. 20 000 paths of
// 200 bytes are within it.
const maxListBytes = 4 << 20

// List returns the entries of a folder, sorted by path, and those of the folders in it down to depth, which is 1 for
// the folder alone. A folder with more than maxEntries entries, or paths of more than maxListBytes, is FaultTooLarge.
func (w *Workspace) List(name string, depth int) ([]sandbox.Entry, error) {
	if wrong := sandbox.CheckPath(name); name != "." && wrong != "" {
		return nil, invalidPath(name, wrong)
	}
	root, err := w.open()
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	fd, err := openBeneath(root, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError(name, err)
	}
	var list entryList
	if err := list.addFolder(fd, name, min(depth, sandbox.MaxDepth)); err != nil {
		return nil, err
	}
	slices.SortFunc(list.entries, func(a, b sandbox.Entry) int { return strings.Compare(a.Path, b.Path) })
	return list.entries, nil
}

// entryList has the entries of a folder.
type entryList struct {
	entries   []sandbox.Entry
	pathBytes int // of all entries
}

func (l *entryList) add(e sandbox.Entry) error {
	if l.pathBytes += len(e.Path); len(l.entries) >= maxEntries || l.pathBytes > maxListBytes {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "path", Detail: fmt.Sprintf(
			"the folder has more than %d entries, or paths of more than %d MiB; list a folder in it", maxEntries,
			maxListBytes>>20)}
	}
	l.entries = append(l.entries, e)
	return nil
}

// addFolder adds the entries of the folder fd, which it closes.
func (l *entryList) addFolder(fd int, name string, depth int) error {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, entry := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, entry, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // code has removed it
			}
			if err := l.add(entryOf(path.Join(name, entry), &st)); err != nil {
				return err
			}
			if depth <= 1 || st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			inner, err := openBeneath(fd, entry, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				continue // code has removed it, or its permissions
			}
			if err := l.addFolder(inner, path.Join(name, entry), depth-1); err != nil {
				return err
			}
		}
		if err != nil || len(names) == 0 {
			return nil
		}
	}
}

// Open opens a file for reading, and returns its size. The caller closes it. Code may truncate the file meanwhile.
func (w *Workspace) Open(name string) (*os.File, sandbox.Entry, error) {
	if wrong := sandbox.CheckPath(name); wrong != "" {
		return nil, sandbox.Entry{}, invalidPath(name, wrong)
	}
	root, err := w.open()
	if err != nil {
		return nil, sandbox.Entry{}, err
	}
	defer unix.Close(root)
	fd, err := openBeneath(root, name, unix.O_RDONLY)
	if err != nil {
		return nil, sandbox.Entry{}, pathError(name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	e := entryOf(name, &st)
	switch {
	case err != nil:
	case e.Kind == sandbox.EntryFolder:
		err = pathError(name, unix.EISDIR)
	case e.Kind != sandbox.EntryFile:
		err = invalidPath(name, "it is not a regular file")
	case isSparse(st):
		err = invalidPath(name, "it is mostly holes; write it without them")
	default:
		return f, e, nil
	}
	return nil, e, errors.Join(err, f.Close())
}

// Write writes a file, and makes its folder if that does not exist. The file belongs to the code, which never sees it
// incomplete under its name. If Write or body fails, an earlier file with the name stays unchanged.
func (w *Workspace) Write(name string, body io.Reader) (sandbox.Entry, error) {
	return w.WriteDated(name, body, time.Time{})
}

// WriteDated does the same, and sets the time of the file's last change, in microseconds, unless that is zero.
func (w *Workspace) WriteDated(name string, body io.Reader, modified time.Time) (e sandbox.Entry, err error) {
	w.isChanged.Store(true)
	parent, err := w.openParent(name, true)
	if err != nil {
		return e, err
	}
	defer unix.Close(parent)
	limit, err := w.freeBytes()
	if err != nil {
		return e, err
	}
	temp, fd := ".upload-"+rand.Text(), -1
	root, err := w.open()
	if err != nil {
		return e, err
	}
	defer unix.Close(root)
	if err = asOwner(root, func() (err error) {
		const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err = unix.Openat(parent, temp, flags, 0o600)
		return err
	}); err != nil {
		return e, pathError(name, err)
	}
	f := os.NewFile(uintptr(fd), temp)
	defer func() {
		_ = f.Close()
		if err != nil {
			_ = unix.Unlinkat(parent, temp, 0)
		}
	}()
	target := &workspaceFile{w, f, limit}
	if _, err = io.CopyBuffer(target, struct{ io.Reader }{body}, make([]byte, 256<<10)); err != nil {
		return e, err
	}
	if err = f.Chmod(0o644); err == nil && !modified.IsZero() {
		at := unix.NsecToTimeval(modified.UnixNano())
		err = unix.Futimes(fd, []unix.Timeval{at, at})
	}
	if err == nil {
		err = asOwner(root, func() error { return unix.Renameat(parent, temp, parent, path.Base(name)) })
		err = pathError(name, err)
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	return entryOf(name, &st), err
}

// freeBytes returns how much a file may have. A private mount has a size of its own.
func (w *Workspace) freeBytes() (int64, error) {
	s, p := w.session, w.session.sandbox.Policy
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory == nil {
		return 0, errDeleted()
	}
	used, err := s.directory.Measure()
	return min(p.FileMaxBytes, p.WorkspaceMaxBytes-used), err
}

// workspaceFile writes a file of a workspace within the sandbox's limits.
type workspaceFile struct {
	workspace *Workspace
	file      *os.File
	bytesLeft int64
}

func (f *workspaceFile) Write(b []byte) (n int, err error) {
	s := f.workspace.session
	if f.bytesLeft -= int64(len(b)); f.bytesLeft < 0 {
		return 0, f.workspace.tooLarge()
	}
	if err := f.workspace.reserve(int64(len(b))); err != nil {
		return 0, err
	}
	s.supervisor.CPU.Compute(s.sandbox.Owner, len(b), func() { n, err = f.file.Write(b) })
	return n, pathError(f.file.Name(), err)
}

func (w *Workspace) tooLarge() error {
	p := w.session.sandbox.Policy
	return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "file_max_bytes", Detail: fmt.Sprintf(
		"a file may have %d bytes, and all files of the sandbox %d", p.FileMaxBytes, p.WorkspaceMaxBytes)}
}

// formBytes is what a form may have in addition to the contents of its files.
const formBytes = 1 << 20

// LimitBody returns a reader of the body of an upload, without its compression. It fails like Write after more bytes
// than a form has whose files fill the folder: a small compressed body may have any number of bytes that belong to no
// file, and so never reach Write.
func (w *Workspace) LimitBody(body io.Reader) io.Reader {
	return &uploadBody{Reader: body, workspace: w, bytesLeft: w.session.sandbox.Policy.WorkspaceMaxBytes + formBytes}
}

type uploadBody struct {
	io.Reader
	workspace *Workspace
	bytesLeft int64
}

func (b *uploadBody) Read(p []byte) (n int, err error) {
	n, err = b.Reader.Read(p)
	if b.bytesLeft -= int64(n); b.bytesLeft < 0 {
		return 0, b.workspace.tooLarge()
	}
	return n, err
}

// reserve reserves n bytes of the memory for all uploads, which counts files that are written from outside: the kernel
// does not count their pages for the sandbox. Code may remove files without the service's knowledge, so the bytes stay
// reserved until the session is closed, up to the size of the folder.
func (w *Workspace) reserve(n int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, w.session.sandbox.Policy.WorkspaceMaxBytes-w.reserved)
	if n <= 0 {
		return nil
	}
	if err := w.session.supervisor.Uploads.reserve(w.session.sandbox.Owner, n); err != nil {
		return err
	}
	w.reserved += n
	return nil
}

// close releases the memory, after the files are removed.
func (w *Workspace) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session.supervisor.Uploads.release(w.session.sandbox.Owner, w.reserved)
	w.reserved = 0
}

// MakeFolder makes a folder and its parents. made is false if it existed.
func (w *Workspace) MakeFolder(name string) (e sandbox.Entry, made bool, err error) {
	if e, err = w.Stat(name); err == nil {
		if e.Kind != sandbox.EntryFolder {
			return e, false, pathError(name, unix.ENOTDIR)
		}
		return e, false, nil
	}
	if sandbox.FaultOf(err) != sandbox.FaultNotFound {
		return e, false, err
	}
	w.isChanged.Store(true)
	root, err := w.open()
	if err != nil {
		return e, false, err
	}
	defer unix.Close(root)
	if err := makeFolders(root, name); err != nil {
		return e, false, pathError(name, err)
	}
	e, err = w.Stat(name)
	return e, err == nil, err
}

// Move renames an entry, and makes the new folder if that does not exist. It replaces a file with the new name.
func (w *Workspace) Move(from, to string) (sandbox.Entry, error) {
	w.isChanged.Store(true)
	source, err := w.openParent(from, false)
	if err != nil {
		return sandbox.Entry{}, err
	}
	defer unix.Close(source)
	target, err := w.openParent(to, true)
	if err != nil {
		return sandbox.Entry{}, err
	}
	defer unix.Close(target)
	err = asOwner(target, func() error { return unix.Renameat(source, path.Base(from), target, path.Base(to)) })
	if err != nil {
		return sandbox.Entry{}, pathError(from, err)
	}
	return w.Stat(to)
}

// Remove removes a file, or a folder with its content.
func (w *Workspace) Remove(name string) error {
	w.isChanged.Store(true)
	parent, err := w.openParent(name, false)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	entries := 0
	return pathError(name, removeTree(parent, path.Base(name), &entries))
}

// removeTree removes an entry of parent. It stops after a bounded number of entries, because code may make new ones.
func removeTree(parent int, name string, entries *int) error {
	const maxRemoved = 10 * maxEntries
	if *entries++; *entries > maxRemoved {
		return sandbox.Errorf(sandbox.FaultTooLarge, "the folder has more than %d entries", maxRemoved)
	}
	err := unix.Unlinkat(parent, name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, err := openBeneath(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		names, _ := f.Readdirnames(256)
		if len(names) == 0 {
			return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		}
		for _, inner := range names {
			if err := removeTree(fd, inner, entries); err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
		}
	}
}
