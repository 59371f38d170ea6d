// Package blob stores the artifacts of executions in a content-addressed store: each content once, under the SHA-256
// sum of its bytes. Hard links give the contents names:
//
//	artifacts/ab/abcd...                 the bytes
//	sessions/SANDBOX/artifacts/PATH      a link to the newest version of a sandbox's file
//	outputs/EXECUTION/PATH               a link to a file of a run that had its own sandbox
//	shown/EXECUTION/NAME                 a link to a large part of a rich output
//
// History knows which contents are in use, who uses them and for how long. A caller stores a file in these steps:
//
//  1. Put writes the bytes and pins them: Sweep removes no pinned bytes.
//  2. Sync makes them durable.
//  3. The caller records in history who uses the bytes.
//  4. Link gives them a name.
//  5. Unpin ends the pin. From now on Sweep removes the bytes if history does not list them as used.
//
// Only one Store may change a folder at a time; others may read. A Store starts no goroutines and is safe for
// concurrent use. User code chooses the names, so all paths are resolved within an os.Root, which they cannot leave.
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
	// touched counts the sums of Put and the folders of Link since the running sweep last called InUse. It is nil if no
	// sweep runs.
	touched map[string]int

	sweepMu sync.Mutex // held by the one sweep that runs
}

const (
	contentDir  = "artifacts"
	tempPrefix  = ".new-" // of a file that is being written or linked
	sniffBytes  = 512     // first bytes of a content that determine its MIME type
	maxParallel = 16      // parallel syncs: a disk does many in little more time than one
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

// contentPath returns the path of the bytes with a sum.
func contentPath(sum string) string { return path.Join(contentDir, sum[:2], sum) }

// Put stores the bytes of body, unless the store has them, and pins them until Unpin. It returns an artifact with their
// size, sum and MIME type; name is a hint for the type. The bytes survive a loss of power after Sync.
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

// Unpin ends the pin of one call of Put. Call it once for each Put, after history has recorded the use, or when the
// bytes will not be used.
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

// Open opens the bytes with a sum. It returns fs.ErrNotExist if the store does not have them or sum is not a SHA-256
// sum.
func (s *Store) Open(sum string) (*os.File, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, fs.ErrNotExist
	}
	return s.root.Open(contentPath(sum))
}
