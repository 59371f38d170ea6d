package isolate

import (
	"regexp"
	"strings"
)

// WarmSet is a set of modules that a zygote imports, with the size of its pool of children.
type WarmSet struct {
	Name    string
	Modules []string // imported before the fork
	Pool    int      // number of waiting children
}

// WarmSets returns the warm sets from small to large. Each set includes the modules of the
// smaller sets. A fork copies the page tables of all imported modules, so a smaller set forks
// faster: bare takes a quarter of the time of plotting.
func WarmSets(pool int) []WarmSet {
	return []WarmSet{
		{"bare", []string{}, pool},
		{"numpy", []string{"numpy"}, max(1, pool/4)},
		{"pandas", []string{"numpy", "pandas"}, max(1, pool/2)},
		{"plotting", []string{"numpy", "pandas", "matplotlib.pyplot"}, max(2, pool/2)},
	}
}

// WarmSetsFor returns the one warm set that code needs, with one waiting child, for a service
// that runs only this code.
func WarmSetsFor(code string) []WarmSet {
	all := WarmSets(1)
	set := all[smallestSet(all, code)]
	set.Pool = 1
	return []WarmSet{set}
}

// warmModules maps the packages that code imports to the warm module that speeds this
// up. A child imports other packages from disk, which is slower.
var warmModules = map[string]string{
	"numpy": "numpy", "scipy": "numpy", "sklearn": "numpy",
	"pandas": "pandas", "pyarrow": "pandas", "plotly": "pandas",
	"matplotlib": "matplotlib.pyplot", "seaborn": "matplotlib.pyplot",
}

var (
	importPattern = regexp.MustCompile(`\b(?:import|from)[ \t]+([\w., \t]+)`)
	namePattern   = regexp.MustCompile(`\w+`)
)

// smallestSet returns the index of the first set with all modules that code seems to import.
// A wrong guess only costs time. Empty code means that the code is not known yet; it gets the
// largest set.
func smallestSet(sets []WarmSet, code string) int {
	if code == "" {
		return len(sets) - 1
	}
	wanted := map[string]bool{}
	for _, statement := range importPattern.FindAllStringSubmatch(code, -1) {
		for _, name := range namePattern.FindAllString(statement[1], -1) {
			if module := warmModules[name]; module != "" {
				wanted[module] = true
			}
		}
	}
	if strings.Contains(code, "db_frame") {
		wanted["pandas"] = true
	}
	for n, set := range sets {
		found := 0
		for _, module := range set.Modules {
			if wanted[module] {
				found++
			}
		}
		if found == len(wanted) {
			return n
		}
	}
	return len(sets) - 1
}
