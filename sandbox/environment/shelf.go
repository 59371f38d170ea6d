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
		if _, err := os.Stat(s.lock(e.Name())); err == nil && e.Name() != Default && CheckName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (s Store) lock(name string) string { return filepath.Join(s.Dir, name, "lock") }

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
	text, err := os.ReadFile(s.lock(Default))
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
type Pinned struct {
	sandbox.Environment
	Interpreter Interpreter
	Python      string // the path that it is started by
	Lock        Lock
	Packages    []sandbox.Package

	shelf Store
	dir   *os.File // under a shared lock; nil for an interpreter that is not ours
}

// Release lets the environment go; where it is no longer current, and nobody else has
// it, it is removed.
func (h *Pinned) Release() {
	if h.dir == nil {
		return
	}
	_ = h.dir.Close()
	h.dir = nil
	if release, err := h.shelf.claim(false); err == nil { // else who has the shelf sweeps
		h.shelf.sweep(h.Name)
		release()
	}
}

// Current says whether the environment is still as it was taken.
func (h *Pinned) Current() bool {
	text, err := h.shelf.read(h.Name)
	return err == nil && (text == nil && h.dir == nil || text != nil && digest(text) == h.Digest)
}

// Pin returns the environment of a name as it is now. *Missing where there is none.
func (s Store) Pin(name string) (*Pinned, error) {
	for {
		text, err := s.read(name)
		if err != nil {
			return nil, err
		}
		if text == nil {
			return s.base()
		}
		h, err := s.hold(name, text)
		if errors.Is(err, fs.ErrNotExist) {
			// Another one took its place just now, or somebody has removed the folder.
			if now, again := s.read(name); again == nil && string(now) == string(text) {
				return nil, fmt.Errorf("the folder of the environment %s is gone: `glasshouse env update --env %s` makes it again", name, name)
			}
			continue
		}
		return h, err
	}
}

// read returns the text of an environment's lock; nil for the default one where it is
// the interpreter as it is.
func (s Store) read(name string) ([]byte, error) {
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
	text, err := os.ReadFile(s.lock(name))
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return text, err
	case name == Default:
		return nil, nil
	}
	return nil, missing()
}

// base is the default environment as long as it is the interpreter as it is.
func (s Store) base() (*Pinned, error) {
	py, err := Inspect(s.Base)
	if err != nil {
		return nil, err
	}
	packages, err := scan(py.Packages)
	if err != nil {
		return nil, err
	}
	h := &Pinned{Interpreter: py, Python: s.Base, Lock: Lock{Python: s.Base, Version: py.Dotted()}, shelf: s}
	for _, p := range packages {
		h.Lock.Pins = append(h.Lock.Pins, PinnedPackage{Name: p.Name, Version: p.Version})
		h.Packages = append(h.Packages, p.Package)
	}
	h.describe(Default, h.Lock.Digest())
	return h, nil
}

// made is what is kept in the folder of an environment, of what takes time to find out.
type made struct {
	Interpreter Interpreter       `json:"interpreter"` // its Packages are below the folder
	Packages    []sandbox.Package `json:"packages"`
}

const madeName = "environment.json"

func (s Store) hold(name string, text []byte) (*Pinned, error) {
	lock, err := ParseLock(text)
	if err != nil {
		return nil, fmt.Errorf("the environment %s: %w", name, err)
	}
	path := filepath.Join(s.Dir, name, digest(text))
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := &Pinned{Python: filepath.Join(path, "bin", "python"), Lock: lock, shelf: s, dir: dir}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil { // it is being removed
		dir.Close()
		return nil, fs.ErrNotExist
	}
	var m made
	body, err := os.ReadFile(filepath.Join(path, madeName))
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	h.Interpreter, h.Packages = m.Interpreter, m.Packages
	for i, p := range h.Interpreter.Packages {
		h.Interpreter.Packages[i] = filepath.Join(path, p)
	}
	h.describe(name, digest(text))
	return h, nil
}

// describe fills in what is said of the environment.
func (h *Pinned) describe(name, digest string) {
	modules := []string{}
	for _, p := range h.Packages {
		if pin := h.Lock.pin(p.Name); pin != nil && len(pin.Hashes) > 0 {
			modules = append(modules, p.Modules...)
		}
	}
	slices.Sort(modules)
	h.Environment = sandbox.Environment{Name: name, Digest: digest, Python: h.Interpreter.Dotted(), Packages: len(h.Packages), Modules: slices.Compact(modules)}
}

// claim takes the shelf for a change; where another has it, it waits, or fails.
func (s Store) claim(wait bool) (release func(), err error) {
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
func (s Store) sweep(name string) {
	top := filepath.Join(s.Dir, name)
	text, err := os.ReadFile(s.lock(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	entries, _ := os.ReadDir(top)
	for _, e := range entries {
		if e.IsDir() && (err != nil || e.Name() != digest(text)) {
			remove(filepath.Join(top, e.Name()))
		}
	}
	if err != nil {
		_ = os.Remove(filepath.Join(top, ".lock.new"))
		_ = os.Remove(top) // where it is empty
	}
}

// remove removes a folder that nobody uses; what stays of it is the next sweep's.
func remove(path string) {
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
