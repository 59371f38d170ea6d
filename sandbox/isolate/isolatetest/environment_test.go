package isolatetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/environment/environmenttest"
	"glasshouse/sandbox/isolate"
)

// shelf is environments of the test's own, with one beside the default one: "lab", which
// has the package tinypack.
func shelf(t *testing.T) environment.Installer {
	t.Helper()
	wheels := environmenttest.Pip(t)
	environmenttest.Wheel(t, wheels, "tinypack", "1.0", map[string]string{"tinypack.py": "version = '1.0'\n"})
	environmenttest.Wheel(t, wheels, "broken", "1.0", map[string]string{"numpy/__init__.py": "raise SystemExit('it breaks')\n"})
	dir, err := os.MkdirTemp("", "gh") // the sandboxes' accounts can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := environment.Installer{Store: environment.Store{Dir: filepath.Join(dir, "environments"), Base: os.Getenv("GLASSHOUSE_PYTHON")}, Environ: os.Environ(), Progress: func(step string) { t.Log(step) }}
	if _, err = w.Create(t.Context(), "lab", "", ""); err == nil {
		_, err = w.Add(t.Context(), "lab", []string{"tinypack"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// An environment that nobody has used for a while costs nothing, and is there again when
// it is; one whose zygotes can't start never takes the place of one whose can.
func TestEnvironmentsComeWhenTheyAreWanted(t *testing.T) {
	if os.Getenv(levelKey) != "" {
		return // the run for the best level tries the levels that differ
	}
	closeShared() // zygotes finds this one's only
	w := shelf(t)
	for _, level := range []string{isolate.LevelLandlock, ""} {
		t.Run("level "+level, func(t *testing.T) {
			i, err := isolate.Open(isolate.Config{Python: w.Base, EnvironmentsDir: w.Dir, WarmSets: []isolate.WarmSet{{Name: "bare", Pool: 1}, {Name: "numpy", Modules: []string{"numpy"}, Pool: 1}}, DefaultPolicy: policy.Default(), Level: level,
				Recycle: isolate.RecyclePolicy{IdleTimeout: 300 * time.Millisecond}, Log: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(i.Close)
			eventually(t, "the default zygotes", func() bool { return i.Ready() == nil })
			comeAndGo(t, i)
			if level == "" {
				breakDefault(t, i, w)
			}
		})
	}
}

// comeAndGo uses the environment lab twice.
func comeAndGo(t *testing.T, i *isolate.Isolator) {
	t.Helper()
	const own = 2
	if now := len(zygotes()); now != own {
		t.Fatalf("%d zygotes before anybody wants one of lab", now-own)
	}
	for range 2 {
		s := open(t, i, func(p *policy.Policy) { p.Environment = "lab" })
		if e := run(t, s, "import tinypack\ntinypack.version"); string(e.Result) != `"1.0"` || e.Environment.Name != "lab" {
			t.Errorf("%s %s %v", e.Status, e.Result, e.Error)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		eventually(t, "the zygote of lab goes", func() bool { return len(zygotes()) == own })
	}
}

// breakDefault puts a numpy into the default environment that can't be imported.
func breakDefault(t *testing.T, i *isolate.Isolator, w environment.Installer) {
	t.Helper()
	before := i.Environments()[0]
	if _, err := w.Remove(t.Context(), environment.Default, []string{"numpy"}); err == nil {
		t.Error("numpy was removed, and pandas needs it")
	}
	if _, err := w.Add(t.Context(), environment.Default, []string{"broken"}); err != nil {
		t.Fatal(err)
	}
	if err := i.Refresh(t.Context()); err == nil {
		t.Error("an environment whose zygotes can't start was taken")
	}
	if after := i.Environments()[0]; after.Digest != before.Digest || i.Ready() != nil {
		t.Errorf("%+v in the place of %+v: %v", after, before, i.Ready())
	}
	s := open(t, i, nil)
	if e := run(t, s, "import numpy\nint(numpy.arange(3).sum())"); string(e.Result) != "3" {
		t.Errorf("%s %s", e.Status, e.Result)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
