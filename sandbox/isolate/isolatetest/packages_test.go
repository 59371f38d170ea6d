package isolatetest

import (
	"context"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// The packages work although only the session's folders are writable, both from the largest
// warm set and imported from disk.
func TestPackagesWorkOnEveryLevel(t *testing.T) {
	t.Parallel()
	all := isolate.WarmSets(1)
	i := Open(t, isolate.Config{WarmSets: []isolate.WarmSet{all[0], all[len(all)-1]}})
	const code = `
import getpass, io, locale, os, pathlib, sqlite3, sys, tempfile, zoneinfo, datetime
import numpy as np, pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame({"k": list("abab"), "v": np.arange(4.0)})
frame.to_csv("t.csv"); frame.to_parquet("t.parquet")
plt.plot([1, 2]); plt.savefig("artifacts/p.png"); plt.close("all")
with tempfile.TemporaryDirectory() as d:
    pathlib.Path(d, "x").write_text("y")
pathlib.Path("mine.py").write_text("answer = 42")
import mine
sqlite3.connect("t.db").execute("create table t (a)")
print(datetime.datetime.now(zoneinfo.ZoneInfo("Europe/Vienna")).tzname() is not None)
[float(pd.read_parquet("t.parquet").groupby("k")["v"].sum()["a"]), len(pd.read_csv("t.csv")), os.path.getsize("artifacts/p.png") > 1000, mine.answer,
 os.getcwd() == os.environ["HOME"], tempfile.gettempdir() == os.environ["TMPDIR"],
 getpass.getuser(), locale.setlocale(locale.LC_ALL, ""), locale.setlocale(locale.LC_ALL, "C.UTF-8"),
 sys.flags.utf8_mode,
 locale.setlocale(locale.LC_ALL, "C"), open("t.csv").encoding.lower()]`
	for set, codeHint := range map[string]string{"largest": "", "bare": "import math"} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			p := Policy()
			p.MaxExecutionTime, p.MaxMemoryMB = 60, 512
			s, err := supervisor.New(i, 30*time.Second).
				Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, codeHint)
			Must(t, err)
			e := Run(t, s, code)
			const want = `[2.0, 4, true, 42, true, true, "agent", "C.UTF-8", "C.UTF-8", 1, "C", "utf-8"]`
			if string(e.Result) != want {
				t.Errorf("got %s %s %s, want %s\n%s", e.Status, e.Result, Why(e), want, e.Stderr)
			}
			s.Close()
		})
	}
	t.Run("figures", func(t *testing.T) {
		t.Parallel()
		testPreparedPlotting(t, i)
	})
}

// testPreparedPlotting checks the preparations of the plotting zygote. It keeps fonts in
// memory, because a child can't read their files. In each child, figures are numbered from
// one and matplotlib has its default settings.
func testPreparedPlotting(t *testing.T, i *isolate.Isolator) {
	t.Helper()
	e := Run(t, NewSession(t, i, nil), `
import builtins, io, os
import matplotlib, matplotlib.font_manager as fonts, matplotlib.pyplot as plt
kept = fonts._get_font.cache_info()
font = fonts.get_font(fonts.findfont("DejaVu Sans"))
ready = [kept.currsize > 0, fonts._get_font.cache_info().misses == kept.misses, font.fname.endswith("/DejaVuSans.ttf")]
settings = {k: v for k, v in matplotlib.rcParams.items() if matplotlib.rcParamsDefault[k] != v}
unseen = [plt.get_fignums(), sorted(settings), io.open is builtins.open, plt.figure().number]
plt.plot([1, 2]); plt.title("\u00e4 $x^2$")
plt.show()
[ready, unseen, plt.get_fignums()]`)
	if want := `[[true, true, true], [[], [], true, 1], []]`; string(e.Result) != want {
		t.Errorf("got %s %s %s, want %s", e.Status, e.Result, Why(e), want)
	}
	if len(e.Outputs) != 1 {
		t.Errorf("outputs: got %d, want the figure", len(e.Outputs))
	}
}
