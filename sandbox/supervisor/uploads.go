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
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// Uploads holds the files of a sandbox's /data, which code can only read. Only Uploads writes
// them, so it can enforce the limits by counting. It is
// safe for concurrent use, even while code runs: code never sees an incomplete file under the
// file's name.
type Uploads struct {
	limits policy.Policy
	space  *UploadSpace // shared by all sandboxes
	user   string
	cpu    *limit.CPU

	mu        sync.Mutex
	directory *isolate.SessionDir // nil before there is one, and after close
	closed    bool
	files     map[string]sandbox.File
	folders   map[string]int // number of files and folders in each folder
	bytes     int64          // of files and of uploads in progress
	reserved  int64          // bytes reserved in space
	pending   int            // number of uploads in progress
}

func newUploads(sb sandbox.Sandbox, space *UploadSpace, cpu *limit.CPU) *Uploads {
	return &Uploads{
		limits: sb.Policy, space: space, user: sb.Owner, cpu: cpu,
		files: map[string]sandbox.File{}, folders: map[string]int{},
	}
}

// attach gives the uploads their folder, and again whenever a new guest has another descriptor of it. It must be called
// before the last directory is closed.
func (u *Uploads) attach(directory *isolate.SessionDir) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.directory = directory
	}
}

// close ends all uploads. It must be called before the directory is closed.
func (u *Uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.directory, u.closed = nil, true
	u.releaseSpace(u.reserved)
}

// reset forgets all uploads. It must be called before the directory is closed; the next one is attached.
func (u *Uploads) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.directory, u.files, u.folders, u.bytes = nil, map[string]sandbox.File{}, map[string]int{}, 0
	u.releaseSpace(u.reserved)
}

// releaseSpace releases n bytes of space. A negative n reserves bytes without checking the
// limits. The caller holds mu.
func (u *Uploads) releaseSpace(n int64) {
	u.space.release(u.user, n)
	u.reserved -= n
}

// folder opens the folder, which the caller closes. The caller holds mu.
func (u *Uploads) folder() (int, error) {
	if u.directory == nil {
		return -1, errDeleted()
	}
	return u.directory.OpenData()
}

// List returns all uploads, sorted by path.
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

// Open opens an upload for reading. The caller closes it.
func (u *Uploads) Open(name string) (*os.File, sandbox.File, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.folder()
	if err != nil {
		return nil, sandbox.File{}, err
	}
	defer unix.Close(dir)
	f, ok := u.files[name]
	if !ok {
		return nil, f, errNoUpload(name)
	}
	fd, err := openBeneath(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, f, fmt.Errorf("open an upload: %w", err)
	}
	return os.NewFile(uintptr(fd), name), f, nil
}

func errNoUpload(name string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no upload %q in this sandbox", name)
}

// Remove removes an upload, and the folders that become empty.
func (u *Uploads) Remove(name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.folder()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	f, ok := u.files[name]
	if !ok {
		return errNoUpload(name)
	}
	if err := unlinkBeneath(dir, name, 0); err != nil {
		return fmt.Errorf("remove an upload: %w", err)
	}
	delete(u.files, name)
	u.bytes -= f.Size
	u.releaseSpace(spaceOf(f.Size))
	return u.removeEntry(dir, path.Dir(name))
}

// removeEntry decrements the number of entries of a folder, and removes the folder if it is
// then empty.
func (u *Uploads) removeEntry(dir int, folder string) error {
	for ; folder != "."; folder = path.Dir(folder) {
		if u.folders[folder]--; u.folders[folder] > 0 {
			return nil
		}
		delete(u.folders, folder)
		u.releaseSpace(pageSize)
		if err := unlinkBeneath(dir, folder, unix.AT_REMOVEDIR); err != nil {
			return fmt.Errorf("remove an empty folder: %w", err)
		}
	}
	return nil
}

