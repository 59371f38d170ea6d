package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDataSetsNeedANameAndAnExistingPath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{ // "" is an error
		"a=" + dir:                              "a=" + dir,
		"b=" + dir + "/x.csv,a=" + dir + "/../": "a=" + filepath.Dir(dir) + ",b=" + dir + "/x.csv",
		dir:                                     "",
		"a":                                     "",
		"=" + dir:                               "",
		"a/b=" + dir:                            "",
		"..=" + dir:                             "",
		"a=" + dir + "/missing":                 "",
		"":                                      "",
	} {
		var d dataSets
		err := d.Set(text)
		if want == "" && err == nil || want != "" && (err != nil || d.String() != want) {
			t.Errorf("--data %q: got %q, %v, want %q", text, d.String(), err, want)
		}
	}
}
