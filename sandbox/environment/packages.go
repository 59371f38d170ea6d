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

// installedPackage describes one package on the disk.
type installedPackage struct {
	sandbox.Package
	dependencies         []string // names of unconditional dependencies
	needed               []string // dependencies that no extra asks for, including those of other platforms
	possibleDependencies []string // all dependencies, including those of extras and of other platforms
	info                 string   // name of its .dist-info folder
	files                []string // paths in its RECORD
}

// maxMetadata bounds the bytes that are read of a METADATA file, because the package's author writes the file.
const maxMetadata = 256 << 10

// findPackages returns the packages in folders, sorted by name. If several folders have a package, the first
// folder counts, as in Python.
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
	slices.SortFunc(found, func(a, b installedPackage) int {
		return strings.Compare(normalizeName(a.Name), normalizeName(b.Name))
	})
	return found, nil
}

// readPackage reads a .dist-info folder. An interrupted removal leaves a folder without METADATA; readPackage
// then returns a package without a name.
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
	p.info, p.files = filepath.Base(dir), recordedFiles(record)
	p.Modules = modulesOf(p.files)
	return p, nil
}

// readBounded returns at most maxBytes from the start of a file.
func readBounded(path string, maxBytes int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes))
}

var (
	versionText = regexp.MustCompile(`^[A-Za-z0-9.!+_*-]+$`)
	requirement = regexp.MustCompile(`^\s*(` + namePattern + `)[^;]*(;?)(.*)$`) // a ";" begins the condition
	moduleFile  = regexp.MustCompile(`^([A-Za-z_]\w*)(\.py|\.[\w.-]*\.so|\.so)$`)
	moduleName  = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// parseMetadata reads the header of a METADATA file. The package's author wrote the file, so parseMetadata
// drops names and versions that would have another meaning in a lock.
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
				if !strings.Contains(found[3], "extra") {
					p.needed = append(p.needed, found[1])
				}
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

// oneLine returns text as valid UTF-8 without control characters, cut to maxRunes.
func oneLine(text string, maxRunes int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > maxRunes {
		return string(runes[:maxRunes-1]) + "…"
	}
	return text
}

// modulesOf returns the top-level names by which the files of a package can be imported.
func modulesOf(files []string) []string {
	found := []string{}
	for _, path := range files {
		top, rest, deep := strings.Cut(path, "/")
		isCode := strings.HasSuffix(rest, ".py") || strings.HasSuffix(rest, ".so")
		if deep && isCode && moduleName.MatchString(top) && top != "__pycache__" {
			found = append(found, top)
		} else if m := moduleFile.FindStringSubmatch(path); !deep && m != nil {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
