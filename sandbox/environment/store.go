package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"glasshouse/sandbox"
)

// Store is the environments of a data folder.
type Store struct {
	Dir  string // where they are; "" where there is the default one alone, as the interpreter is
	Base string // the interpreter that the default one is, or was made from
}

// Names are those of all environments, the default one first.
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
		if _, err := os.Stat(s.lockPath(e.Name())); err == nil && e.Name() != Default && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (s Store) lockPath(name string) string { return filepath.Join(s.Dir, name, "lock") }

// Remember writes down which interpreter the default environment is made from.
func (s Store) Remember() error {
	if s.Recall() == s.Base {
		return nil
	}
	return errors.Join(os.MkdirAll(s.Dir, 0o755), os.WriteFile(filepath.Join(s.Dir, ".base"), []byte(s.Base+"\n"), 0o644))
}

// Recall is what was last written down; "" where nothing was.
func (s Store) Recall() string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, ".base"))
	return strings.TrimSpace(string(text))
}

// Outdated is the interpreter that the default environment was made from, where that is
// another one than it should be.
func (s Store) Outdated() string {
	text, err := os.ReadFile(s.lockPath(Default))
	if err != nil {
		return ""
	}
	if lock, err := ParseLock(text); err == nil && lock.Python != s.Base {
		return lock.Python
	}
	return ""
}

// NotFoundError is the error where there is no environment of a name.
type NotFoundError struct {
	Name string
	Have []string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no environment %.80q; there are: %s", e.Name, strings.Join(e.Have, ", "))
}

// Pinned is an environment as it was when it was taken. It stays on the disk until it is
// released.
type Version struct {
	sandbox.Environment
	Interpreter Interpreter
	Python      string // the path that it is started by
	Lock        Lock
	Packages    []sandbox.Package

	store Store
	dir   *os.File // under a shared lock; nil for an interpreter that is not ours
}

// Release lets the environment go; where it is no longer current, and nobody else has
// it, it is removed.
func (version *Version) Release() {
	if version.dir == nil {
		return
	}
	_ = version.dir.Close()
	version.dir = nil
	if release, err := version.store.acquireLock(false); err == nil { // else who has the shelf sweeps
		version.store.removeUnused(version.Name)
		release()
	}
}

// Current says whether the environment is still as it was taken.
func (version *Version) Current() bool {
	text, err := version.store.readLock(version.Name)
	return err == nil && (text == nil && version.dir == nil || text != nil && digest(text) == version.Digest)
}

// Pin returns the environment of a name as it is now. *Missing where there is none.
func (s Store) Pin(name string) (*Version, error) {
	for {
		text, err := s.readLock(name)
		if err != nil {
			return nil, err
		}
		if text == nil {
			return s.pinBase()
		}
		version, err := s.pinVersion(name, text)
		if errors.Is(err, fs.ErrNotExist) {
			// Another one took its place just now, or somebody has removed the folder.
			if now, again := s.readLock(name); again == nil && string(now) == string(text) {
				return nil, fmt.Errorf("the folder of the environment %s is gone: `glasshouse env update --env %s` makes it again", name, name)
			}
			continue
		}
		return version, err
	}
}

// read returns the text of an environment's lock; nil for the default one where it is
// the interpreter as it is.
func (s Store) readLock(name string) ([]byte, error) {
	missing := func() error {
		have, err := s.Names()
		return errors.Join(err, &NotFoundError{name, have})
	}
	if CheckName(name) != nil || s.Dir == "" && name != Default {
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

// base is the default environment as long as it is the interpreter as it is.
func (s Store) pinBase() (*Version, error) {
	py, err := Inspect(s.Base)
	if err != nil {
		return nil, err
	}
	packages, err := findPackages(py.Packages)
	if err != nil {
		return nil, err
	}
	version := &Version{Interpreter: py, Python: s.Base, Lock: Lock{Python: s.Base, Version: py.VersionString()}, store: s}
	for _, p := range packages {
		version.Lock.Packages = append(version.Lock.Packages, PinnedPackage{Name: p.Name, Version: p.Version})
		version.Packages = append(version.Packages, p.Package)
	}
	version.describe(Default, version.Lock.Digest())
	return version, nil
}

// made is what is kept in the folder of an environment, of what takes time to find out.
type metadata struct {
	Interpreter Interpreter       `json:"interpreter"` // its Packages are below the folder
	Packages    []sandbox.Package `json:"packages"`
}

const metadataName = "environment.json"

func (s Store) pinVersion(name string, text []byte) (*Version, error) {
	lock, err := ParseLock(text)
	if err != nil {
		return nil, fmt.Errorf("the environment %s: %w", name, err)
	}
	path := filepath.Join(s.Dir, name, digest(text))
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	version := &Version{Python: filepath.Join(path, "bin", "python"), Lock: lock, store: s, dir: dir}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil { // it is being removed
		dir.Close()
		return nil, fs.ErrNotExist
	}
	var m metadata
	body, err := os.ReadFile(filepath.Join(path, metadataName))
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	version.Interpreter, version.Packages = m.Interpreter, m.Packages
	for i, p := range version.Interpreter.Packages {
		version.Interpreter.Packages[i] = filepath.Join(path, p)
	}
	version.describe(name, digest(text))
	return version, nil
}

// describe fills in what is said of the environment.
func (version *Version) describe(name, digest string) {
	modules := []string{}
	for _, p := range version.Packages {
		if pin := version.Lock.find(p.Name); pin != nil && len(pin.Hashes) > 0 {
			modules = append(modules, p.Modules...)
		}
	}
	slices.Sort(modules)
	version.Environment = sandbox.Environment{Name: name, Digest: digest, Python: version.Interpreter.VersionString(), Packages: len(version.Packages), Modules: slices.Compact(modules)}
}

// claim takes the shelf for a change; where another has it, it waits, or fails.
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
	return func() { _ = f.Close() }, nil
}

// sweep removes what is left of an environment but the folder that is current, and those
// that somebody uses. The caller has the shelf.
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
		_ = os.Remove(top) // where it is empty
	}
}

// remove removes a folder that nobody uses; what stays of it is the next sweep's.
func removeVersion(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	defer dir.Close() // not before it has another name: who takes it meanwhile would have half of it
	if syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	if top, name := filepath.Split(path); !strings.HasPrefix(name, ".") {
		gone := filepath.Join(top, ".gone-"+name)
		if os.Rename(path, gone) != nil {
			return
		}
		path = gone
	}
	_ = os.RemoveAll(path)
}
