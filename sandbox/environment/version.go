package environment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"glasshouse/sandbox"
)

// Version is the version of an environment that was current when Pin returned it. Its folder stays on the disk
// until Release.
type Version struct {
	sandbox.Environment
	Interpreter Interpreter
	Python      string // path of the interpreter to start
	Lock        Lock
	Packages    []sandbox.Package

	store Store
	dir   *os.File // the folder, with a shared file lock; nil if the version is the plain interpreter
}

// Release ends the use of the version. It removes the folder if the version is no longer current and has no
// other user.
func (v *Version) Release() {
	if v.dir == nil {
		return
	}
	_ = unlock(v.dir)
	v.dir = nil
	// If another process is changing the store, that process removes the folder.
	if release, err := v.store.acquireLock(false); err == nil {
		v.store.removeUnused(v.Name)
		release()
	}
}

// Current reports whether the environment has not changed since Pin.
func (v *Version) Current() bool {
	text, err := v.store.readLock(v.Name)
	return err == nil && (text == nil && v.dir == nil || text != nil && digest(text) == v.Digest)
}

// Pin returns the current version of an environment, or a NotFoundError. Call Release on the version.
func (s Store) Pin(name string) (*Version, error) {
	for {
		text, err := s.readLock(name)
		if err != nil {
			return nil, err
		}
		if text == nil {
			return s.pinBase()
		}
		v, err := s.pinVersion(name, text)
		if errors.Is(err, fs.ErrNotExist) {
			// A change has just replaced the version, or someone deleted the folder.
			if now, again := s.readLock(name); again == nil && string(now) == string(text) {
				return nil, fmt.Errorf(
					"the folder of the environment %s is missing: run `glasshouse env update --env %s`", name, name)
			}
			continue
		}
		return v, err
	}
}

// pinBase returns the default environment while it is the plain interpreter.
func (s Store) pinBase() (*Version, error) {
	python, err := Inspect(s.Base)
	if err != nil {
		return nil, err
	}
	packages, err := findPackages(python.Packages)
	if err != nil {
		return nil, err
	}
	v := &Version{Interpreter: python, Python: s.Base, Lock: Lock{Python: s.Base, Version: python.VersionString()},
		store: s}
	for _, p := range packages {
		v.Lock.Packages = append(v.Lock.Packages, PinnedPackage{Name: p.Name, Version: p.Version})
		v.Packages = append(v.Packages, p.Package)
	}
	v.describe(Default, v.Lock.Digest())
	return v, nil
}

// metadata describes a version. It is stored in the version's folder, because computing it takes time.
type metadata struct {
	Interpreter Interpreter       `json:"interpreter"` // its Packages are relative to the folder
	Packages    []sandbox.Package `json:"packages"`
	Separate    bool              `json:"separate"` // separateFiles was done; earlier versions made hard links
}

func (m metadata) write(folder string) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(folder, metadataName), body)
}

const metadataName = "environment.json"

// pinVersion returns the version with the lock text, or fs.ErrNotExist if its folder is missing or being
// removed.
func (s Store) pinVersion(name string, text []byte) (*Version, error) {
	lock, err := parseLock(text)
	if err != nil {
		return nil, fmt.Errorf("read the lock of the environment %s: %w", name, err)
	}
	path := filepath.Join(s.Dir, name, digest(text))
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	v := &Version{Python: filepath.Join(path, "bin", "python"), Lock: lock, store: s, dir: dir}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		dir.Close()
		return nil, fs.ErrNotExist // removeVersion has an exclusive lock
	}
	var about metadata
	body, err := os.ReadFile(filepath.Join(path, metadataName))
	if err == nil {
		err = json.Unmarshal(body, &about)
	}
	if err == nil && !about.Separate {
		err = about.separate(path)
	}
	if err != nil {
		_ = unlock(dir)
		return nil, err
	}
	v.Interpreter, v.Packages = about.Interpreter, about.Packages
	for i, p := range v.Interpreter.Packages {
		v.Interpreter.Packages[i] = filepath.Join(path, p)
	}
	v.describe(name, digest(text))
	return v, nil
}

// separate does separateFiles for a version that an earlier release has built. An account that may not write to the
// version leaves it as it is: neither may the guests that this account starts.
func (m metadata) separate(folder string) error {
	err := separateFiles(folder)
	if err == nil {
		m.Separate = true
		err = m.write(folder)
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil
	case errors.Is(err, fs.ErrNotExist): // another process has done the same, or the version is being removed
		return nil
	case err != nil:
		return fmt.Errorf("copy the files that %s shares with other environments: %w", folder, err)
	}
	return nil
}

// WarmPackages returns the packages that have the modules which warm interpreters import, and those that these need. It
// reads what the packages say and runs no code.
func (v *Version) WarmPackages(modules []string) ([]string, error) {
	packages, err := findPackages(v.Interpreter.Packages)
	if err != nil {
		return nil, err
	}
	var names []string
	warm := warmPackages(packages, modules)
	for _, p := range packages {
		if warm[normalizeName(p.Name)] {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// describe sets the description that executions and the API return. Its modules are those of the packages that
// the operator added: those with hashes, and those that came with the interpreter and were requested too.
func (v *Version) describe(name, digest string) {
	modules := []string{}
	for _, p := range v.Packages {
		pinned := v.Lock.find(p.Name)
		if pinned != nil && (len(pinned.Hashes) > 0 || contains(v.Lock.Requested, p.Name)) {
			modules = append(modules, p.Modules...)
		}
	}
	slices.Sort(modules)
	v.Environment = sandbox.Environment{Name: name, Digest: digest, Python: v.Interpreter.VersionString(),
		Packages: len(v.Packages), Modules: slices.Compact(modules)}
}
