package isolate

import (
	"regexp"
	"strings"
)

// WarmSet is one warm set of packages: a zygote has them imported, and children of it
// wait in a pool.
type WarmSet struct {
	Name    string
	Modules []string // imported before the fork
	Pool    int      // children that wait ready
}

// WarmSets are the warm sets from small to large; each has the packages of those before
// it. A fork copies the page tables of all that is imported, so the smaller set is
// the faster one: bare takes a quarter of plotting.
func WarmSets(pool int) []WarmSet {
	return []WarmSet{
		{"bare", []string{}, pool},
		{"numpy", []string{"numpy"}, max(1, pool/4)},
		{"pandas", []string{"numpy", "pandas"}, max(1, pool/2)},
		{"plotting", []string{"numpy", "pandas", "matplotlib.pyplot"}, max(2, pool/2)},
	}
}

// WarmSetsFor is the one set that code needs, of which one child waits: for who runs nothing else.
func WarmSetsFor(code string) []WarmSet {
	all := WarmSets(1)
	one := all[smallest(all, code)]
	one.Pool = 1
	return []WarmSet{one}
}

// needs says which packages bring which others with them; what is not here is
// imported from disk, which always works and takes its time.
var needs = map[string]string{
	"numpy": "numpy", "scipy": "numpy",
	"pandas": "pandas", "pyarrow": "pandas", "plotly": "pandas",
	"matplotlib": "matplotlib.pyplot", "seaborn": "matplotlib.pyplot",
}

var imported = regexp.MustCompile(`\b(?:import|from)[ \t]+([\w., \t]+)`)
var word = regexp.MustCompile(`\w+`)

// smallest is the first of sets that has all that code seems to import. A wrong
// guess costs time only. Where code is "", anything may come: the largest.
func smallest(sets []WarmSet, code string) int {
	if code == "" {
		return len(sets) - 1
	}
	wanted := map[string]bool{}
	for _, line := range imported.FindAllStringSubmatch(code, -1) {
		for _, name := range word.FindAllString(line[1], -1) {
			if module := needs[name]; module != "" {
				wanted[module] = true
			}
		}
	}
	if strings.Contains(code, "db_frame") {
		wanted["pandas"] = true
	}
	for n, set := range sets {
		found := 0
		for _, m := range set.Modules {
			if wanted[m] {
				found++
			}
		}
		if found == len(wanted) {
			return n
		}
	}
	return len(sets) - 1
}
