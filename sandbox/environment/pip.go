package environment

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

//go:embed pip.py
var pipProgram string

// venv makes a virtual environment at path, which then has no packages.
func (installer Installer) venv(ctx context.Context, python, path string, more ...string) error {
	cmd := installer.command(ctx, python, append([]string{"-I", "-m", "venv", path}, more...)...)
	if out, err := run(cmd); err != nil {
		return fmt.Errorf("make a virtual environment with %s: %w: %s", python, err, shortly(string(out)))
	}
	return nil
}

// command is one that ends, with all that it has started, when ctx does.
func (installer Installer) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = installer.Environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// run runs a command and returns what it said. The thread stays its parent: with that it
// would die, too.
func run(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}

// ownPip is a folder that has pip, for interpreters of this version: made once, and
// apart from every environment.
func (installer Installer) ownPip(ctx context.Context, py Interpreter) (string, error) {
	top := filepath.Join(installer.Dir, ".pip")
	dir := filepath.Join(top, py.VersionString())
	site := filepath.Join(dir, sitePackages(py))
	if _, err := os.Stat(filepath.Join(site, "pip")); err == nil {
		return site, nil
	}
	installer.Progress("setting pip up for Python " + py.VersionString())
	fresh := filepath.Join(top, ".new-"+py.VersionString())
	err := os.RemoveAll(fresh)
	if err == nil {
		err = installer.venv(ctx, py.Executable, fresh)
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	return site, errors.Join(err, ignoreMissing(os.RemoveAll(fresh)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sitePackages is where a virtual environment has its packages.
func sitePackages(py Interpreter) string {
	return filepath.Join("lib", fmt.Sprintf("python%d.%d", py.Version[0], py.Version[1]), "site-packages")
}

// pip runs one of pip's commands on the virtual environment at path. The error says what
// pip said, shortly.
func (installer Installer) pip(ctx context.Context, path string, py Interpreter, args ...string) error {
	own, err := installer.ownPip(ctx, py)
	if err != nil {
		return err
	}
	site := filepath.Join(path, sitePackages(py))
	all := append([]string{"-I", "-S", "-c", pipProgram, path, site, own, args[0], "--no-input", "--disable-pip-version-check"}, args[1:]...)
	cmd := installer.command(ctx, filepath.Join(path, "bin", "python"), all...)
	cmd.Dir = path // where no file is named as a package might be
	out, err := run(cmd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		hint := ""
		if !installer.AllowBuilds && strings.Contains(string(out), "No matching distribution") {
			hint = "\n  (only wheels are taken: --source allows builds, which run code of the package on this machine)"
		}
		return fmt.Errorf("pip: %s%s", shortly(string(out)), hint)
	}
	return nil
}

// fetched is what pip's report says of one package that it installed.
type fetched struct {
	Download struct {
		Archive struct {
			Hash   string            `json:"hash"`
			Hashes map[string]string `json:"hashes"`
		} `json:"archive_info"`
	} `json:"download_info"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// hash is the SHA-256 of the archive, as a requirements file has it.
func (f fetched) hash() string {
	if sum := f.Download.Archive.Hashes["sha256"]; sum != "" {
		return "sha256:" + sum
	}
	return strings.Replace(f.Download.Archive.Hash, "=", ":", 1)
}

// readReport returns the hashes of what pip installed, by its name.
func readReport(path string) (map[string]string, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report struct {
		Install []fetched `json:"install"`
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return nil, fmt.Errorf("read pip's report: %w", err)
	}
	hashes := map[string]string{}
	for _, f := range report.Install {
		if hashes[normalizeName(f.Metadata.Name)] = f.hash(); !strings.HasPrefix(f.hash(), "sha256:") {
			return nil, fmt.Errorf("pip gives no SHA-256 for %s", f.Metadata.Name)
		}
	}
	return hashes, nil
}

// noise begins the lines of pip's that say nothing of what went wrong.
var noise = []string{"Looking in ", "Collecting ", "Processing ", "Requirement already", "Using cached", "Downloading ", "Installing ", "Preparing ", "Getting requirements",
	"Building ", "Obtaining ", "Found existing", "Uninstalling ", "Successfully ", "WARNING: ", "INFO: ", "[notice]", "DEPRECATION", "To fix this you could"}

// shortly is what matters of what pip said.
func shortly(out string) string {
	var kept []string
lines:
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "ERROR: "))
		for _, n := range noise {
			if strings.HasPrefix(line, n) {
				continue lines
			}
		}
		if line != "" {
			kept = append(kept, oneLine(line, 300))
		}
	}
	if len(kept) == 0 {
		return "it failed, and did not say why"
	}
	return strings.Join(kept[max(0, len(kept)-8):], "\n  ")
}
