package isolate

import "testing"

// A command has the one set that its code needs, and one child.
func TestSetFor(t *testing.T) {
	for code, want := range map[string]string{
		"print(1)":              "bare",
		"import numpy":          "numpy",
		"import pandas as pd":   "pandas",
		"from scipy import fft": "numpy",
		"df = db_frame('x')":    "pandas",
		"import json, seaborn":  "plotting",
		"":                      "plotting", // anything may come
	} {
		if sets := WarmSetsFor(code); len(sets) != 1 || sets[0].Name != want || sets[0].Pool != 1 {
			t.Errorf("%q: %v, not %s with a pool of one", code, sets, want)
		}
	}
}
