package isolatetest

import "testing"

// What the plotting zygote prepares is there, and nothing of it is seen: its fonts are open,
// from memory, as a child has none of its files; figures are counted from one, and
// matplotlib's settings are its own.
func TestPlotsAreReady(t *testing.T) {
	s := open(t, raiseWithout(t, []string{"numpy", "pandas", "matplotlib.pyplot"}), nil)
	e := run(t, s, `
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
		t.Errorf("%s %s, not %s: %v", e.Status, e.Result, want, e.Error)
	}
	if len(e.Outputs) != 1 {
		t.Errorf("%d outputs", len(e.Outputs))
	}
}
