// Package blob keeps the files that executions leave, on the disk of the service,
// each once, by the SHA-256 of its bytes:
//
//	artifacts/ab/abcd...                 the bytes
//	sessions/SANDBOX/artifacts/PATH      the newest of that name; a hard link to them
//	outputs/EXECUTION/PATH               of a run in a sandbox of its own; likewise
//	shown/EXECUTION/NAME                 large parts of what a run has shown; likewise
//
// What is kept, of whom and for how long is history's to know: bytes are kept first and
// settled on the disk, then written down there, then named, and what Keep has kept is held until Release says that
// this is done, whatever Sweep finds written down. A folder belongs to one Vault. A Vault
// has no goroutine; its methods may be called from many at once. Names come from user code: every path is walked within
// an os.Root, which no name leaves.
package blob

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// Vault is the folder. It must be closed.
type Store struct {
	dir  string
	root *os.Root
	mu   sync.Mutex     // of removals, of names, and of what is held
	held map[string]int // sums, by how often they are kept and not yet released
	seen map[string]int // sums kept and places named since the sweep that goes on asked; nil: none does

	sweeping sync.Mutex
}

const store = "artifacts"

// abandoned is how old a file is that a Keep has written to and does no more.
const abandoned = time.Hour

// Open opens the vault in dir, which is there, making what is missing in it.
func Open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	for _, name := range []string{store, "sessions", "outputs", "shown"} {
		if err := root.MkdirAll(name, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("vault: %w", err), root.Close())
		}
	}
	return &Store{dir: dir, root: root, held: map[string]int{}}, nil
}

// Close gives the folder back.
func (v *Store) Close() error { return v.root.Close() }

func at(sum string) string { return path.Join(store, sum[:2], sum) }

// Put writes what body has, once, and says what it is. The bytes are held until they are
// given to Release, and on the disk for good once they are given to Settle. name says
// its type.
func (v *Store) Put(name string, body io.Reader) (a sandbox.Artifact, err error) {
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
	v.held[a.SHA256]++
	v.see(a.SHA256)
	_, err = v.root.Lstat(at(a.SHA256))
	v.mu.Unlock()
	defer func() {
		if err != nil {
			v.Unpin([]string{a.SHA256})
		}
	}()
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	if err = v.root.MkdirAll(path.Dir(at(a.SHA256)), 0o700); err != nil {
		return a, err
	}
	return a, v.root.Rename(temp, at(a.SHA256))
}

// settlers is how many files are brought to the disk side by side: it writes many in
// little more time than one.
const settlers = 16

// Sync returns when kept bytes, and that they are there, outlast a loss of power.
func (v *Store) Sync(sums []string) error {
	var files, shelves []string
	for _, sum := range sums {
		files, shelves = append(files, at(sum)), append(shelves, path.Dir(at(sum)))
	}
	slices.Sort(shelves)
	return errors.Join(v.sync(files), v.sync(slices.Compact(shelves)), v.sync([]string{store}))
}

func (v *Store) sync(names []string) error {
	var workers sync.WaitGroup
	next := make(chan int)
	failed := make([]error, len(names))
	for range min(settlers, len(names)) {
		workers.Go(func() {
			for n := range next {
				f, err := v.root.Open(names[n])
				if err == nil {
					err = errors.Join(f.Sync(), f.Close())
				}
				failed[n] = err
			}
		})
	}
	for n := range names {
		next <- n
	}
	close(next)
	workers.Wait()
	return errors.Join(failed...)
}

// see tells a sweep that goes on. The caller holds mu.
func (v *Store) see(key string) {
	if v.seen != nil {
		v.seen[key]++
	}
}

// Unpin says that of bytes that Keep has kept it is written down who has them, or
// that nobody is to: each sum once for each Keep.
func (v *Store) Unpin(sums []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, sum := range sums {
		if v.held[sum]--; v.held[sum] <= 0 {
			delete(v.held, sum)
		}
	}
}

// start is the first bytes of what is written to it.
type start struct{ bytes []byte }

