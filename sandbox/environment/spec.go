package environment

import (
	"fmt"
	"regexp"
	"strings"
)

// Default is the environment of a sandbox whose configuration names none.
const Default = "default"

var environmentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// checkName returns an error if name cannot be the name of an environment.
func checkName(name string) error {
	if !environmentName.MatchString(name) {
		return fmt.Errorf("%.80q cannot be the name of an environment: "+
			"use 1 to 63 of a-z, 0-9, '.', '_' and '-', with a letter or digit first", name)
	}
	return nil
}

const (
	namePattern   = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	extrasPattern = `(?:\[\s*` + namePattern + `(?:\s*,\s*` + namePattern + `)*\s*\])?`
	clausePattern = `\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*`
)

var (
	packageSpec = regexp.MustCompile(`^(` + namePattern + `)\s*` + extrasPattern + `(?:` + clausePattern + `(?:,` +
		clausePattern + `)*)?$`)
	archiveName = regexp.MustCompile(`(?i)\.(whl|zip|gz|tgz|bz2|tbz|xz|txz|tlz|lz|lzma|tar|txt)$`)
)

// checkSpec returns an error if spec is not a package with an optional version. uv would also accept
// options, files and addresses, but only pip's configuration may name the sources of packages.
func checkSpec(spec string) error {
	const instead = "write the package's name, and set where packages come from in pip's configuration " +
		"(pip.conf, PIP_INDEX_URL, PIP_FIND_LINKS)"
	switch {
	case strings.HasPrefix(spec, "-"):
		return fmt.Errorf("%.80q is an option, not a package: write options of glasshouse before the packages, "+
			"and set indexes in pip's configuration (pip.conf, PIP_...)", spec)
	case strings.Contains(spec, "://") || strings.Contains(spec, "@"):
		return fmt.Errorf("%.80q is an address: %s", spec, instead)
	case strings.ContainsAny(spec, `/\`) || strings.HasPrefix(spec, ".") || archiveName.MatchString(spec):
		return fmt.Errorf("%.80q is a file: %s", spec, instead)
	case !packageSpec.MatchString(spec) || len(spec) > 200:
		return fmt.Errorf("%.80q is not a package: write NAME, NAME==VERSION or NAME[EXTRA]>=VERSION,<VERSION", spec)
	}
	return nil
}

// nameOf returns the package that a requirement names, or "" if spec is not a requirement.
func nameOf(spec string) string {
	if found := packageSpec.FindStringSubmatch(spec); found != nil {
		return found[1]
	}
	return ""
}
