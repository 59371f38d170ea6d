package environment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Lock describes the content of an environment. Its text is a pip requirements file; fields that pip does not
// know are in comments.
type Lock struct {
	Python    string          // path of the interpreter that the environment was made from
	Version   string          // version of that interpreter
	Requested []string        // requirements, as the operator wrote them
	Removed   []string        // packages of the interpreter that the operator removed
	Packages  []PinnedPackage // every installed package, by name
}

// PinnedPackage is one package at one version.
type PinnedPackage struct {
	Name, Version string
	Hashes        []string // "sha256:..." of its archives; nil if the package came with the interpreter
}

const (
	lockTitle = "# An environment of Glasshouse. `glasshouse env` writes this file, and its SHA-256 is the digest."
	lockGiven = "  # came with the interpreter"
)

// String returns the lock's text.
func (l Lock) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n# python %s %s\n", lockTitle, l.Version, l.Python)
	for _, spec := range l.Requested {
		fmt.Fprintf(&b, "# asked %s\n", spec)
	}
	for _, name := range l.Removed {
		fmt.Fprintf(&b, "# removed %s\n", name)
	}
	for _, p := range l.Packages {
		b.WriteString(p.Name + "==" + p.Version)
		for _, h := range p.Hashes {
			b.WriteString(" --hash=" + h)
		}
		if len(p.Hashes) == 0 {
			b.WriteString(lockGiven)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Digest returns the SHA-256 of the lock's text, in hexadecimal.
func (l Lock) Digest() string { return digest([]byte(l.String())) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// find returns the package with a name, in any spelling, or nil.
func (l Lock) find(name string) *PinnedPackage {
	for i := range l.Packages {
		if normalizeName(l.Packages[i].Name) == normalizeName(name) {
			return &l.Packages[i]
		}
	}
	return nil
}

var pinnedLine = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+_*-]+)` +
	`((?: --hash=sha256:[0-9a-f]{64})*)(?:\s+#.*)?$`)

// parseLock parses the text that Lock.String returns.
func parseLock(text []byte) (Lock, error) {
	var l Lock
	for n, raw := range bytes.Split(text, []byte("\n")) {
		line := strings.TrimRight(string(raw), " \r")
		if line == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			key, value, _ := strings.Cut(comment, " ")
			switch key {
			case "python":
				l.Version, l.Python, _ = strings.Cut(value, " ")
			case "asked":
				l.Requested = append(l.Requested, value)
			case "removed":
				l.Removed = append(l.Removed, value)
			}
			continue
		}
		found := pinnedLine.FindStringSubmatch(line)
		if found == nil {
			return l, fmt.Errorf("line %d of the lock is not NAME==VERSION with hashes: %.80q", n+1, line)
		}
		p := PinnedPackage{Name: found[1], Version: found[2]}
		for word := range strings.FieldsSeq(found[3]) {
			p.Hashes = append(p.Hashes, strings.TrimPrefix(word, "--hash="))
		}
		l.Packages = append(l.Packages, p)
	}
	if l.Python == "" {
		return l, errors.New("the lock has no line `# python VERSION PATH`")
	}
	return l, nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// normalizeName returns the one spelling of a package's name that PEP 503 defines.
func normalizeName(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// contains reports whether a list of requirements or names contains the package.
func contains(list []string, name string) bool {
	return slices.ContainsFunc(list, func(spec string) bool {
		return normalizeName(nameOf(spec)) == normalizeName(name)
	})
}
