package environment

import (
	"fmt"
	"slices"
)

// findUnneeded returns names and the packages to uninstall with them: packages that were installed as their
// dependencies and that no other package needs. lock lists the requested packages without names. The error
// names a package that stays and depends on one of names.
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
				for _, dependency := range p.possibleDependencies {
					keep(dependency)
				}
			}
		}
	}
	for _, p := range packages { // packages of the interpreter are removed only by name
		if pinned := lock.find(p.Name); pinned == nil || len(pinned.Hashes) == 0 || contains(lock.Requested, p.Name) {
			keep(p.Name)
		}
	}
	var unneeded []string
	for _, p := range packages {
		if !needed[normalizeName(p.Name)] {
			unneeded = append(unneeded, p.Name)
			continue
		}
		for _, name := range names {
			if slices.ContainsFunc(p.dependencies,
				func(d string) bool { return normalizeName(d) == normalizeName(name) }) {
				return nil, fmt.Errorf("%s needs %s: remove %s, too", p.Name, name, p.Name)
			}
		}
	}
	return unneeded, nil
}