// addEntry increments the number of entries of a folder. It makes the folder and its parents
// if they do not exist.
func (u *Uploads) addEntry(dir int, folder string) error {
	if folder == "." {
		return nil
	}
	if u.folders[folder] > 0 {
		u.folders[folder]++
		return nil
	}
	if err := u.addEntry(dir, path.Dir(folder)); err != nil {
		return err
	}
	parent, err := openBeneath(dir, path.Dir(folder), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		err = asOwner(dir, func() error { return unix.Mkdirat(parent, path.Base(folder), 0o755) })
		_ = unix.Close(parent)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("make a folder for an upload: %w", err), u.removeEntry(dir, path.Dir(folder)))
	}
	u.folders[folder] = 1
	u.releaseSpace(-pageSize)
	return nil
}

// Put writes a file, or replaces the file with the same name. It returns FaultTooLarge, with
// the name of the limit, if the file would exceed one. If Put or body fails, the uploads stay
// unchanged.
func (u *Uploads) Put(name string, body io.Reader) (f sandbox.File, err error) {
	if wrong := sandbox.CheckPath(name); wrong != "" {
		return f, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path", Detail: wrong}
	}
	p, err := u.begin(name)
	if err != nil {
		return f, err
	}
	defer p.close()
	if _, err := io.CopyBuffer(p, struct{ io.Reader }{body}, make([]byte, 256<<10)); err != nil {
		return f, err
	}
	return p.commit(name)
}

// begin makes the temporary file that an upload is written to.
func (u *Uploads) begin(name string) (*pendingUpload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.folder()
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	if err := u.checkName(dir, name); err != nil {
		return nil, err
	}
	p := &pendingUpload{uploads: u, tempName: ".upload-" + rand.Text(), hash: sha256.New(), reserved: spaceOf(0)}
	if err := u.space.reserve(u.user, p.reserved); err != nil {
		return nil, err
	}
	u.reserved += p.reserved
	fd := -1
	err = asOwner(dir, func() (err error) {
		const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
		fd, err = unix.Openat(dir, p.tempName, flags, 0o600)
		return err
	})
	if err != nil {
		u.releaseSpace(p.reserved)
		return nil, fmt.Errorf("make a file for an upload: %w", err)
	}
	p.file = os.NewFile(uintptr(fd), p.tempName)
	u.pending++
	return p, nil
}

// checkName returns an error if a file cannot have this name, or if the sandbox may not have
// more files.
func (u *Uploads) checkName(dir int, name string) error {
	invalid := func(format string, args ...any) error {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path", Detail: fmt.Sprintf(format, args...)}
	}
	if u.folders[name] > 0 {
		return invalid("%q is a folder of this sandbox's uploads; choose another name", name)
	}
	added := 1 // files and folders
	if _, ok := u.files[name]; ok {
		added = 0
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, ok := u.files[folder]; ok {
			return invalid("%q is a file, so it cannot contain another file; choose another folder", folder)
		}
		if u.folders[folder] == 0 {
			added++
		}
	}
	top, _, _ := strings.Cut(name, "/")
	if _, ok := u.files[top]; !ok && u.folders[top] == 0 { // if the name exists, it is a data set of the operator
		if err := unix.Faccessat(dir, top, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			return invalid("%q is the name of a data set; choose another", top)
		}
	}
	if count := len(u.files) + len(u.folders) + u.pending; count+added > u.limits.UploadMaxFiles {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "upload_max_files",
			Detail: fmt.Sprintf("this sandbox may have %d uploads and upload folders, and it has %d; delete some",
				u.limits.UploadMaxFiles, count)}
	}
	return nil
}

// pendingUpload is an upload in progress.
type pendingUpload struct {
	uploads  *Uploads
	tempName string
	file     *os.File
	hash     hash.Hash
	size     int64
	reserved int64  // bytes reserved in the space of all uploads
	head     []byte // the first bytes, from which the MIME type follows
	saved    bool
}

