// Command sbom prints a list of parts of the packages (CycloneDX 1.6, JSON): the Go modules in a binary, the Python
// packages of a lock, and the npm packages of a lock. Versions and hashes come from these files, nothing is looked up.
//
//	sbom -version V BINARY requirements.txt package-lock.json
//
// SOURCE_DATE_EPOCH, in seconds, is the time of the list.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The types have the field names of CycloneDX 1.6.
type document struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp,omitempty"`
	Component component `json:"component"`
}

type component struct {
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	URL      string    `json:"purl,omitempty"`
	Hashes   []hash    `json:"hashes,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

func main() {
	version := flag.String("version", "", "version of the packages")
	flag.Parse()
	if flag.NArg() != 3 || *version == "" {
		fmt.Fprintln(os.Stderr, "usage: sbom -version V BINARY requirements.txt package-lock.json")
		os.Exit(2)
	}
	d, err := list(*version, flag.Arg(0), flag.Arg(1), flag.Arg(2))
	if err == nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", " ")
		err = encoder.Encode(d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func list(version, binary, requirements, packageLock string) (*document, error) {
	d := &document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{Component: component{Type: "application", Name: "glasshouse", Version: version}}}
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w; want seconds since 1970", err)
		}
		d.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	for _, source := range []struct {
		name string
		read func(path string) ([]component, error)
	}{{binary, goModules}, {requirements, pythonPackages}, {packageLock, npmPackages}} {
		parts, err := source.read(source.name)
		if err == nil && len(parts) == 0 {
			err = fmt.Errorf("%s names no part", source.name)
		}
		if err != nil {
			return nil, err
		}
		d.Components = append(d.Components, parts...)
	}
	return d, nil
}

// goModules returns the modules in a binary, and Go itself.
func goModules(path string) ([]component, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parts := []component{goModule("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, goModule(m.Path, m.Version, m.Sum))
	}
	return parts, nil
}

// goModule returns the part of a module. CycloneDX has no name for the algorithm of go.sum, so the sum is a qualifier.
func goModule(path, version, sum string) component {
	c := component{Type: "library", Name: path, Version: version, URL: "pkg:golang/" + path + "@" + version}
	if sum != "" {
		c.URL += "?checksum=" + strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D").Replace(sum)
	}
	return c
}

var requirement = regexp.MustCompile(`(?m)^([A-Za-z0-9._-]+)==([^\s;\\]+)`)

// pythonPackages returns the packages of a lock. It leaves out their hashes: a lock has one for each kind of machine.
func pythonPackages(path string) (parts []component, err error) {
	text, err := os.ReadFile(path)
	for _, match := range requirement.FindAllStringSubmatch(string(text), -1) {
		name, version := match[1], match[2]
		parts = append(parts, component{Type: "library", Name: name, Version: version,
			URL: "pkg:pypi/" + strings.ToLower(name) + "@" + version})
	}
	return parts, err
}

// npmPackages returns the packages of a lock, with those that only the build uses. It leaves out development
// dependencies, which format and test the sources: no part of them is in the product or makes it.
func npmPackages(path string) (parts []component, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, Integrity, License string
			Dev                         bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for folder, p := range lock.Packages {
		at := strings.LastIndex(folder, "node_modules/")
		if at < 0 || p.Dev {
			continue // the pages themselves, or a tool of their developers
		}
		name := folder[at+len("node_modules/"):]
		c := component{Type: "library", Name: name, Version: p.Version,
			URL: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version}
		if sum, ok := strings.CutPrefix(p.Integrity, "sha512-"); ok {
			if bytes, err := base64.StdEncoding.DecodeString(sum); err == nil {
				c.Hashes = []hash{{"SHA-512", hex.EncodeToString(bytes)}}
			}
		}
		if p.License != "" {
			c.Licenses = []license{{p.License}}
		}
		parts = append(parts, c)
	}
	slices.SortFunc(parts, func(a, b component) int { return strings.Compare(a.URL, b.URL) })
	return parts, nil
}
