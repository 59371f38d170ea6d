package supervisor

import (
	"fmt"
	"io"
	"os"
	"path"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// Bounds of one collection. Files over these bounds are counted as missed.
const (
	maxCollectedFiles = 1000   // files that are, or may be, new or changed
	maxEntries        = 20_000 // examined directory entries of any kind
)

// StoreArtifact stores the bytes of body, and returns an artifact with their size, hash and type.
type StoreArtifact func(name string, body io.Reader) (sandbox.Artifact, error)

// fileState identifies the version of a file that was collected.
type fileState struct {
	inode   uint64
	size    int64
	changed unix.Timespec // ctime, which no call can set
	isOld   bool          // changed was older than minChangeAge
	sha256  string
}

// minChangeAge is the age at which a change has another ctime than any later change. The
// ctime of a newer change may be the same, because file systems count time in steps.
const minChangeAge = 100 * time.Millisecond

// CollectArtifacts stores the files of /session/artifacts that are new or have changed
// since it was last called, and counts those that it could not store: after an error, at
// least one. The next call stores them, if it can. It is called between runs. User code
// has written the files, so CollectArtifacts follows no link, opens only regular files,
// never blocks, and never leaves the folder.
func (s *Session) CollectArtifacts(store StoreArtifact) (found []sandbox.Artifact, missed int64, err error) {
	s.mu.Lock()
	session := -1
	if s.directory != nil && !s.noArtifacts.isUnchanged(s.directory) {
		session, err = s.directory.OpenSession()
	}
	s.mu.Unlock()
	switch {
	case err != nil: // nobody knows how many files there are
		return nil, 1, fmt.Errorf("collect artifacts: %w", err)
	case session < 0:
		return nil, 0, nil
	}
	defer unix.Close(session)
	folder, err := openBeneath(session, artifactsFolder, unix.O_RDONLY|unix.O_DIRECTORY)
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP: // the code has removed the folder, or replaced it by a file or a link
		return nil, 0, nil
	case unix.EACCES: // the code has changed its mode
		return nil, 1, nil
	default:
		return nil, 1, fmt.Errorf("collect artifacts: %w", err)
	}
	c := collection{
		store: store, before: s.collected, after: map[string]fileState{}, bytesLeft: s.sandbox.Policy.WorkspaceMaxBytes,
	}
	before := lookAt(folder)
	c.collectFolder(folder, "", 1)
	s.collected, s.noArtifacts = c.after, emptyFolder{}
	if c.entries == 0 && c.missed == 0 {
		s.noArtifacts = before
	}
	return c.found, c.missed, c.err
}

const artifactsFolder = "artifacts" // in /session

// emptyFolder is the state of a folder that had no entries; the zero value is that of no folder. As long as the folder
// has the same state, it is empty: most runs make no file, and then one system call takes the place of six.
type emptyFolder struct {
	inode   uint64
	changed unix.Timespec // ctime, which each new entry changes
	isOld   bool          // changed was older than minChangeAge
}

// lookAt returns the state of a folder that may turn out to be empty.
func lookAt(folder int) emptyFolder {
	var st unix.Stat_t
	if unix.Fstat(folder, &st) != nil {
		return emptyFolder{}
	}
	return emptyFolder{st.Ino, st.Ctim, time.Since(time.Unix(st.Ctim.Unix())) > minChangeAge}
}

// isUnchanged reports whether /session/artifacts of d certainly has this state.
func (e emptyFolder) isUnchanged(d *isolate.SessionDir) bool {
	if !e.isOld {
		return false
	}
	var st unix.Stat_t
	return d.StatSession(artifactsFolder, &st) == nil && st.Ino == e.inode && st.Ctim == e.changed
}

// collection is the state of one CollectArtifacts.
type collection struct {
	store         StoreArtifact
	before, after map[string]fileState
	bytesLeft     int64 // bytes that may still be read
	files         int   // number of files that were read
	entries       int   // number of entries that were examined
	found         []sandbox.Artifact
	missed        int64
	err           error // the first internal error of the service; after it, nothing is stored
}

// collectFolder collects the files in the folder fd, which it closes.
func (c *collection) collectFolder(fd int, name string, depth int) {
	defer unix.Close(fd)
	var entries []string
	var buf [4096]byte
	for c.entries < maxEntries {
		n, err := unix.ReadDirent(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			c.missed++
		}
		if n <= 0 {
			break
		}
		_, count, names := unix.ParseDirent(buf[:n], -1, entries)
		entries, c.entries = names, c.entries+count
	}
	sort.Strings(entries)
	for _, entry := range entries {
		var st unix.Stat_t
		err := unix.Fstatat(fd, entry, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err != nil:
			c.missed++
		case st.Mode&unix.S_IFMT == unix.S_IFREG:
			c.collectFile(fd, entry, path.Join(name, entry))
		case st.Mode&unix.S_IFMT == unix.S_IFDIR && depth < sandbox.MaxDepth:
			inner, err := openBeneath(fd, entry, unix.O_RDONLY|unix.O_DIRECTORY)
			if err != nil {
				c.missed++
				continue
			}
			c.collectFolder(inner, path.Join(name, entry), depth+1)
		default: // a link, or a folder too deep
			c.missed++
		}
	}
	if c.entries >= maxEntries {
		c.missed++
	}
}

// collectFile collects one file, if it is still a regular file when it is open.
func (c *collection) collectFile(folder int, entry, name string) {
	escaped := sandbox.EscapePath(name)
	if sandbox.CheckPath(escaped) != "" { // a client could not request a file with this name
		c.missed++
		return
	}
	fd, err := openBeneath(folder, entry, unix.O_RDONLY)
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
	now := fileState{
		inode: st.Ino, size: st.Size, changed: st.Ctim, isOld: time.Since(time.Unix(st.Ctim.Unix())) > minChangeAge,
	}
	old, known := c.before[name]
	if now.sha256 = old.sha256; known && old.isOld && old == now {
		c.after[name] = now
		return
	}
	if c.err != nil || c.files >= maxCollectedFiles || st.Size > c.bytesLeft || isSparse(st) {
		c.missed++
		return
	}
	c.files, c.bytesLeft = c.files+1, c.bytesLeft-st.Size

	// A thread of the guest may still run and extend the file, so only its first size bytes are read.
	artifact, err := c.store(entry, io.LimitReader(f, st.Size))
	if err != nil {
		c.missed, c.err = c.missed+1, fmt.Errorf("collect artifacts: %w", err)
		return
	}
	now.sha256 = artifact.SHA256
	c.after[name] = now
	if known && old.sha256 == artifact.SHA256 {
		return
	}
	artifact.Path, artifact.Change = escaped, sandbox.ChangeNew
	if known {
		artifact.Change = sandbox.ChangeChanged
	}
	c.found = append(c.found, artifact)
}

// isSparse reports whether a file is mostly holes. Such a file takes no space in the sandbox,
// but its whole size in the store.
func isSparse(st unix.Stat_t) bool { return st.Size > 1<<20 && st.Size > 4*512*st.Blocks }