func (s *start) Write(p []byte) (int, error) {
	s.bytes = append(s.bytes, p[:min(len(p), 512-len(s.bytes))]...)
	return len(p), nil
}

// Open opens bytes by their sum. fs.ErrNotExist where they are gone.
func (v *Store) Open(sum string) (*os.File, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, fs.ErrNotExist
	}
	return v.root.Open(at(sum))
}

// Link gives bytes a name in a place, such as sessions/ID/artifacts, instead of what
// has it now, and returns its path on the host.
func (v *Store) Link(a sandbox.Artifact) (host string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("link an artifact: %w", err)
		}
	}()
	if !filepath.IsLocal(a.Folder) || sandbox.CheckPath(a.Path) != "" {
		return "", fmt.Errorf("%q has no name that a file can have here", a.Path)
	}
	name := path.Join(a.Folder, a.Path)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.see(a.Folder)
	if err := v.clear(a.Folder, path.Dir(a.Path)); err != nil {
		return "", err
	}
	if err := v.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return "", err
	}
	temp := path.Join(a.Folder, ".new-"+rand.Text())
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
func (v *Store) clear(place, folder string) error {
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
func (v *Store) Unlink(a sandbox.Artifact) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := path.Join(a.Folder, a.Path)
	err := v.root.Remove(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.prune(path.Dir(name))
	return nil
}

// Sweep removes bytes that nobody holds and sums says are not used: of some, it returns
// those that are. Likewise it removes whole places that places says are not used, and
// what a killed Keep has left.
func (v *Store) Sweep(sums, places func([]string) ([]string, error)) (removed int, err error) {
	v.sweeping.Lock()
	defer v.sweeping.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.seen = nil
	}()
	shelves, err := fs.ReadDir(v.root.FS(), store)
	if err != nil {
		return 0, err
	}
	whole := func(name string) string { return name }
	sweeps := []sweep{{"sessions", store, whole, places}, {"outputs", "", whole, places}, {"shown", "", whole, places}}
	for _, shelf := range shelves {
		if shelf.IsDir() {
			sweeps = append(sweeps, sweep{path.Join(store, shelf.Name()), "", path.Base, sums})
		} else if info, err := shelf.Info(); err == nil && time.Since(info.ModTime()) > abandoned && v.root.Remove(path.Join(store, shelf.Name())) == nil {
			removed++
		}
	}
	for _, s := range sweeps {
		n, err := v.sweep(s)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// sweep is a folder of places, each with inner in it, or of bytes. used knows them by a
// key: the place, or the sum.
type sweep struct {
	folder, inner string
	key           func(name string) string
	used          func(keys []string) ([]string, error)
}

func (v *Store) sweep(s sweep) (removed int, err error) {
	v.mu.Lock() // before used is asked: what is released by then is written down
	v.seen = maps.Clone(v.held)
	v.mu.Unlock()
	entries, err := fs.ReadDir(v.root.FS(), s.folder)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(entries, 1000) {
		names, keys := make([]string, len(some)), make([]string, len(some))
		for n, entry := range some {
			names[n] = path.Join(s.folder, entry.Name(), s.inner)
			keys[n] = s.key(names[n])
		}
		wanted, err := s.used(keys)
		if err != nil {
			return removed, err
		}
		keep := map[string]bool{}
		for _, key := range wanted {
			keep[key] = true
		}
		for n, name := range names {
			if !keep[keys[n]] && v.remove(name, keys[n]) {
				removed++
			}
		}
	}
	return removed, nil
}

// remove removes what nobody has kept or named meanwhile, and says whether it did.
func (v *Store) remove(name, key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.seen[key] > 0 || v.root.RemoveAll(name) != nil {
		return false
	}
	v.prune(path.Dir(name))
	return true
}

// prune removes a folder of names, and those that it is in, where they are empty now.
func (v *Store) prune(folder string) {
	for ; strings.Contains(folder, "/") && !strings.HasPrefix(folder, store+"/"); folder = path.Dir(folder) {
		if v.root.Remove(folder) != nil { // not empty
			return
		}
	}
}