func (p *pendingUpload) Write(b []byte) (n int, err error) {
	if err := p.reserve(int64(len(b))); err != nil {
		return 0, err
	}
	if len(p.head) < 512 {
		p.head = append(p.head, b[:min(len(b), 512-len(p.head))]...)
	}
	p.uploads.cpu.Compute(p.uploads.user, len(b), func() {
		p.hash.Write(b)
		n, err = p.file.Write(b)
	})
	if errors.Is(err, unix.ENOSPC) {
		err = &sandbox.Error{
			Fault:  sandbox.FaultFull,
			Detail: "this machine has no memory left for the upload; try again later", RetryAfter: 10,
		}
	}
	return n, err
}

// reserve reserves n bytes within the sandbox's limits. The old version of a file counts until
// the new one replaces it, because both exist for a moment.
func (p *pendingUpload) reserve(n int64) error {
	u := p.uploads
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.directory == nil {
		return errDeleted()
	}
	if p.size+n > u.limits.FileMaxBytes {
		return &sandbox.Error{
			Fault: sandbox.FaultTooLarge, Field: "file_max_bytes",
			Detail: fmt.Sprintf("one file may have %d bytes", u.limits.FileMaxBytes),
		}
	}
	if u.bytes+n > u.limits.UploadMaxBytes {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "upload_max_bytes",
			Detail: fmt.Sprintf(
				"all uploads of this sandbox may have %d bytes, and %d are taken; delete some, or ask for more when creating it",
				u.limits.UploadMaxBytes,
				u.bytes-p.size,
			)}
	}
	space := spaceOf(p.size+n) - p.reserved
	if err := u.space.reserve(u.user, space); err != nil {
		return err
	}
	u.bytes, u.reserved = u.bytes+n, u.reserved+space
	p.size, p.reserved = p.size+n, p.reserved+space
	return nil
}

// commit gives the temporary file its name.
func (p *pendingUpload) commit(name string) (sandbox.File, error) {
	u := p.uploads
	f := sandbox.File{
		Path: name, Size: p.size, SHA256: hex.EncodeToString(p.hash.Sum(nil)),
		MIME: sandbox.MIMEType(name, p.head), UploadedAt: time.Now().UTC(),
	}
	if err := p.file.Chmod(0o644); err != nil {
		return f, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := u.folder()
	if err != nil {
		return f, err
	}
	defer unix.Close(dir)
	u.pending--
	err = u.checkName(dir, name) // again, because another upload may have been committed since begin
	u.pending++
	if err != nil {
		return f, err
	}
	old, replaced := u.files[name]
	if !replaced {
		if err := u.addEntry(dir, path.Dir(name)); err != nil {
			return f, err
		}
	}
	parent, err := openBeneath(dir, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		err = asOwner(dir, func() error { return unix.Renameat(dir, p.tempName, parent, path.Base(name)) })
		_ = unix.Close(parent)
	}
	if err != nil {
		if !replaced {
			err = errors.Join(err, u.removeEntry(dir, path.Dir(name)))
		}
		return f, fmt.Errorf("name an upload: %w", err)
	}
	p.saved = true
	u.files[name] = f
	if replaced {
		u.bytes -= old.Size
		u.releaseSpace(spaceOf(old.Size))
	}
	return f, nil
}

// close ends an upload, and removes it if it was not committed.
func (p *pendingUpload) close() {
	_ = p.file.Close()
	u := p.uploads
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending--
	if p.saved || u.closed { // if u is closed, all files are removed
		return
	}
	u.bytes -= p.size
	u.releaseSpace(p.reserved)
	if dir, err := u.folder(); err == nil {
		_ = unix.Unlinkat(dir, p.tempName, 0)
		_ = unix.Close(dir)
	}
}

// unlinkBeneath removes the path name below dir. It follows no link.
func unlinkBeneath(dir int, name string, flags int) error {
	parent, err := openBeneath(dir, path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	return unix.Unlinkat(parent, path.Base(name), flags)
}

// openBeneath opens the path name below dir. It opens nothing outside dir, follows no
// link, and does not block.
func openBeneath(dir int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // openat2 refuses them with O_PATH
	}
	for {
		fd, err := unix.Openat2(dir, name, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}
