package environment

import (
	"fmt"
	"regexp"
	"strings"
)

// Default is the environment of a sandbox that names none.
const Default = "default"

var environmentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// CheckName says what is wrong with the name of an environment.
func CheckName(name string) error {
	if !environmentName.MatchString(name) {
		return fmt.Errorf("%.80q cannot be the name of an environment: use 1 to 63 of a-z, 0-9, '.', '_' and '-', with a letter or digit first", name)
	}
	return nil
}

const (
	packagePart = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	clausePart  = `\s*(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*`
)

var (
	packageSpec = regexp.MustCompile(`^(` + packagePart + `)\s*(?:\[\s*` + packagePart + `(?:\s*,\s*` + packagePart + `)*\s*\])?(?:` + clausePart + `(?:,` + clausePart + `)*)?$`)
	archive     = regexp.MustCompile(`(?i)\.(whl|zip|gz|tgz|bz2|tbz|xz|txz|tlz|lz|lzma|tar|txt)$`)
)

// checkSpec says what is wrong with what the operator asked for as a package. What pip
// would take as an option, a file or an address is refused: where packages come from is
// said in pip's own configuration, and nowhere else.
func checkSpec(spec string) error {
	const instead = "name the package; where packages come from is for pip's own configuration (pip.conf, PIP_INDEX_URL, PIP_FIND_LINKS) to say"
	switch {
	case strings.HasPrefix(spec, "-"):
		return fmt.Errorf("%.80q is an option, not a package: options of glasshouse come before the packages, and pip takes its own from its configuration (pip.conf, PIP_...)", spec)
	case strings.Contains(spec, "://") || strings.Contains(spec, "@"):
		return fmt.Errorf("%.80q is an address: %s", spec, instead)
	case strings.ContainsAny(spec, `/\`) || strings.HasPrefix(spec, ".") || archive.MatchString(spec):
		return fmt.Errorf("%.80q is a file: %s", spec, instead)
	case !packageSpec.MatchString(spec) || len(spec) > 200:
		return fmt.Errorf("%.80q is no package: write NAME, NAME==VERSION or NAME[EXTRA]>=VERSION,<VERSION", spec)
	}
	return nil
}

// nameOf is the package that a requirement is about; "" where it is none.
func nameOf(spec string) string {
	if found := packageSpec.FindStringSubmatch(spec); found != nil {
		return found[1]
	}
	return ""
}
