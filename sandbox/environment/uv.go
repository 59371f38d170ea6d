package environment

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// uvConfig is a Python program that prints pip's configuration as settings of uv. scripts/setup also runs it.
//
//go:embed uvconfig.py
var uvConfig string

// command returns a command that is killed, with all its children, when ctx ends.
func (in Installer) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.Clone(in.Environ)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// run runs a command and returns its stdout and stderr. Pdeathsig kills the process when the thread that
// started it ends, so the thread is locked until the process ends.
func run(cmd *exec.Cmd) (stdout, stderr []byte, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err = cmd.Run()
	return out.Bytes(), messages.Bytes(), err
}

// createVenv makes a virtual environment without packages at path.
func (in Installer) createVenv(ctx context.Context, python, path string) error {
	if _, stderr, err := run(in.command(ctx, python, "-I", "-m", "venv", "--without-pip", path)); err != nil {
		return fmt.Errorf("make a virtual environment with %s: %w: %s", python, err, summarize(string(stderr)))
	}
	return nil
}

// uvPath returns the path of the uv that scripts/setup fetched into the data folder, or else of the uv in PATH.
func (in Installer) uvPath() (string, error) {
	tools := filepath.Join(filepath.Dir(in.Dir), "tools")
	folders := []string{tools}
	for _, variable := range slices.Backward(in.Environ) {
		if list, ok := strings.CutPrefix(variable, "PATH="); ok {
			folders = append(folders, filepath.SplitList(list)...)
			break
		}
	}
	for _, folder := range folders {
		path := filepath.Join(folder, "uv")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("uv was not found in %s or in PATH: run scripts/setup, or `pip install uv`", tools)
}

// uv runs `uv pip` with args for the interpreter and returns its stdout. The error has uv's reason.
func (in Installer) uv(ctx context.Context, python Interpreter, args ...string) ([]byte, error) {
	program, err := in.uvPath()
	if err != nil {
		return nil, err
	}
	settings, stderr, err := run(in.command(ctx, python.Executable, "-I", "-S", "-c", uvConfig))
	if err != nil {
		return nil, fmt.Errorf("read pip's configuration: %w: %s", err, summarize(string(stderr)))
	}
	command := []string{"pip", args[0], "--quiet", "--no-progress", "--python", python.Executable}
	var variables []string
	for line := range strings.Lines(string(settings)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "--") && args[0] == "uninstall": // which reads no index
		case strings.HasPrefix(line, "--"):
			command = append(command, line)
		default:
			variables = append(variables, line)
		}
	}
	cmd := in.command(ctx, program, append(command, args[1:]...)...)
	// Reflinks need the cache on the file system of the environments. UV_CACHE_DIR of the operator takes precedence.
	cache := "UV_CACHE_DIR=" + filepath.Join(filepath.Dir(in.Dir), "cache", "uv")
	cmd.Env = slices.Concat([]string{cache, "UV_PYTHON_DOWNLOADS=never"}, cmd.Env, variables)
	cmd.Dir = in.Dir // in the caller's folder, uv would read a uv.toml or pyproject.toml
	stdout, stderr, err := run(cmd)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		hint := ""
		if !in.AllowBuilds && strings.Contains(string(stderr), "no usable wheels") {
			hint = "\n  (only wheels are installed: --source allows builds, which run code of the package here)"
		}
		reason := summarize(string(stderr))
		if reason == "" {
			reason = err.Error() // such as the signal of a file size limit
		}
		return nil, fmt.Errorf("uv: %s%s", reason, hint)
	}
	return stdout, nil
}

