package supervisor

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// Uploads are the files of a sandbox's /data, which code can only read. They are
// written here, from outside, through a descriptor of the folder, and by nobody else:
// so what is there is known without looking, and the bounds are kept by counting. Its
// methods may be called at any time, also while code runs, which never sees a part
// of a file under the file's name.
type Uploads struct {
	most policy.Policy
	room *UploadSpace // of all sandboxes
	user string

	mu      sync.Mutex
	dir     int // the folder, -1 before there is one
	closed  bool
	files   map[string]sandbox.File
	folders map[string]int // how many files and folders each holds
	bytes   int64          // of files, and of what is on its way
	taken   int64          // of room
	coming  int            // files on their way
}

func newUploads(box sandbox.Sandbox, room *UploadSpace) *Uploads {
	return &Uploads{most: box.Policy, room: room, user: box.Owner, dir: -1, files: map[string]sandbox.File{}, folders: map[string]int{}}
}

// attach opens the folder of the sandbox's first child. Those after it have the same.
func (u *Uploads) attach(home *isolate.SessionDir) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir >= 0 || u.closed {
		return nil
	}
	dir, err := home.OpenData()
	if err == nil {
		u.dir = dir
	}
	return err
}

func (u *Uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir >= 0 {
		_ = unix.Close(u.dir)
	}
	u.dir, u.closed = -1, true
	u.give(u.taken)
}

// give gives room back, and what is negative takes it. The caller holds the lock.
func (u *Uploads) give(n int64) {
	u.room.give(u.user, n)
	u.taken -= n
}

// open returns the folder's descriptor, for as long as the caller holds the lock.
func (u *Uploads) open() (int, error) {
	if u.dir < 0 {
		return -1, gone()
	}
	return u.dir, nil
}

// List is every upload, by path.
func (u *Uploads) List() []sandbox.File {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]sandbox.File, 0, len(u.files))
	for _, f := range u.files {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b sandbox.File) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Open opens an upload for reading.
func (u *Uploads) Open(name string) (*os.File, sandbox.File, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.open()
	if err != nil {
		return nil, sandbox.File{}, err
	}
	f, ok := u.files[name]
	if !ok {
		return nil, f, noFile(name)
	}
	fd, err := beneath(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, f, fmt.Errorf("open an upload: %w", err)
	}
	return os.NewFile(uintptr(fd), name), f, nil
}

func noFile(name string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no upload %q in this sandbox", name)
}

// Remove removes an upload, and the folders that it leaves empty.
func (u *Uploads) Remove(name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.open()
	if err != nil {
		return err
	}
	f, ok := u.files[name]
	if !ok {
		return noFile(name)
	}
	if err := unlink(dir, name, 0); err != nil {
		return fmt.Errorf("remove an upload: %w", err)
	}
	delete(u.files, name)
	u.bytes -= f.Size
	u.give(cost(f.Size))
	return u.thin(dir, path.Dir(name))
}

// thin takes one entry away from a folder, and the folder itself where it was the last.
func (u *Uploads) thin(dir int, folder string) error {
	for ; folder != "."; folder = path.Dir(folder) {
		if u.folders[folder]--; u.folders[folder] > 0 {
			return nil
		}
		delete(u.folders, folder)
		u.give(page)
		if err := unlink(dir, folder, unix.AT_REMOVEDIR); err != nil {
			return fmt.Errorf("remove an empty folder: %w", err)
		}
	}
	return nil
}

// Put writes a file, in the place of one of that name. FaultTooLarge names the bound
// that it would break; then, as where body fails, all is as before.
func (u *Uploads) Put(name string, body io.Reader) (f sandbox.File, err error) {
	if wrong := sandbox.CheckPath(name); wrong != "" {
		return f, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path", Detail: wrong}
	}
	in, err := u.begin(name)
	if err != nil {
		return f, err
	}
	defer in.abandon()
	if _, err := io.CopyBuffer(in, struct{ io.Reader }{body}, make([]byte, 256<<10)); err != nil {
		return f, err
	}
	return in.commit(name)
}

// begin makes the nameless place that a file is written to.
func (u *Uploads) begin(name string) (*incoming, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.open()
	if err != nil {
		return nil, err
	}
	if err := u.fits(dir, name); err != nil {
		return nil, err
	}
	in := &incoming{to: u, temp: ".upload-" + rand.Text(), hash: sha256.New(), taken: cost(0)}
	if err := u.room.take(u.user, in.taken); err != nil {
		return nil, err
	}
	u.taken += in.taken
	fd, err := unix.Openat(dir, in.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		u.give(in.taken)
		return nil, fmt.Errorf("make a file for an upload: %w", err)
	}
	in.file = os.NewFile(uintptr(fd), in.temp)
	u.coming++
	return in, nil
}

