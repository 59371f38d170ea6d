// Package blob stores the files that executions leave, in a content-addressed store: each content once, under the
// SHA-256 sum of its bytes. Links give contents names:
//
//	artifacts/ab/abcd...                 the bytes
//	sessions/SANDBOX/artifacts/PATH      the newest version of a sandbox's file, as a hard link to the bytes
//	outputs/EXECUTION/PATH               likewise for a run in a sandbox of its own
//	shown/EXECUTION/NAME                 likewise for a large part of a rich output
//
// History knows which contents are in use, by whom and for how long. A caller therefore goes these steps, in order:
//
//  1. Put writes the bytes and pins them: Sweep removes no pinned bytes.
//  2. Sync makes them durable.
//  3. The caller records in history who uses them.
//  4. Link names them.
//  5. Unpin ends the pin. From now on Sweep removes the bytes as soon as history does not know them.
//
// One Store may use a folder at a time. A Store has no goroutines of its own, and its methods may be called from many
// goroutines at once. Names come from user code, so all paths are resolved within an os.Root, which they cannot leave.
package blob

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
	"slices"
	"sync"

	"glasshouse/sandbox"
)

// Store is a content-addressed store in a folder. The caller closes it.
type Store struct {
	dir  string
	root *os.Root

	mu   sync.Mutex     // held to remove files, to link them, and for the maps
	pins map[string]int // calls of Put without their Unpin, by sum
	// touched counts, since the running sweep last asked what is in use, the sums of Put and the folders of Link. It is
	// nil if no sweep runs.
	touched map[string]int

	sweepMu sync.Mutex // held by the one sweep that runs
}

const (
	contentDir  = "artifacts"
	tempPrefix  = ".new-" // of a file that is being written or linked
	sniffBytes  = 512     // of a content, which tell its MIME type
	maxParallel = 16      // syncs at a time: the disk does many in little more time than one
)

// Open opens the store in dir, which must exist, and makes the missing folders in it.
func Open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the blob store: %w", err)
	}
	for _, name := range []string{contentDir, "sessions", "outputs", "shown"} {
		if err := root.MkdirAll(name, 0o700); err != nil {
			return nil, errors.Join(fmt.Errorf("open the blob store: %w", err), root.Close())
		}
	}
	return &Store{dir: dir, root: root, pins: map[string]int{}}, nil
}

// Close closes the folder.
func (s *Store) Close() error { return s.root.Close() }

// contentPath returns where the bytes with a sum are.
func contentPath(sum string) string { return path.Join(contentDir, sum[:2], sum) }

// Put stores the bytes of body, if they are not there, and pins them until Unpin. It returns an artifact with their
// size, sum and MIME type, for which name is a hint. The bytes survive a loss of power after Sync.
func (s *Store) Put(name string, body io.Reader) (a sandbox.Artifact, err error) {
	temp := path.Join(contentDir, tempPrefix+rand.Text())
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return a, fmt.Errorf("store an artifact: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = s.root.Remove(temp) // after a success it has its final name
		if err != nil {
			err = fmt.Errorf("store an artifact: %w", err)
		}
	}()
	sum, head := sha256.New(), &headBuffer{}
	if a.Size, err = io.Copy(io.MultiWriter(f, sum, head), body); err != nil {
		return a, err
	}
	a.SHA256, a.MIME = hex.EncodeToString(sum.Sum(nil)), sandbox.MIMEType(name, head.bytes)
	target := contentPath(a.SHA256)
	s.mu.Lock()
	s.pins[a.SHA256]++
	s.touch(a.SHA256)
	_, err = s.root.Lstat(target)
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.Unpin([]string{a.SHA256})
		}
	}()
	if !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	if err = s.root.MkdirAll(path.Dir(target), 0o700); err != nil {
		return a, err
	}
	return a, s.root.Rename(temp, target)
}

// headBuffer keeps the first bytes that are written to it.
type headBuffer struct{ bytes []byte }

func (b *headBuffer) Write(p []byte) (int, error) {
	b.bytes = append(b.bytes, p[:min(len(p), sniffBytes-len(b.bytes))]...)
	return len(p), nil
}

// touch tells a running sweep that a sum or a folder is in use again. The caller holds mu.
func (s *Store) touch(key string) {
	if s.touched != nil {
		s.touched[key]++
	}
}

// Unpin ends pins of Put: once for each call of Put, after history has recorded the use, or if there will be none.
func (s *Store) Unpin(sums []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sum := range sums {
		if s.pins[sum]--; s.pins[sum] <= 0 {
			delete(s.pins, sum)
		}
	}
}

// Sync returns when the bytes with the sums, and their names, survive a loss of power.
func (s *Store) Sync(sums []string) error {
	var files, folders []string
	for _, sum := range sums {
		files, folders = append(files, contentPath(sum)), append(folders, path.Dir(contentPath(sum)))
	}
	slices.Sort(folders)
	return errors.Join(s.syncAll(files), s.syncAll(slices.Compact(folders)), s.syncAll([]string{contentDir}))
}

func (s *Store) syncAll(names []string) error {
	var workers sync.WaitGroup
	next := make(chan int)
	errs := make([]error, len(names))
	for range min(maxParallel, len(names)) {
		workers.Go(func() {
			for n := range next {
				f, err := s.root.Open(names[n])
				if err == nil {
					err = errors.Join(f.Sync(), f.Close())
				}
				errs[n] = err
			}
		})
	}
	for n := range names {
		next <- n
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}

// Open opens the bytes with a sum. It returns fs.ErrNotExist if there are none, or if sum is no SHA-256 sum.
func (s *Store) Open(sum string) (*os.File, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, fs.ErrNotExist
	}
	return s.root.Open(contentPath(sum))
}