// install resolves and installs the draft's requirements into the virtual environment at folder. An installed
// package keeps its version unless a requirement names it. install returns the hashes of the new packages, by name.
//
// uv first resolves without installing, then looks up the hashes of exactly those versions, and then
// installs them and verifies the hashes. uv's link mode is copy, because clone makes hard links where the file system
// has no reflinks. A copy shares blocks where it has them.
func (in Installer) install(ctx context.Context, folder string, draft *draft) (map[string][]string, error) {
	// The files of the installation are not in the environment, where a package could replace them.
	work, err := os.MkdirTemp(filepath.Dir(folder), ".install-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	files := map[string]string{"constraints": filepath.Join(work, "constraints"), "in": filepath.Join(work, "in"),
		"lock": filepath.Join(work, "pylock.toml")}
	var constraints strings.Builder
	for _, p := range draft.lock.Packages {
		if !contains(draft.install, p.Name) {
			fmt.Fprintf(&constraints, "%s==%s\n", p.Name, p.Version)
		}
	}
	if err := os.WriteFile(files["constraints"], []byte(constraints.String()), 0o644); err != nil {
		return nil, err
	}
	var policy []string
	if !in.AllowBuilds {
		policy = []string{"--only-binary", ":all:"}
	}
	plan, err := in.uv(ctx, draft.interpreter, slices.Concat([]string{"install", "--dry-run", "--output-format", "json",
		"--prefix", folder, "--constraints", files["constraints"]}, policy, []string{"--"}, draft.install)...)
	if err != nil {
		return nil, err
	}
	requirements, err := plannedPackages(plan)
	if err != nil {
		return nil, err
	}
	if requirements == "" {
		return nil, nil
	}
	if err := os.WriteFile(files["in"], []byte(requirements), 0o644); err != nil {
		return nil, err
	}
	if _, err := in.uv(ctx, draft.interpreter, slices.Concat([]string{"compile", "--no-deps", "--no-header",
		"--no-annotate", "--output-file", files["lock"]}, policy, []string{"--", files["in"]})...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(files["lock"])
	if err != nil {
		return nil, err
	}
	hashes, err := lockedHashes(string(text))
	if err != nil {
		return nil, err
	}
	_, err = in.uv(ctx, draft.interpreter, slices.Concat([]string{"install", "--no-deps", "--compile-bytecode",
		"--link-mode", "copy", "--prefix", folder}, policy, []string{"--requirements", files["lock"]})...)
	return hashes, err
}

// uninstall removes packages from the virtual environment at folder.
func (in Installer) uninstall(ctx context.Context, folder string, draft *draft) error {
	_, err := in.uv(ctx, draft.interpreter, append([]string{"uninstall", "--prefix", folder, "--"},
		draft.uninstall...)...)
	return err
}

// plannedPackages returns the packages that a dry run of `uv pip install` would install, as requirements.
func plannedPackages(plan []byte) (string, error) {
	var report struct {
		Changes []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
			Action  string `json:"action"`
		} `json:"changes"`
	}
	if len(bytes.TrimSpace(plan)) == 0 { // nothing to do
		return "", nil
	}
	if err := json.Unmarshal(plan, &report); err != nil {
		return "", fmt.Errorf("read uv's plan: %w", err)
	}
	var requirements strings.Builder
	for _, change := range report.Changes {
		if change.Action == "installed" {
			fmt.Fprintf(&requirements, "%s==%s\n", change.Name, change.Version)
		}
	}
	return requirements.String(), nil
}

var (
	lockedName = regexp.MustCompile(`(?m)^name = "([^"]+)"$`)
	lockedHash = regexp.MustCompile(`sha256 = "([0-9a-f]{64})"`)
)

// lockedHashes returns the SHA-256 hashes of each package's archives in a pylock.toml that uv wrote, by name.
func lockedHashes(text string) (map[string][]string, error) {
	hashes := map[string][]string{}
	for _, block := range strings.Split(text, "[[packages]]")[1:] {
		name := lockedName.FindStringSubmatch(block)
		found := lockedHash.FindAllStringSubmatch(block, -1)
		if name == nil || len(found) == 0 {
			return nil, fmt.Errorf("uv's lock has no SHA-256 for a package: %.200q", block)
		}
		for _, match := range found {
			hashes[normalizeName(name[1])] = append(hashes[normalizeName(name[1])], "sha256:"+match[1])
		}
		slices.Sort(hashes[normalizeName(name[1])])
		hashes[normalizeName(name[1])] = slices.Compact(hashes[normalizeName(name[1])])
	}
	return hashes, nil
}

var credentials = regexp.MustCompile(`://[^/@\s]+@`)

// summarize returns at most eight lines of uv's messages: those that give the reason of a failure.
func summarize(messages string) string {
	var kept []string
	for line := range strings.Lines(messages) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"error: ", "cause: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line == "" || strings.HasPrefix(line, "warning: ") || strings.HasPrefix(line, "Using ") ||
			line == "No solution found when resolving dependencies" {
			continue
		}
		kept = append(kept, oneLine(credentials.ReplaceAllString(line, "://***@"), 300))
	}
	return strings.Join(kept[:min(len(kept), 8)], "\n  ")
}
