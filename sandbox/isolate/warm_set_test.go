package isolate

import "testing"

func TestWarmSetsForChoosesTheSmallestSet(t *testing.T) {
	for code, want := range map[string]string{
		"print(1)":              "bare",
		"import numpy":          "numpy",
		"import pandas as pd":   "pandas",
		"from scipy import fft": "numpy",
		"df = db_frame('x')":    "pandas",
		"import json, seaborn":  "plotting",
		"":                      "plotting", // the code is not known
	} {
		if sets := WarmSetsFor(code); len(sets) != 1 || sets[0].Name != want || sets[0].Pool != 1 {
			t.Errorf("WarmSetsFor(%q): got %v, want %s with a pool of one", code, sets, want)
		}
	}
}
