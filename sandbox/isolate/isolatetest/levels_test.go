package isolatetest

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"glasshouse/policy"
	"glasshouse/sandbox/isolate"
)

// An ordinary user who may make namespaces gets a level that uses them.
func TestOrdinaryUserGetsNamespaces(t *testing.T) {
	t.Parallel()
	if Level() != isolate.LevelWithoutCgroups || os.Geteuid() == 0 {
		return // only the run for this level as an ordinary user tests this
	}
	// No layer of the level rlimits would protect the files of the service's account.
	i, err := isolate.Open(isolate.Config{Python: Python(t), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}},
		DefaultPolicy: policy.Default(), Level: isolate.LevelRLimits, Log: t.Logf})
	if err == nil {
		i.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "no layer would protect its files") {
		t.Errorf("the level rlimits as an ordinary user: got %v, want an error", err)
	}
	probe := exec.Command("/bin/true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	if probe.Run() != nil {
		return
	}
	i, err = isolate.Open(isolate.Config{Python: Python(t), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}},
		DefaultPolicy: policy.Default(), Log: t.Logf})
	Must(t, err)
	defer i.Close()
	if level, reasons := i.Level(); !hasNamespaces(level) {
		t.Errorf("got the level %s (%s), want one with namespaces", level, reasons)
	}
}

// A folder that only root may pass is not usable by sandboxes with accounts of their own.
func TestFolderThatSandboxesCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || HasNamespaces() && Level() != "" {
		return
	}
	folder := searchableDir(t)
	Must(t, os.Chmod(folder, 0o700))
	i, err := isolate.Open(isolate.Config{Python: Python(t), WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}},
		DefaultPolicy: policy.Default(), Level: isolate.LevelLandlock, WorkDir: folder + "/work", Log: t.Logf})
	if err == nil {
		i.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "cannot pass through "+folder) {
		t.Errorf("got %v, want an error that names %s", err, folder)
	}
}

func TestMinLevelRejectsWeakerLevels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ level, minLevel, message string }{
		{isolate.LevelLandlock, isolate.LevelFull, "weaker than the minimum"},
		{"best", "", "unknown isolation level"},
		{"", "most", "unknown minimum isolation level"},
	} {
		i, err := isolate.Open(
			isolate.Config{Python: Python(t), WarmSets: isolate.WarmSets(1), DefaultPolicy: policy.Default(),
				Level: c.level, MinLevel: c.minLevel, Log: t.Logf},
		)
		if err == nil {
			i.Close()
			t.Errorf("level %q, minimum %q: got no error", c.level, c.minLevel)
		} else if !strings.Contains(err.Error(), c.message) {
			t.Errorf("level %q, minimum %q: got %v, want %q", c.level, c.minLevel, err, c.message)
		}
	}
}
