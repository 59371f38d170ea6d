package isolatetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/environment/environmenttest"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/zygote"
)

// installLab makes environments of the test's own: in addition to the default one, "lab" with the
// package tinypack.
func installLab(t *testing.T) environment.Installer {
	t.Helper()
	wheels, offline := environmenttest.Environ(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack.py": "version = '1.0'\n"})
	environmenttest.Wheel(
		t,
		wheels,
		"broken",
		"1.0",
		map[string]string{"numpy/__init__.py": "raise SystemExit('it breaks')\n"},
	)
	dir, err := os.MkdirTemp("", "gh")
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	Must(t, os.Chmod(dir, 0o755)) // so that the sandboxes' accounts can enter it
	store := environment.Store{Dir: filepath.Join(dir, "environments"), Base: Python(t)}
	installer := environment.Installer{Store: store, Environ: offline, Progress: func(step string) { t.Log(step) }}
	if _, err = installer.Create(t.Context(), "lab", "", ""); err == nil {
		_, err = installer.Add(t.Context(), "lab", []string{"tinypack"})
	}
	Must(t, err)
	return installer
}

// An unused environment runs no zygote, and starts one again when a session uses it. A
// version whose zygotes can't start does not replace a working version.
func TestUnusedEnvironmentRunsNoZygote(t *testing.T) {
	t.Parallel()
	if Level() != "" {
		return // the run for the strongest level tests the other levels itself
	}
	levels := []string{isolate.LevelLandlock, ""}
	if testing.Short() {
		levels = levels[1:]
	}
	installer := installLab(t)
	for _, level := range levels {
		t.Run("level "+level, func(t *testing.T) {
			i := Open(t, isolate.Config{EnvironmentsDir: installer.Dir, Level: level,
				WarmSets: []isolate.WarmSet{
					{Name: "bare", Pool: 1},
					{Name: "numpy", Modules: []string{"numpy"}, Pool: 1},
				},
				Recycle: isolate.RecyclePolicy{IdleTimeout: 300 * time.Millisecond}, Log: t.Logf})
			Eventually(t, "the default zygotes run", func() bool { return i.Ready() == nil })
			useLabTwice(t, i, installer.Dir)
			if level == "" && !testing.Short() {
				breakDefault(t, i, installer)
			}
		})
	}
}

// Without namespaces zygotes have no root of their own. Those of an environment find no file of another one's.
func TestEnvironmentsHaveFoldersOfTheirOwn(t *testing.T) {
	t.Parallel()
	if Level() != "" {
		return // the run for the strongest level tests this one
	}
	installer := installLab(t)
	work := filepath.Join(filepath.Dir(installer.Dir), "work")
	packages, err := filepath.Glob(installer.Dir + "/lab/*/lib/python3*/site-packages")
	Must(t, err)
	if len(packages) != 1 {
		t.Fatalf("the packages of lab: got %v", packages)
	}
	const code = `import os
folder = os.environ["TMPDIR"]
open(folder + "/of-lab", "w").close()
try:
    others = os.listdir(os.path.dirname(folder))
except OSError as error:
    others = type(error).__name__
`
	Must(t, os.Mkdir(packages[0]+"/warmpack", 0o755))
	Must(t, os.WriteFile(packages[0]+"/warmpack/__init__.py", []byte(code), 0o644))
	i := Open(t, isolate.Config{EnvironmentsDir: installer.Dir, Level: isolate.LevelLandlock, WorkDir: work,
		WarmSets: []isolate.WarmSet{{Name: "lab", Modules: []string{"json", "warmpack"}, Pool: 1}}, Log: t.Logf})
	Eventually(t, "the default zygotes run", func() bool { return i.Ready() == nil })
	s := NewSession(t, i, func(p *policy.Policy) { p.Environment = "lab" })
	defer s.Close()
	if e := Run(t, s, "import warmpack\nwarmpack.others"); string(e.Result) != `"PermissionError"` {
		t.Errorf("the folders of all environments, in a zygote: got %s %s, want PermissionError", e.Result, Why(e))
	}
	folders, err := os.ReadDir(zygote.WarmDir(work))
	Must(t, err)
	found, err := filepath.Glob(zygote.WarmDir(work) + "/*/of-lab")
	if err != nil || len(folders) != 2 || len(found) != 1 {
		t.Errorf("folders of two environments: got %v, and the file of one in %v, %v", folders, found, err)
	}
}

// An isolation that is closed does not wait for a package whose import never ends.
func TestCloseDoesNotWaitForAnImport(t *testing.T) {
	t.Parallel()
	if Level() != "" {
		return // the run for the strongest level tests this one
	}
	installer := installLab(t)
	packages, err := filepath.Glob(installer.Dir + "/lab/*/lib/python3*/site-packages")
	Must(t, err)
	Must(t, os.Mkdir(packages[0]+"/warmpack", 0o755))
	Must(t, os.WriteFile(packages[0]+"/warmpack/__init__.py", []byte("import time\ntime.sleep(600)\n"), 0o644))
	for _, level := range []string{isolate.LevelLandlock, ""} {
		i, err := isolate.Open(withDefaults(t, isolate.Config{EnvironmentsDir: installer.Dir, Level: level, Log: t.Logf,
			WarmSets: []isolate.WarmSet{{Name: "lab", Modules: []string{"json", "warmpack"}, Pool: 1}}}))
		Must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p := isolate.ProcessSpec{Policy: policy.Default()}
			p.Policy.Environment = "lab"
			if _, err := i.Start(ctx, p); err == nil {
				t.Errorf("level %q: a process started", level)
			}
		}()
		Eventually(t, "the zygote of lab imports", func() bool { return len(zygotesUsing(installer.Dir)) > 0 })
		cancel()
		<-ended
		began := time.Now()
		i.Close()
		if took := time.Since(began); took > 20*time.Second { // the import may take a minute
			t.Errorf("level %q: Close took %s", level, took)
		}
	}
}

