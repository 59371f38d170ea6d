package blob

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

const (
	abandonedAge = time.Hour // a temporary file of this age belongs to a Put that was killed
	maxKeys      = 1000      // in one call of InUse
)

// InUse returns the keys that are in use, of those that it gets.
type InUse = func(keys []string) ([]string, error)

// Sweep removes bytes that are neither pinned nor in use, folders of links that are not in use, and temporary files
// that are an hour old. It returns the number of removed files and folders.
func (s *Store) Sweep(sumsInUse, foldersInUse InUse) (removed int, err error) {
	s.sweepMu.Lock()
	defer s.sweepMu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.touched = nil
	}()
	entries, err := fs.ReadDir(s.root.FS(), contentDir)
	if err != nil {
		return 0, err
	}
	fullPath := func(name string) string { return name }
	sweeps := []sweep{
		{dir: "sessions", inner: "artifacts", key: fullPath, inUse: foldersInUse},
		{dir: "outputs", key: fullPath, inUse: foldersInUse},
		{dir: "shown", key: fullPath, inUse: foldersInUse},
	}
	for _, entry := range entries {
		name := path.Join(contentDir, entry.Name())
		if entry.IsDir() {
			sweeps = append(sweeps, sweep{dir: name, key: path.Base, inUse: sumsInUse})
			continue
		}
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > abandonedAge && s.root.Remove(name) == nil {
			removed++
		}
	}
	for _, sweep := range sweeps {
		n, err := s.sweep(sweep)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// sweep is a folder whose entries are removed if they are not in use.
type sweep struct {
	dir, inner string                   // the entries are dir/*/inner; inner may be ""
	key        func(name string) string // under which inUse knows an entry
	inUse      InUse
}

func (s *Store) sweep(w sweep) (removed int, err error) {
	// The pins are read before inUse is called: if a pin has ended by now, history has recorded the use.
	s.mu.Lock()
	s.touched = maps.Clone(s.pins)
	s.mu.Unlock()
	entries, err := fs.ReadDir(s.root.FS(), w.dir)
	if err != nil {
		return 0, err
	}
	for chunk := range slices.Chunk(entries, maxKeys) {
		names, keys := make([]string, len(chunk)), make([]string, len(chunk))
		for n, entry := range chunk {
			names[n] = path.Join(w.dir, entry.Name(), w.inner)
			keys[n] = w.key(names[n])
		}
		used, err := w.inUse(keys)
		if err != nil {
			return removed, err
		}
		keep := map[string]bool{}
		for _, key := range used {
			keep[key] = true
		}
		for n, name := range names {
			if !keep[keys[n]] && s.removeUntouched(name, keys[n]) {
				removed++
			}
		}
	}
	return removed, nil
}

// removeUntouched removes a file or folder, unless Put or Link has touched it since the sweep called InUse. It reports
// whether it removed the file or folder.
func (s *Store) removeUntouched(name, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.touched[key] > 0 || s.root.RemoveAll(name) != nil {
		return false
	}
	s.removeEmpty(path.Dir(name))
	return true
}
