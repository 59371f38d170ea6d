package environment

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"glasshouse/sandbox"
)

// Installer changes the environments of a shelf. A change that fails leaves all as it was.
type Installer struct {
	Store
	Environ     []string     // the environment of pip's process
	AllowBuilds bool         // packages may be built from source, which runs code of theirs
	Progress    func(string) // told what takes time
}

// open takes the shelf, waiting for others, and removes what a change that was cut off
// has left.
func (installer Installer) lockStore(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(installer.Dir, 0o755); err != nil {
		return nil, err
	}
	if release, err = installer.acquireLock(false); errors.Is(err, syscall.EWOULDBLOCK) {
		installer.Progress("waiting for another change of the environments")
		type claimed struct {
			release func()
			err     error
		}
		got := make(chan claimed, 1)
		go func() {
			release, err := installer.acquireLock(true)
			got <- claimed{release, err}
		}()
		select {
		case c := <-got:
			release, err = c.release, c.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	entries, _ := os.ReadDir(installer.Dir)
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			installer.removeUnused(e.Name())
		}
	}
	return release, nil
}

// Create makes an environment: with the packages of another, with an interpreter and the
// packages that it has, or else with those of the default one's interpreter and no
// packages.
func (installer Installer) Create(ctx context.Context, name, from, python string) (sandbox.Environment, error) {
	if err := CheckName(name); err != nil {
		return sandbox.Environment{}, err
	}
	if from != "" && python != "" {
		return sandbox.Environment{}, errors.New("an environment begins as another, or with an interpreter, not both")
	}
	release, err := installer.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	if have, err := installer.Names(); err != nil || slices.Contains(have, name) {
		return sandbox.Environment{}, errors.Join(err, fmt.Errorf("there is an environment %s already", name))
	}
	draft := draft{name: name}
	switch {
	case from != "":
		var seed *Version
		if seed, err = installer.Pin(from); err != nil {
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
		draft.lock.Python = installer.Base
		if draft.interpreter, err = Inspect(installer.Base); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return installer.build(ctx, draft)
}

// Add installs packages. What is there stays at its version, but for what is named.
func (installer Installer) Add(ctx context.Context, name string, specs []string) (sandbox.Environment, error) {
	for _, spec := range specs {
		if err := checkSpec(spec); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return installer.change(ctx, name, func(draft *draft) error {
		draft.install = specs
		draft.lock.Requested = slices.DeleteFunc(slices.Clone(draft.lock.Requested), func(old string) bool { return contains(specs, nameOf(old)) })
		draft.lock.Requested = append(draft.lock.Requested, specs...)
		draft.lock.Removed = slices.DeleteFunc(slices.Clone(draft.lock.Removed), func(old string) bool { return contains(specs, old) })
		return nil
	})
}

// Remove takes packages out, with what was installed for them alone.
func (installer Installer) Remove(ctx context.Context, name string, names []string) (sandbox.Environment, error) {
	return installer.change(ctx, name, func(draft *draft) error {
		for _, each := range names {
			if nameOf(each) != each {
				return fmt.Errorf("%.80q is not the name of a package", each)
			}
			pin := draft.lock.find(each)
			if pin == nil {
				return fmt.Errorf("%s is not in the environment %s", each, name)
			}
			if len(pin.Hashes) == 0 {
				draft.lock.Removed = append(slices.Clip(draft.lock.Removed), pin.Name)
			}
		}
		draft.lock.Requested = slices.DeleteFunc(slices.Clone(draft.lock.Requested), func(old string) bool { return contains(names, nameOf(old)) })
		var err error
		draft.uninstall, err = findUnneeded(draft.seedFolders, draft.lock, names)
		return err
	})
}

// Update makes an environment again, from the interpreter that it was made from (the
// default one: from the service's), with what was asked for at the newest versions.
func (installer Installer) Update(ctx context.Context, name string) (sandbox.Environment, error) {
	release, err := installer.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	text, err := installer.readLock(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	if text == nil {
		return sandbox.Environment{}, fmt.Errorf("nothing was added to the environment %s: it is the interpreter %s as it is", name, installer.Base)
	}
	lock, err := ParseLock(text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	draft := draft{name: name, lock: Lock{Python: lock.Python, Requested: lock.Requested, Removed: lock.Removed}, install: lock.Requested}
	if name == Default {
		draft.lock.Python = installer.Base
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
	return installer.build(ctx, draft)
}

// Delete removes an environment; those who use it keep it until they are done.
func (installer Installer) Delete(ctx context.Context, name string) error {
	release, err := installer.lockStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	if name == Default {
		return errors.New("the default environment stays: it is what a sandbox has that names none")
	}
	if _, err := installer.readLock(name); err != nil {
		return err
	}
	if err := os.Remove(installer.lockPath(name)); err != nil {
		return err
	}
	installer.removeUnused(name)
	return nil
}

// change makes an environment anew from what it is now.
func (installer Installer) change(ctx context.Context, name string, how func(*draft) error) (sandbox.Environment, error) {
	release, err := installer.lockStore(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	now, err := installer.Pin(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	// By hand: it sweeps, and the shelf is ours.
	defer func() {
		if now.dir != nil {
			_ = now.dir.Close()
		}
		installer.removeUnused(name)
	}()
	draft := draft{name: name}
	draft.startFrom(now)
	if err := how(&draft); err != nil {
		return sandbox.Environment{}, err
	}
	return installer.build(ctx, draft)
}

// making is an environment that is being made.
type draft struct {
	name        string
	interpreter Interpreter
	seedFolders []string // folders whose packages it begins with
	lock        Lock     // of what it begins with, and what was asked for
	uninstall   []string
	install     []string
}

// begin has it begin as another one.
func (draft *draft) startFrom(as *Version) {
	draft.interpreter, draft.lock, draft.seedFolders = as.Interpreter, as.Lock, as.Interpreter.Packages
}

// make makes an environment in a folder of its own, and then makes that the current one.
func (installer Installer) build(ctx context.Context, draft draft) (sandbox.Environment, error) {
	top := filepath.Join(installer.Dir, draft.name)
	if err := os.MkdirAll(top, 0o755); err != nil {
		return sandbox.Environment{}, err
	}
	defer os.Remove(top) // where nothing came of it
	fresh := filepath.Join(top, ".new-"+rand.Text())
	defer os.RemoveAll(fresh)
	if err := installer.fillFolder(ctx, fresh, &draft); err != nil {
		return sandbox.Environment{}, err
	}
	text := []byte(draft.lock.String())
	path := filepath.Join(top, digest(text))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(fresh, path); err != nil {
			return sandbox.Environment{}, err
		}
	}
	if err := replaceFile(installer.lockPath(draft.name), text); err != nil {
		return sandbox.Environment{}, err
	}
	version, err := installer.pinVersion(draft.name, text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	return version.Environment, version.dir.Close()
}

// fill makes the environment in its folder, and settles its lock.
func (installer Installer) fillFolder(ctx context.Context, fresh string, draft *draft) error {
	py := draft.interpreter
	if err := installer.venv(ctx, py.Executable, fresh, "--without-pip"); err != nil {
		return err
	}
	site := filepath.Join(fresh, sitePackages(py))
	if len(draft.seedFolders) > 0 {
		installer.Progress("taking the packages over that are there")
	}
	for _, folder := range slices.Backward(draft.seedFolders) { // the first one wins
		if err := linkPackages(ctx, folder, site); err != nil {
			return fmt.Errorf("take over %s: %w", folder, err)
		}
	}
	if len(draft.uninstall) > 0 {
		if err := installer.pip(ctx, fresh, py, append([]string{"uninstall", "--yes", "--"}, draft.uninstall...)...); err != nil {
			return err
		}
	}
	hashes := map[string]string{}
	if len(draft.install) > 0 {
		installer.Progress("installing " + strings.Join(draft.install, ", "))
		var err error
		if hashes, err = installer.install(ctx, fresh, draft); err != nil {
			return err
		}
	}
	packages, err := findPackages([]string{site})
	if err != nil {
		return err
	}
	draft.pinInstalled(packages, hashes)
	about := metadata{Interpreter: py}
	about.Interpreter.Packages = []string{sitePackages(py)}
	for _, p := range packages {
		about.Packages = append(about.Packages, p.Package)
	}
	body, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(fresh, metadataName), body, 0o644)
}

// install has pip resolve and install what is asked for; what is there, and not named,
// stays as it is. It returns the hashes of what was installed, by name.
func (installer Installer) install(ctx context.Context, fresh string, draft *draft) (map[string]string, error) {
	report, constraints := filepath.Join(fresh, ".report"), filepath.Join(fresh, ".constraints")
	var keep strings.Builder
	for _, p := range draft.lock.Packages {
		if !contains(draft.install, p.Name) {
			fmt.Fprintf(&keep, "%s==%s\n", p.Name, p.Version)
		}
	}
	if err := os.WriteFile(constraints, []byte(keep.String()), 0o644); err != nil {
		return nil, err
	}
	args := []string{"install", "--report", report, "--constraint", constraints, "--no-warn-script-location", "--progress-bar", "off"}
	if !installer.AllowBuilds {
		args = append(args, "--only-binary", ":all:")
	}
	if err := installer.pip(ctx, fresh, draft.interpreter, append(append(args, "--"), draft.install...)...); err != nil {
		return nil, err
	}
	hashes, err := readReport(report)
	return hashes, errors.Join(err, os.Remove(report), os.Remove(constraints))
}

// settle writes down what is there now: hashes are those of what was just installed.
func (draft *draft) pinInstalled(packages []installedPackage, hashes map[string]string) {
	before := draft.lock
	draft.lock.Version, draft.lock.Packages = draft.interpreter.VersionString(), nil
	for _, p := range packages {
		pin := PinnedPackage{Name: p.Name, Version: p.Version}
		if hash := hashes[normalizeName(p.Name)]; hash != "" {
			pin.Hashes = []string{hash}
		} else if old := before.find(p.Name); old != nil {
			pin.Hashes = old.Hashes
		}
		draft.lock.Packages = append(draft.lock.Packages, pin)
	}
}

// replace puts a file into the place of another in one step, and on the disk.
func replaceFile(path string, text []byte) error {
	fresh := filepath.Join(filepath.Dir(path), ".lock.new")
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
