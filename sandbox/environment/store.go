package environment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Store reads the environments of a data folder.
type Store struct {
	Dir  string // folder of the environments; "" if only the default environment exists, without a lock
	Base string // path of the interpreter of the default environment, or from which that environment is made
}

// Names returns the names of all environments, the default one first.
func (s Store) Names() ([]string, error) {
	names := []string{Default}
	if s.Dir == "" {
		return names, nil
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if _, err := os.Stat(s.lockPath(e.Name())); err == nil && e.Name() != Default && checkName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (s Store) lockPath(name string) string { return filepath.Join(s.Dir, name, "lock") }

// Remember stores the path of Base for later commands, which run without the service's flags.
func (s Store) Remember() error {
	if s.Recall() == s.Base {
		return nil
	}
	return errors.Join(os.MkdirAll(s.Dir, 0o755),
		os.WriteFile(filepath.Join(s.Dir, ".base"), []byte(s.Base+"\n"), 0o644))
}

// Recall returns the path that Remember stored last, or "".
func (s Store) Recall() string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, ".base"))
	return strings.TrimSpace(string(text))
}

// Outdated returns the interpreter from which the default environment was made if it is not Base, and ""
// otherwise.
func (s Store) Outdated() string {
	text, err := os.ReadFile(s.lockPath(Default))
	if err != nil {
		return ""
	}
	if lock, err := parseLock(text); err == nil && lock.Python != s.Base {
		return lock.Python
	}
	return ""
}

// NotFoundError reports that no environment has the name.
type NotFoundError struct {
	Name string
	Have []string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no environment %.80q; choose one of: %s", e.Name, strings.Join(e.Have, ", "))
}

// readLock returns the text of an environment's lock, or nil if the default environment is the plain
// interpreter. It returns a NotFoundError if there is no environment with the name.
func (s Store) readLock(name string) ([]byte, error) {
	missing := func() error {
		have, err := s.Names()
		return errors.Join(err, &NotFoundError{name, have})
	}
	if checkName(name) != nil || s.Dir == "" && name != Default {
		return nil, missing()
	}
	if s.Dir == "" {
		return nil, nil
	}
	text, err := os.ReadFile(s.lockPath(name))
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return text, err
	case name == Default:
		return nil, nil
	}
	return nil, missing()
}

// acquireLock locks the store for a change. If another process holds the lock, it waits, or returns
// EWOULDBLOCK if wait is false.
func (s Store) acquireLock(wait bool) (release func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), how)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { _ = unlock(f) }, nil
}

// unlock releases the lock of a file and closes it. Close alone would leave the lock to a process that is being started
// at that moment: it has copies of all descriptors until it executes its program.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// removeUnused removes the folders of an environment that are neither current nor in use. The caller holds
// the store's lock.
func (s Store) removeUnused(name string) {
	top := filepath.Join(s.Dir, name)
	text, err := os.ReadFile(s.lockPath(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	entries, _ := os.ReadDir(top)
	for _, e := range entries {
		if e.IsDir() && (err != nil || e.Name() != digest(text)) {
			removeVersion(filepath.Join(top, e.Name()))
		}
	}
	if err != nil {
		_ = os.Remove(filepath.Join(top, ".lock.new"))
		_ = os.Remove(top) // fails unless it is empty
	}
}

// removeVersion removes a folder unless a process uses it. The next removeUnused removes folders that remain.
func removeVersion(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	// The lock is held until the folder has another name, so that Pin does not return a half-removed folder.
	if syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		dir.Close()
		return
	}
	defer unlock(dir)
	if top, name := filepath.Split(path); !strings.HasPrefix(name, ".") {
		gone := filepath.Join(top, ".gone-"+name)
		if os.Rename(path, gone) != nil {
			return
		}
		path = gone
	}
	_ = os.RemoveAll(path)
}
