package environment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Lock says what an environment is made of. Its text is a requirements file of pip's,
// whose comments hold what pip has no word for.
type Lock struct {
	Python    string          // the interpreter that it was made from
	Version   string          // of that
	Requested []string        // requirements, as the operator gave them
	Removed   []string        // packages of the interpreter's that the operator took out
	Packages  []PinnedPackage // all that is there, by name
}

// PinnedPackage is one package at one version.
type PinnedPackage struct {
	Name, Version string
	Hashes        []string // as in sha256:ab12; none where it came with the interpreter
}

const (
	lockTitle = "# An environment of Glasshouse. `glasshouse env` writes this file, and its SHA-256 is the digest."
	lockGiven = "  # came with the interpreter"
)

// String is the lock's text.
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

// Digest is the name of what the lock describes.
func (l Lock) Digest() string { return digest([]byte(l.String())) }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// pin finds a package of the lock by its name, in any spelling.
func (l Lock) find(name string) *PinnedPackage {
	for i := range l.Packages {
		if normalizeName(l.Packages[i].Name) == normalizeName(name) {
			return &l.Packages[i]
		}
	}
	return nil
}

var pinned = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!+_*-]+)((?: --hash=sha256:[0-9a-f]{64})*)(?:\s+#.*)?$`)

// ParseLock reads a lock's text.
func ParseLock(text []byte) (Lock, error) {
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
		found := pinned.FindStringSubmatch(line)
		if found == nil {
			return l, fmt.Errorf("line %d of the lock is no pinned package: %.80q", n+1, line)
		}
		p := PinnedPackage{Name: found[1], Version: found[2]}
		for word := range strings.FieldsSeq(found[3]) {
			p.Hashes = append(p.Hashes, strings.TrimPrefix(word, "--hash="))
		}
		l.Packages = append(l.Packages, p)
	}
	if l.Python == "" {
		return l, fmt.Errorf("the lock names no interpreter")
	}
	return l, nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// normal is a package's name in its one spelling.
func normalizeName(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// contains says whether a list of requirements or names has one of a package.
func contains(list []string, name string) bool {
	return slices.ContainsFunc(list, func(spec string) bool { return normalizeName(nameOf(spec)) == normalizeName(name) })
}
