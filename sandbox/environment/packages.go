package environment

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// installed is one package as it lies on the disk.
type installedPackage struct {
	sandbox.Package
	dependencies         []string // packages, but those of extras and of other machines
	possibleDependencies []string // these, too
}

// maxMetadata bounds what is read of a package's description of itself.
const maxMetadata = 256 << 10

// scan finds the packages in folders, by name; the first folder that has one wins, as
// it does in Python.
func findPackages(folders []string) ([]installedPackage, error) {
	var found []installedPackage
	seen := map[string]bool{}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".dist-info") {
				continue
			}
			p, err := readPackage(filepath.Join(folder, e.Name()))
			if err != nil {
				return nil, err
			}
			if p.Name != "" && !seen[normalizeName(p.Name)] {
				seen[normalizeName(p.Name)] = true
				found = append(found, p)
			}
		}
	}
	slices.SortFunc(found, func(a, b installedPackage) int { return strings.Compare(normalizeName(a.Name), normalizeName(b.Name)) })
	return found, nil
}

// readPackage reads a .dist-info folder. One without a name is no package: a removal
// that was cut off leaves such.
func readPackage(dir string) (p installedPackage, err error) {
	text, err := readBounded(filepath.Join(dir, "METADATA"), maxMetadata)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	p = parseMetadata(text)
	record, err := readBounded(filepath.Join(dir, "RECORD"), 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	p.Modules = modulesOf(record)
	return p, nil
}

func readBounded(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

var versionText = regexp.MustCompile(`^[A-Za-z0-9.!+_*-]+$`)
var requirement = regexp.MustCompile(`^\s*(` + packagePart + `)[^;]*(;?)(.*)$`)

// parseMetadata reads the head of a METADATA file; the package writes it.
func parseMetadata(text []byte) (p installedPackage) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxMetadata+1)
	for lines.Scan() && lines.Text() != "" {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "name":
			if nameOf(value) == value {
				p.Name = value
			}
		case "version":
			if versionText.MatchString(value) {
				p.Version = value
			}
		case "summary":
			p.Summary = oneLine(value, 300)
		case "requires-dist":
			if found := requirement.FindStringSubmatch(value); found != nil {
				p.possibleDependencies = append(p.possibleDependencies, found[1])
				if found[2] == "" {
					p.dependencies = append(p.dependencies, found[1])
				}
			}
		}
	}
	if p.Version == "" {
		p.Name = ""
	}
	return p
}

// oneLine is text that a list may show: valid, without control characters, bounded.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

var moduleFile = regexp.MustCompile(`^([A-Za-z_]\w*)(\.py|\.[\w.-]*\.so|\.so)$`)
var moduleName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// modulesOf are the names that a package's files can be imported by, from its RECORD.
func modulesOf(record []byte) []string {
	found := []string{}
	lines := bufio.NewScanner(bytes.NewReader(record))
	for lines.Scan() {
		path := strings.Trim(strings.SplitN(lines.Text(), ",", 2)[0], `"`)
		top, rest, deep := strings.Cut(path, "/")
		if deep && moduleName.MatchString(top) && (strings.HasSuffix(rest, ".py") || strings.HasSuffix(rest, ".so")) && top != "__pycache__" {
			found = append(found, top)
		} else if m := moduleFile.FindStringSubmatch(path); !deep && m != nil {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
