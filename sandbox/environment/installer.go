package environment

import (
	"context"
	"crypto/rand"
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

// Installer changes the environments of a store. A change that fails leaves every environment as it was.
type Installer struct {
	Store
	Environ      []string     // environment variables of uv's process
	AllowBuilds  bool         // allow builds from source, which run code of the package
	WarmModules  []string     // top-level modules that warm interpreters import, each from the package with its name
	GuestModules []string     // modules of Glasshouse that precede those of packages
	Progress     func(string) // called with each step that takes time, and with what the operator should know
}

// lockStore locks the store for a change, waiting for other changes until ctx ends, and removes what an
// interrupted change left. Call release when the change is over.
func (in Installer) lockStore(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(in.Dir, 0o755); err != nil {
		return nil, err
	}
	if release, err = in.acquireLock(false); errors.Is(err, syscall.EWOULDBLOCK) {
		in.Progress("waiting until another change of the environments has ended")
		release, err = in.waitForLock(ctx)
	}
	if err != nil {
		return nil, err
	}
	_ = os.RemoveAll(filepath.Join(in.Dir, ".pip")) // earlier versions kept pip there
	entries, _ := os.ReadDir(in.Dir)
	for _, e := range entries {
		if e.IsDir() && checkName(e.Name()) == nil {
			in.removeUnused(e.Name())
		}
	}
	return release, nil
}

func (in Installer) waitForLock(ctx context.Context) (release func(), err error) {
	type result struct {
		release func()
		err     error
	}
	results := make(chan result, 1)
	go func() {
		release, err := in.acquireLock(true)
		results <- result{release, err}
	}()
	select {
	case r := <-results:
		return r.release, r.err
	case <-ctx.Done():
		go func() { // flock cannot be cancelled: release the lock when it succeeds
			if r := <-results; r.err == nil {
				r.release()
			}
		}()
		return nil, ctx.Err()
	}
}

// Create makes an environment. It starts with the packages of the environment from, or with the interpreter
// python and that interpreter's packages. If both are empty, the new environment has the default
// environment's interpreter and no packages.
func (in Installer) Create(ctx context.Context, name, from, python string) (sandbox.Environment, error) {
	if err := checkName(name); err != nil {
		return sandbox.Environment{}, err
	}
	if from != "" && python != "" {
		return sandbox.Environment{}, errors.New("--from and --python were both given: use only one of them")
	}
	release, err := in.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	if have, err := in.Names(); err != nil || slices.Contains(have, name) {
		return sandbox.Environment{}, errors.Join(err,
			fmt.Errorf("an environment with the name %s exists: choose another name", name))
	}
	draft := draft{name: name}
	switch {
	case from != "":
		var seed *Version
		if seed, err = in.Pin(from); err != nil {
			return sandbox.Environment{}, err
		}
		defer seed.Release()
		draft.startFrom(seed)
	case python != "":
		if python, err = filepath.Abs(python); err != nil {
			return sandbox.Environment{}, err
		}
		draft.lock.Python = python
		if draft.interpreter, err = Inspect(python); err != nil {
			return sandbox.Environment{}, err
		}
		draft.seedFolders = draft.interpreter.Packages
	default:
		draft.lock.Python = in.Base
		if draft.interpreter, err = Inspect(in.Base); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return in.build(ctx, draft)
}

// Add installs packages. Installed packages keep their version, unless specs names them.
func (in Installer) Add(ctx context.Context, name string, specs []string) (sandbox.Environment, error) {
	for _, spec := range specs {
		if err := checkSpec(spec); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return in.change(ctx, name, func(draft *draft) error {
		draft.install = specs
		draft.lock.Requested = slices.DeleteFunc(slices.Clone(draft.lock.Requested), func(old string) bool {
			return contains(specs, nameOf(old))
		})
		draft.lock.Requested = append(draft.lock.Requested, specs...)
		draft.lock.Removed = slices.DeleteFunc(slices.Clone(draft.lock.Removed), func(old string) bool {
			return contains(specs, old)
		})
		return nil
	})
}

// Remove uninstalls packages and those that were installed only because these packages depend on them.
func (in Installer) Remove(ctx context.Context, name string, names []string) (sandbox.Environment, error) {
	return in.change(ctx, name, func(draft *draft) error {
		for _, each := range names {
			if nameOf(each) != each {
				return fmt.Errorf("%.80q is not the name of a package: write only the name, without a version", each)
			}
			installed := draft.lock.find(each)
			if installed == nil {
				return fmt.Errorf(
					"the package %s is not in the environment %s: `glasshouse env show %s` lists its packages",
					each,
					name,
					name,
				)
			}
			if len(installed.Hashes) == 0 {
				draft.lock.Removed = append(slices.Clip(draft.lock.Removed), installed.Name)
			}
		}
		draft.lock.Requested = slices.DeleteFunc(slices.Clone(draft.lock.Requested), func(old string) bool {
			return contains(names, nameOf(old))
		})
		var err error
		draft.uninstall, err = findUnneeded(draft.seedFolders, draft.lock, names)
		return err
	})
}

// Update builds an environment anew from its interpreter (default: from the service's interpreter), with
// the newest versions that the requested packages allow.
func (in Installer) Update(ctx context.Context, name string) (sandbox.Environment, error) {
	release, err := in.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	text, err := in.readLock(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	if text == nil {
		return sandbox.Environment{}, fmt.Errorf(
			"the environment %s has no packages of its own to update: it is the interpreter %s", name, in.Base)
	}
	lock, err := parseLock(text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	draft := draft{name: name, install: lock.Requested,
		lock: Lock{Python: lock.Python, Requested: lock.Requested, Removed: lock.Removed}}
	if name == Default {
		draft.lock.Python = in.Base
	}
	if draft.interpreter, err = Inspect(draft.lock.Python); err != nil {
		return sandbox.Environment{}, err
	}
	if name == Default || slices.ContainsFunc(lock.Packages, func(p PinnedPackage) bool { return len(p.Hashes) == 0 }) {
		draft.seedFolders = draft.interpreter.Packages
		have, err := findPackages(draft.seedFolders)
		if err != nil {
			return sandbox.Environment{}, err
		}
		for _, p := range have {
			if contains(lock.Removed, p.Name) {
				draft.uninstall = append(draft.uninstall, p.Name)
			}
		}
	}
	return in.build(ctx, draft)
}

// Delete removes an environment. Its folder stays until the last user of the environment releases it.
func (in Installer) Delete(ctx context.Context, name string) error {
	release, err := in.lockStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	if name == Default {
		return errors.New("the default environment cannot be deleted: sandboxes that name no environment use it")
	}
	if _, err := in.readLock(name); err != nil {
		return err
	}
	if err := os.Remove(in.lockPath(name)); err != nil {
		return err
	}
	in.removeUnused(name)
	return nil
}

// change builds a new version of an environment from the current one; edit changes the draft.
func (in Installer) change(ctx context.Context, name string, edit func(*draft) error) (sandbox.Environment, error) {
	release, err := in.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	now, err := in.Pin(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	// Release is not used, because it would lock the store, which this change has locked.
	defer func() {
		if now.dir != nil {
			_ = unlock(now.dir)
		}
		in.removeUnused(name)
	}()
	draft := draft{name: name}
	draft.startFrom(now)
	if err := edit(&draft); err != nil {
		return sandbox.Environment{}, err
	}
	return in.build(ctx, draft)
}

// draft describes a version before it is built.
type draft struct {
	name        string
	interpreter Interpreter
	seedFolders []string // folders whose packages it starts with
	lock        Lock     // the packages that it starts with, and the requested packages
	uninstall   []string
	install     []string
}

// startFrom starts a draft with all packages of another version.
func (d *draft) startFrom(v *Version) {
	d.interpreter, d.lock, d.seedFolders = v.Interpreter, v.Lock, v.Interpreter.Packages
}

// build builds a draft in a new folder and then makes that folder the current version.
func (in Installer) build(ctx context.Context, draft draft) (sandbox.Environment, error) {
	top := filepath.Join(in.Dir, draft.name)
	if err := os.MkdirAll(top, 0o755); err != nil {
		return sandbox.Environment{}, err
	}
	defer os.Remove(top) // fails unless it is empty, which it is after a failed Create
	fresh := filepath.Join(top, ".new-"+rand.Text())
	defer os.RemoveAll(fresh)
	if err := in.buildFolder(ctx, fresh, &draft); err != nil {
		return sandbox.Environment{}, err
	}
	text := []byte(draft.lock.String())
	path := filepath.Join(top, digest(text))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(fresh, path); err != nil {
			return sandbox.Environment{}, err
		}
	}
	if err := replaceFile(in.lockPath(draft.name), text); err != nil {
		return sandbox.Environment{}, err
	}
	v, err := in.pinVersion(draft.name, text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	return v.Environment, unlock(v.dir)
}

// buildFolder makes the virtual environment of a draft in its folder and completes the draft's lock.
func (in Installer) buildFolder(ctx context.Context, folder string, draft *draft) error {
	if err := in.createVenv(ctx, draft.interpreter.Executable, folder); err != nil {
		return err
	}
	own, err := listFiles(folder)
	if err != nil {
		return err
	}
	own[metadataName] = true
	site := filepath.Join(folder, sitePackages(draft.interpreter))
	if len(draft.seedFolders) > 0 {
		in.Progress("copying the installed packages")
	}
	for _, seed := range slices.Backward(draft.seedFolders) { // Python prefers the first folder, so it is copied last
		if err := copyPackages(ctx, seed, site); err != nil {
			return fmt.Errorf("copy the packages of %s: %w", seed, err)
		}
	}
	if len(draft.uninstall) > 0 {
		if err := in.uninstall(ctx, folder, draft); err != nil {
			return err
		}
	}
	hashes := map[string][]string{}
	if len(draft.install) > 0 {
		in.Progress("installing " + strings.Join(draft.install, ", "))
		if hashes, err = in.install(ctx, folder, draft); err != nil {
			return err
		}
	}
	packages, err := findPackages([]string{site})
	if err != nil {
		return err
	}
	if err := in.checkFiles(ctx, folder, site, draft, own, packages, hashes); err != nil {
		return err
	}
	draft.pinInstalled(packages, hashes)
	about := metadata{Interpreter: draft.interpreter, Separate: true}
	about.Interpreter.Packages = []string{sitePackages(draft.interpreter)}
	for _, p := range packages {
		about.Packages = append(about.Packages, p.Package)
	}
	return errors.Join(separateFiles(folder), about.write(folder))
}

// sitePackages returns the folder of packages in a virtual environment, relative to the environment.
func sitePackages(python Interpreter) string {
	return filepath.Join("lib", fmt.Sprintf("python%d.%d", python.Version[0], python.Version[1]), "site-packages")
}

// pinInstalled writes the installed packages into the draft's lock. hashes has the hashes of the newly
// installed packages; other packages keep their earlier hashes.
func (d *draft) pinInstalled(packages []installedPackage, hashes map[string][]string) {
	before := d.lock
	d.lock.Version, d.lock.Packages = d.interpreter.VersionString(), nil
	for _, p := range packages {
		pinned := PinnedPackage{Name: p.Name, Version: p.Version}
		if new := hashes[normalizeName(p.Name)]; new != nil {
			pinned.Hashes = new
		} else if old := before.find(p.Name); old != nil {
			pinned.Hashes = old.Hashes
		}
		d.lock.Packages = append(d.lock.Packages, pinned)
	}
}

// replaceFile replaces a file in one step, and returns when the change is on the disk.
func replaceFile(path string, text []byte) error {
	fresh := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// ignoreMissing returns nil if err says that a file does not exist, and err otherwise.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
