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
	Environ []string     // the environment of pip's process
	Source  bool         // packages may be built from source, which runs code of theirs
	Say     func(string) // told what takes time
}

// open takes the shelf, waiting for others, and removes what a change that was cut off
// has left.
func (w Installer) open(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(w.Dir, 0o755); err != nil {
		return nil, err
	}
	if release, err = w.claim(false); errors.Is(err, syscall.EWOULDBLOCK) {
		w.Say("waiting for another change of the environments")
		type claimed struct {
			release func()
			err     error
		}
		got := make(chan claimed, 1)
		go func() {
			release, err := w.claim(true)
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
	entries, _ := os.ReadDir(w.Dir)
	for _, e := range entries {
		if e.IsDir() && CheckName(e.Name()) == nil {
			w.sweep(e.Name())
		}
	}
	return release, nil
}

// Create makes an environment: with the packages of another, with an interpreter and the
// packages that it has, or else with those of the default one's interpreter and no
// packages.
func (w Installer) Create(ctx context.Context, name, from, python string) (sandbox.Environment, error) {
	if err := CheckName(name); err != nil {
		return sandbox.Environment{}, err
	}
	if from != "" && python != "" {
		return sandbox.Environment{}, errors.New("an environment begins as another, or with an interpreter, not both")
	}
	release, err := w.open(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	if have, err := w.Names(); err != nil || slices.Contains(have, name) {
		return sandbox.Environment{}, errors.Join(err, fmt.Errorf("there is an environment %s already", name))
	}
	m := making{name: name}
	switch {
	case from != "":
		var seed *Pinned
		if seed, err = w.Pin(from); err != nil {
			return sandbox.Environment{}, err
		}
		defer seed.Release()
		m.begin(seed)
	case python != "":
		if python, err = filepath.Abs(python); err != nil {
			return sandbox.Environment{}, err
		}
		m.lock.Python = python
		if m.py, err = Inspect(python); err != nil {
			return sandbox.Environment{}, err
		}
		m.seed = m.py.Packages
	default:
		m.lock.Python = w.Base
		if m.py, err = Inspect(w.Base); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return w.make(ctx, m)
}

// Add installs packages. What is there stays at its version, but for what is named.
func (w Installer) Add(ctx context.Context, name string, specs []string) (sandbox.Environment, error) {
	for _, spec := range specs {
		if err := checkSpec(spec); err != nil {
			return sandbox.Environment{}, err
		}
	}
	return w.change(ctx, name, func(m *making) error {
		m.install = specs
		m.lock.Asked = slices.DeleteFunc(slices.Clone(m.lock.Asked), func(old string) bool { return contains(specs, nameOf(old)) })
		m.lock.Asked = append(m.lock.Asked, specs...)
		m.lock.Removed = slices.DeleteFunc(slices.Clone(m.lock.Removed), func(old string) bool { return contains(specs, old) })
		return nil
	})
}

// Remove takes packages out, with what was installed for them alone.
func (w Installer) Remove(ctx context.Context, name string, names []string) (sandbox.Environment, error) {
	return w.change(ctx, name, func(m *making) error {
		for _, each := range names {
			if nameOf(each) != each {
				return fmt.Errorf("%.80q is not the name of a package", each)
			}
			pin := m.lock.pin(each)
			if pin == nil {
				return fmt.Errorf("%s is not in the environment %s", each, name)
			}
			if len(pin.Hashes) == 0 {
				m.lock.Removed = append(slices.Clip(m.lock.Removed), pin.Name)
			}
		}
		m.lock.Asked = slices.DeleteFunc(slices.Clone(m.lock.Asked), func(old string) bool { return contains(names, nameOf(old)) })
		var err error
		m.uninstall, err = unneeded(m.seed, m.lock, names)
		return err
	})
}

// Update makes an environment again, from the interpreter that it was made from (the
// default one: from the service's), with what was asked for at the newest versions.
func (w Installer) Update(ctx context.Context, name string) (sandbox.Environment, error) {
	release, err := w.open(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	text, err := w.read(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	if text == nil {
		return sandbox.Environment{}, fmt.Errorf("nothing was added to the environment %s: it is the interpreter %s as it is", name, w.Base)
	}
	lock, err := ParseLock(text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	m := making{name: name, lock: Lock{Python: lock.Python, Asked: lock.Asked, Removed: lock.Removed}, install: lock.Asked}
	if name == Default {
		m.lock.Python = w.Base
	}
	if m.py, err = Inspect(m.lock.Python); err != nil {
		return sandbox.Environment{}, err
	}
	if name == Default || slices.ContainsFunc(lock.Pins, func(p PinnedPackage) bool { return len(p.Hashes) == 0 }) {
		m.seed = m.py.Packages
		have, err := scan(m.seed)
		if err != nil {
			return sandbox.Environment{}, err
		}
		for _, p := range have {
			if contains(lock.Removed, p.Name) {
				m.uninstall = append(m.uninstall, p.Name)
			}
		}
	}
	return w.make(ctx, m)
}

// Delete removes an environment; those who use it keep it until they are done.
func (w Installer) Delete(ctx context.Context, name string) error {
	release, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	if name == Default {
		return errors.New("the default environment stays: it is what a sandbox has that names none")
	}
	if _, err := w.read(name); err != nil {
		return err
	}
	if err := os.Remove(w.lock(name)); err != nil {
		return err
	}
	w.sweep(name)
	return nil
}

// change makes an environment anew from what it is now.
func (w Installer) change(ctx context.Context, name string, how func(*making) error) (sandbox.Environment, error) {
	release, err := w.open(ctx)
	if err != nil {
		return sandbox.Environment{}, err
	}
	defer release()
	now, err := w.Pin(name)
	if err != nil {
		return sandbox.Environment{}, err
	}
	// By hand: it sweeps, and the shelf is ours.
	defer func() {
		if now.dir != nil {
			_ = now.dir.Close()
		}
		w.sweep(name)
	}()
	m := making{name: name}
	m.begin(now)
	if err := how(&m); err != nil {
		return sandbox.Environment{}, err
	}
	return w.make(ctx, m)
}

// making is an environment that is being made.
type making struct {
	name      string
	py        Interpreter
	seed      []string // folders whose packages it begins with
	lock      Lock     // of what it begins with, and what was asked for
	uninstall []string
	install   []string
}

// begin has it begin as another one.
func (m *making) begin(as *Pinned) {
	m.py, m.lock, m.seed = as.Interpreter, as.Lock, as.Interpreter.Packages
}

// make makes an environment in a folder of its own, and then makes that the current one.
func (w Installer) make(ctx context.Context, m making) (sandbox.Environment, error) {
	top := filepath.Join(w.Dir, m.name)
	if err := os.MkdirAll(top, 0o755); err != nil {
		return sandbox.Environment{}, err
	}
	defer os.Remove(top) // where nothing came of it
	fresh := filepath.Join(top, ".new-"+rand.Text())
	defer os.RemoveAll(fresh)
	if err := w.fill(ctx, fresh, &m); err != nil {
		return sandbox.Environment{}, err
	}
	text := []byte(m.lock.String())
	path := filepath.Join(top, digest(text))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(fresh, path); err != nil {
			return sandbox.Environment{}, err
		}
	}
	if err := replace(w.lock(m.name), text); err != nil {
		return sandbox.Environment{}, err
	}
	h, err := w.hold(m.name, text)
	if err != nil {
		return sandbox.Environment{}, err
	}
	return h.Environment, h.dir.Close()
}

// fill makes the environment in its folder, and settles its lock.
func (w Installer) fill(ctx context.Context, fresh string, m *making) error {
	py := m.py
	if err := w.venv(ctx, py.Executable, fresh, "--without-pip"); err != nil {
		return err
	}
	site := filepath.Join(fresh, sitePackages(py))
	if len(m.seed) > 0 {
		w.Say("taking the packages over that are there")
	}
	for _, folder := range slices.Backward(m.seed) { // the first one wins
		if err := link(ctx, folder, site); err != nil {
			return fmt.Errorf("take over %s: %w", folder, err)
		}
	}
	if len(m.uninstall) > 0 {
		if err := w.pip(ctx, fresh, py, append([]string{"uninstall", "--yes", "--"}, m.uninstall...)...); err != nil {
			return err
		}
	}
	hashes := map[string]string{}
	if len(m.install) > 0 {
		w.Say("installing " + strings.Join(m.install, ", "))
		var err error
		if hashes, err = w.install(ctx, fresh, m); err != nil {
			return err
		}
	}
	packages, err := scan([]string{site})
	if err != nil {
		return err
	}
	m.settle(packages, hashes)
	about := made{Interpreter: py}
	about.Interpreter.Packages = []string{sitePackages(py)}
	for _, p := range packages {
		about.Packages = append(about.Packages, p.Package)
	}
	body, err := json.Marshal(about)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(fresh, madeName), body, 0o644)
}

// install has pip resolve and install what is asked for; what is there, and not named,
// stays as it is. It returns the hashes of what was installed, by name.
func (w Installer) install(ctx context.Context, fresh string, m *making) (map[string]string, error) {
	report, constraints := filepath.Join(fresh, ".report"), filepath.Join(fresh, ".constraints")
	var keep strings.Builder
	for _, p := range m.lock.Pins {
		if !contains(m.install, p.Name) {
			fmt.Fprintf(&keep, "%s==%s\n", p.Name, p.Version)
		}
	}
	if err := os.WriteFile(constraints, []byte(keep.String()), 0o644); err != nil {
		return nil, err
	}
	args := []string{"install", "--report", report, "--constraint", constraints, "--no-warn-script-location", "--progress-bar", "off"}
	if !w.Source {
		args = append(args, "--only-binary", ":all:")
	}
	if err := w.pip(ctx, fresh, m.py, append(append(args, "--"), m.install...)...); err != nil {
		return nil, err
	}
	hashes, err := readReport(report)
	return hashes, errors.Join(err, os.Remove(report), os.Remove(constraints))
}

// settle writes down what is there now: hashes are those of what was just installed.
func (m *making) settle(packages []installed, hashes map[string]string) {
	before := m.lock
	m.lock.Version, m.lock.Pins = m.py.Dotted(), nil
	for _, p := range packages {
		pin := PinnedPackage{Name: p.Name, Version: p.Version}
		if hash := hashes[normal(p.Name)]; hash != "" {
			pin.Hashes = []string{hash}
		} else if old := before.pin(p.Name); old != nil {
			pin.Hashes = old.Hashes
		}
		m.lock.Pins = append(m.lock.Pins, pin)
	}
}

// replace puts a file into the place of another in one step, and on the disk.
func replace(path string, text []byte) error {
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
