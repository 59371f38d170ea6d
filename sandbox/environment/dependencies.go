package environment

import (
	"fmt"
	"slices"
)

// unneeded are the packages to take out with those of names: what was installed for them
// and is needed by nothing else. lock says what is asked for without them. The error names
// a package that stays and needs one of them.
func findUnneeded(folders []string, lock Lock, names []string) ([]string, error) {
	packages, err := findPackages(folders)
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	var keep func(name string)
	keep = func(name string) {
		if name = normalizeName(name); needed[name] || contains(names, name) {
			return
		}
		needed[name] = true
		for _, p := range packages {
			if normalizeName(p.Name) == name {
				for _, n := range p.possibleDependencies {
					keep(n)
				}
			}
		}
	}
	for _, p := range packages { // what came with the interpreter stays until it is named
		if pin := lock.find(p.Name); pin == nil || len(pin.Hashes) == 0 || contains(lock.Requested, p.Name) {
			keep(p.Name)
		}
	}
	var out []string
	for _, p := range packages {
		if !needed[normalizeName(p.Name)] {
			out = append(out, p.Name)
			continue
		}
		for _, name := range names {
			if slices.ContainsFunc(p.dependencies, func(n string) bool { return normalizeName(n) == normalizeName(name) }) {
				return nil, fmt.Errorf("%s needs %s: remove that, too", p.Name, name)
			}
		}
	}
	return out, nil
}