// fits says whether a file of this name may be there, and one more of it.
func (u *Uploads) fits(dir int, name string) error {
	no := func(format string, args ...any) error {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path", Detail: fmt.Sprintf(format, args...)}
	}
	if u.folders[name] > 0 {
		return no("%q is a folder of this sandbox's uploads", name)
	}
	more := 1
	if _, ok := u.files[name]; ok {
		more = 0
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, ok := u.files[folder]; ok {
			return no("%q is a file, so nothing can be in it", folder)
		}
		if u.folders[folder] == 0 {
			more++
		}
	}
	top, _, _ := strings.Cut(name, "/")
	if _, ok := u.files[top]; !ok && u.folders[top] == 0 { // not ours, so the operator's
		if err := unix.Faccessat(dir, top, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			return no("%q is the name of a data set; choose another", top)
		}
	}
	if have := len(u.files) + len(u.folders) + u.coming; have+more > u.most.UploadMaxFiles {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "upload_max_files",
			Detail: fmt.Sprintf("this sandbox may have %d uploads and folders of them, and it has %d; delete some", u.most.UploadMaxFiles, have)}
	}
	return nil
}

// incoming is an upload on its way.
type incoming struct {
	to    *Uploads
	temp  string
	file  *os.File
	hash  hash.Hash
	size  int64
	taken int64 // of room
	head  []byte
	saved bool
}

func (in *incoming) Write(p []byte) (int, error) {
	if err := in.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	if len(in.head) < 512 {
		in.head = append(in.head, p[:min(len(p), 512-len(in.head))]...)
	}
	in.hash.Write(p)
	n, err := in.file.Write(p)
	if errors.Is(err, unix.ENOSPC) {
		err = &sandbox.Error{Fault: sandbox.FaultFull, Detail: "this machine has no room for the upload", RetryAfter: 10}
	}
	return n, err
}

// reserve takes bytes of what the sandbox may have. A file that is being replaced
// counts until it is: for a moment both are there.
func (in *incoming) reserve(n int64) error {
	u := in.to
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir < 0 {
		return gone()
	}
	if in.size+n > u.most.FileMaxBytes {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "file_max_bytes", Detail: fmt.Sprintf("one file may have %d bytes", u.most.FileMaxBytes)}
	}
	if u.bytes+n > u.most.UploadMaxBytes {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "upload_max_bytes",
			Detail: fmt.Sprintf("all uploads of this sandbox may have %d bytes, and %d are taken; delete some, or ask for more when creating it", u.most.UploadMaxBytes, u.bytes-in.size)}
	}
	more := cost(in.size+n) - in.taken
	if err := u.room.take(u.user, more); err != nil {
		return err
	}
	u.bytes, u.taken = u.bytes+n, u.taken+more
	in.size, in.taken = in.size+n, in.taken+more
	return nil
}

// commit gives what was written its name.
func (in *incoming) commit(name string) (sandbox.File, error) {
	u := in.to
	f := sandbox.File{Path: name, Size: in.size, SHA256: hex.EncodeToString(in.hash.Sum(nil)), MIME: sandbox.MIMEType(name, in.head), UploadedAt: time.Now().UTC()}
	if err := in.file.Chmod(0o644); err != nil {
		return f, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.open()
	if err != nil {
		return f, err
	}
	u.coming--
	err = u.fits(dir, name) // another may have come meanwhile
	u.coming++
	if err != nil {
		return f, err
	}
	old, replaced := u.files[name]
	if !replaced {
		if err := u.settle(dir, path.Dir(name)); err != nil {
			return f, err
		}
	}
	parent, err := beneath(dir, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		err = unix.Renameat(dir, in.temp, parent, path.Base(name))
		_ = unix.Close(parent)
	}
	if err != nil {
		if !replaced {
			err = errors.Join(err, u.thin(dir, path.Dir(name)))
		}
		return f, fmt.Errorf("name an upload: %w", err)
	}
	in.saved = true
	u.files[name] = f
	if replaced {
		u.bytes -= old.Size
		u.give(cost(old.Size))
	}
	return f, nil
}

// settle makes a folder and those above it, and counts one entry more in it.
func (u *Uploads) settle(dir int, folder string) error {
	if folder == "." {
		return nil
	}
	if u.folders[folder] > 0 {
		u.folders[folder]++
		return nil
	}
	if err := u.settle(dir, path.Dir(folder)); err != nil {
		return err
	}
	parent, err := beneath(dir, path.Dir(folder), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		err = unix.Mkdirat(parent, path.Base(folder), 0o755)
		_ = unix.Close(parent)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make a folder for an upload: %w", err), u.thin(dir, path.Dir(folder)))
	}
	u.folders[folder] = 1
	u.give(-page)
	return nil
}

// abandon ends an upload; what has no name by then is gone.
func (in *incoming) abandon() {
	_ = in.file.Close()
	u := in.to
	u.mu.Lock()
	defer u.mu.Unlock()
	u.coming--
	if in.saved || u.closed { // it is a file now, or all are gone
		return
	}
	u.bytes -= in.size
	u.give(in.taken)
	_ = unix.Unlinkat(u.dir, in.temp, 0)
}

// unlink removes what name, a path, is below dir, following no link.
func unlink(dir int, name string, flags int) error {
	parent, err := beneath(dir, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return unix.Unlinkat(parent, path.Base(name), flags)
}

// beneath opens what name, a path, is below dir: nothing outside it, no link, and
// nothing that could make it wait.
func beneath(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // which openat2 does not take with it
	}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}
