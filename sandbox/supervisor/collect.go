package supervisor

import (
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
)

// Bounds of one collection; what is beyond them is counted as missed.
const (
	maxArtifacts = 1000   // new or changed files, or that may be
	maxEntries   = 20_000 // of any kind that are looked at
)

// StoreArtifact keeps what body has, and says its size, sum and type.
type StoreArtifact func(name string, body io.Reader) (sandbox.Artifact, error)

// mark is what tells whether a file is as it was when it was last collected.
type mark struct {
	inode   uint64
	size    int64
	changed unix.Timespec // the inode's own time, which no call can set
	certain bool
	sum     string
}

// settled is how old a change must be for its time to tell it from a later one: file
// systems count time in steps.
const settled = 100 * time.Millisecond

// Collect keeps the files of /session/artifacts that are new or changed since it was
// last called, and counts what it had to leave out. It is called between runs, and
// trusts nothing that it finds: it follows no link, opens regular files only, waits for
// nothing, and leaves the folder by no name.
func (s *Session) Collect(keep StoreArtifact) (found []sandbox.Artifact, missed int64, err error) {
	s.mu.Lock()
	session := -1
	if s.home != nil {
		session, err = s.home.OpenSession()
	}
	s.mu.Unlock()
	if session < 0 || err != nil {
		return nil, 0, err
	}
	defer unix.Close(session)
	top, err := beneath(session, "artifacts", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil { // the code took it away, or put a link in its place: that is its own affair
		return nil, 0, nil
	}
	c := collection{keep: keep, before: s.marks, after: map[string]mark{}, room: s.box.Policy.WorkspaceMaxBytes}
	c.folder(top, "", 1)
	s.marks = c.after
	return c.found, c.missed, c.err
}

// collection is one Collect at work.
type collection struct {
	keep          StoreArtifact
	before, after map[string]mark
	room          int64 // bytes that may still be read
	read          int   // files that were
	looked        int
	found         []sandbox.Artifact
	missed        int64
	err           error // that the service has failed with, not the code
}

// folder collects what is in the folder fd, which it closes.
func (c *collection) folder(fd int, name string, depth int) {
	defer unix.Close(fd)
	var entries []string
	var some [4096]byte // of which an empty folder, as most are, takes 48
	for c.looked < maxEntries {
		n, err := unix.ReadDirent(fd, some[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			c.missed++
		}
		if n <= 0 {
			break
		}
		_, count, names := unix.ParseDirent(some[:n], -1, entries)
		entries, c.looked = names, c.looked+count
	}
	sort.Strings(entries)
	for _, entry := range entries {
		if c.err != nil {
			return
		}
		var st unix.Stat_t
		err := unix.Fstatat(fd, entry, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err != nil:
			c.missed++
		case st.Mode&unix.S_IFMT == unix.S_IFREG:
			c.file(fd, entry, path.Join(name, entry))
		case st.Mode&unix.S_IFMT == unix.S_IFDIR && depth < sandbox.MaxDepth:
			inner, err := beneath(fd, entry, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				c.missed++
				continue
			}
			c.folder(inner, path.Join(name, entry), depth+1)
		default: // a link, or a folder too deep
			c.missed++
		}
	}
	if c.looked >= maxEntries {
		c.missed++
	}
}

// file collects one file, if it is one when it is open.
func (c *collection) file(dir int, entry, name string) {
	if sandbox.CheckPath(readable(name)) != "" { // longer than any that could be asked for
		c.missed++
		return
	}
	fd, err := beneath(dir, entry, unix.O_RDONLY)
	if err != nil {
		c.missed++
		return
	}
	f := os.NewFile(uintptr(fd), entry)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		c.missed++
		return
	}
	now := mark{inode: st.Ino, size: st.Size, changed: st.Ctim, certain: time.Since(time.Unix(st.Ctim.Unix())) > settled}
	old, known := c.before[name]
	if now.sum = old.sum; known && old.certain && old == now {
		c.after[name] = now
		return
	}
	if c.read >= maxArtifacts || st.Size > c.room || hollow(st) {
		c.missed++
		return
	}
	c.read, c.room = c.read+1, c.room-st.Size // whether it turns out to have changed or not

	a, err := c.keep(entry, io.LimitReader(f, st.Size)) // a thread may not have stopped yet: never more than was looked at
	if err != nil {
		c.err = fmt.Errorf("collect artifacts: %w", err)
		return
	}
	now.sum = a.SHA256
	c.after[name] = now
	if known && old.sum == a.SHA256 {
		return
	}
	a.Path, a.Change = readable(name), sandbox.ChangeNew
	if known {
		a.Change = sandbox.ChangeChanged
	}
	c.found = append(c.found, a)
}

// hollow says whether a file is mostly holes: it costs the code that makes it nothing, and
// whoever reads and keeps it its whole size.
func hollow(st unix.Stat_t) bool { return st.Size > 1<<20 && st.Size > 4*512*st.Blocks }

// readable writes the bytes of a name that are not UTF-8 as %XX.
func readable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}