func useLabTwice(t *testing.T, i *isolate.Isolator, environmentsDir string) {
	t.Helper()
	for range 2 {
		if pids := zygotesUsing(environmentsDir); len(pids) > 0 {
			t.Errorf("zygotes of an unused environment: got %v, want none", pids)
		}
		s := NewSession(t, i, func(p *policy.Policy) { p.Environment = "lab" })
		if e := Run(t, s, "import tinypack\ntinypack.version"); string(e.Result) != `"1.0"` ||
			e.Environment.Name != "lab" {
			t.Errorf(`the version of lab's package: got %s %s %s, want "1.0"`, e.Status, e.Result, Why(e))
		}
		if len(zygotesUsing(environmentsDir)) == 0 {
			t.Error("zygotes of a used environment: got none")
		}
		s.Close()
		Eventually(t, "the zygote of lab ends", func() bool { return len(zygotesUsing(environmentsDir)) == 0 })
	}
}

// breakDefault installs a numpy that can't be imported in the default environment.
func breakDefault(t *testing.T, i *isolate.Isolator, installer environment.Installer) {
	t.Helper()
	before := i.Environments()[0]
	if _, err := installer.Remove(t.Context(), environment.Default, []string{"numpy"}); err == nil {
		t.Error("remove numpy, which pandas needs: got no error")
	}
	if _, err := installer.Add(t.Context(), environment.Default, []string{"broken"}); err != nil {
		t.Fatal(err)
	}
	if err := i.Refresh(t.Context()); err == nil {
		t.Error("Refresh with an environment whose zygotes can't start: got no error")
	}
	if after := i.Environments()[0]; after.Digest != before.Digest || i.Ready() != nil {
		t.Errorf("the default environment: got %+v (%v), want %+v", after, i.Ready(), before)
	}
	if e := Run(t, NewSession(t, i, nil), "import numpy\nint(numpy.arange(3).sum())"); string(e.Result) != "3" {
		t.Errorf("a run in the default environment: got %s %s, want 3", e.Status, e.Result)
	}
}
