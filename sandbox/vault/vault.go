// Package vault keeps the files that executions leave, on the disk of the service,
// each once, by the SHA-256 of its bytes:
//
//	artifacts/ab/abcd...                 the bytes
//	sessions/SANDBOX/artifacts/PATH      the newest of that name; a hard link to them
//	outputs/EXECUTION/PATH               of a run in a sandbox of its own; likewise
//
// What is kept, of whom and for how long is history's to know. A Vault has no
// goroutine; its methods may be called from many at once. Names come from user code:
// every path is walked within an os.Root, which no name leaves.
package vault

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// Vault is the folder. It must be closed.
type Vault struct {
	dir  string
	root *os.Root
	mu   sync.Mutex // of a removal, and of a Keep that finds its bytes there
}

const store = "artifacts"

// Open opens the vault in dir, which is there, making what is missing in it.
func Open(dir string) (*Vault, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	for _, name := range []string{store, "sessions", "outputs"} {
		if err := root.MkdirAll(name, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("vault: %w", err), root.Close())
		}
	}
	return &Vault{dir: dir, root: root}, nil
}

// Close gives the folder back.
func (v *Vault) Close() error { return v.root.Close() }

func at(sum string) string { return path.Join(store, sum[:2], sum) }

// Keep writes what body has, once, and says what it is. The bytes are on disk when
// it returns. name says its type.
func (v *Vault) Keep(name string, body io.Reader) (a sandbox.Artifact, err error) {
	temp := path.Join(store, ".new-"+rand.Text())
	f, err := v.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return a, fmt.Errorf("keep an artifact: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = v.root.Remove(temp) // gone already where it was given its name
		if err != nil {
			err = fmt.Errorf("keep an artifact: %w", err)
		}
	}()
	sum, first := sha256.New(), &start{}
	if a.Size, err = io.Copy(io.MultiWriter(f, sum, first), body); err != nil {
		return a, err
	}
	a.SHA256, a.MIME = hex.EncodeToString(sum.Sum(nil)), sandbox.MIMEType(name, first.bytes)
	v.mu.Lock()
	now := time.Now()
	err = v.root.Chtimes(at(a.SHA256), now, now) // so that Sweep sees it is wanted
	v.mu.Unlock()
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	if err = f.Sync(); err != nil {
		return a, err
	}
	if err = v.root.MkdirAll(path.Dir(at(a.SHA256)), 0o700); err != nil {
		return a, err
	}
	return a, v.root.Rename(temp, at(a.SHA256))
}

// start is the first bytes of what is written to it.
type start struct{ bytes []byte }

func (s *start) Write(p []byte) (int, error) {
	s.bytes = append(s.bytes, p[:min(len(p), 512-len(s.bytes))]...)
	return len(p), nil
}

// Open opens bytes by their sum. fs.ErrNotExist where they are gone.
func (v *Vault) Open(sum string) (*os.File, error) {
	if len(sum) != hex.EncodedLen(sha256.Size) {
		return nil, fs.ErrNotExist
	}
	return v.root.Open(at(sum))
}

// Link gives bytes a name in a place, such as sessions/ID/artifacts, instead of what
// has it now, and returns its path on the host.
func (v *Vault) Link(a sandbox.Artifact) (host string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("link an artifact: %w", err)
		}
	}()
	if !filepath.IsLocal(a.Place) || sandbox.CheckPath(a.Path) != "" {
		return "", fmt.Errorf("%q has no name that a file can have here", a.Path)
	}
	name := path.Join(a.Place, a.Path)
	if err := v.clear(a.Place, path.Dir(a.Path)); err != nil {
		return "", err
	}
	if err := v.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return "", err
	}
	temp := path.Join(a.Place, ".new-"+rand.Text())
	if err := v.root.Link(at(a.SHA256), temp); err != nil {
		return "", err
	}
	err = v.root.Rename(temp, name)
	if err != nil { // a folder is there, of an earlier run
		err = errors.Join(v.root.RemoveAll(name), v.root.Rename(temp, name))
	}
	// A rename between two links of the same bytes does nothing, and leaves both.
	if gone := v.root.Remove(temp); err == nil && !errors.Is(gone, fs.ErrNotExist) {
		err = gone
	}
	return filepath.Join(v.dir, filepath.FromSlash(name)), err
}

// clear removes a file of an earlier run that stands where a folder is wanted.
func (v *Vault) clear(place, folder string) error {
	if folder == "." {
		return nil
	}
	if err := v.clear(place, path.Dir(folder)); err != nil {
		return err
	}
	info, err := v.root.Lstat(path.Join(place, folder))
	if err == nil && !info.IsDir() {
		return v.root.Remove(path.Join(place, folder))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Unlink takes an artifact's name away, and the folders that this leaves empty. The
// bytes stay until Sweep.
func (v *Vault) Unlink(a sandbox.Artifact) error {
	name := path.Join(a.Place, a.Path)
	err := v.root.Remove(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for folder := path.Dir(name); strings.Contains(folder, "/"); folder = path.Dir(folder) {
		if v.root.Remove(folder) != nil { // not empty
			break
		}
	}
	return nil
}

// Sweep removes bytes that nobody asked to keep for the age, and that used says are
// not used: of sums, it returns those that are. It removes what a killed Keep left, too.
func (v *Vault) Sweep(age time.Duration, used func(sums []string) ([]string, error)) (removed int, err error) {
	before := time.Now().Add(-age)
	shelves, err := fs.ReadDir(v.root.FS(), store)
	if err != nil {
		return 0, err
	}
	for _, shelf := range shelves {
		if !shelf.IsDir() {
			removed += v.remove(path.Join(store, shelf.Name()), before)
			continue
		}
		files, err := fs.ReadDir(v.root.FS(), path.Join(store, shelf.Name()))
		if err != nil {
			return removed, err
		}
		sums := make([]string, 0, len(files))
		for _, f := range files {
			sums = append(sums, f.Name())
		}
		wanted, err := used(sums)
		if err != nil {
			return removed, err
		}
		keep := map[string]bool{}
		for _, sum := range wanted {
			keep[sum] = true
		}
		for _, sum := range sums {
			if !keep[sum] {
				removed += v.remove(path.Join(store, shelf.Name(), sum), before)
			}
		}
	}
	return removed, nil
}

// remove removes a file that was last wanted before a time.
func (v *Vault) remove(name string, before time.Time) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	info, err := v.root.Lstat(name)
	if err != nil || !info.ModTime().Before(before) || v.root.Remove(name) != nil {
		return 0
	}
	return 1
}
