package environment

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileCheck checks the files of newly installed packages before an environment has them.
type fileCheck struct {
	folder, site string              // the environment and its folder of packages, without symbolic links
	own          map[string]bool     // the environment's own files, relative to folder
	added        map[string][]string // the new packages by normalized name
	packages     []installedPackage
	warmModules  []string
	hidden       map[string]bool // modules of Python and Glasshouse, which precede those of packages

	resolved   map[string]string // folders without symbolic links
	namespaces map[string]bool   // results of isNamespace
}

// checkFiles returns an error if a new package leaves the environment, replaces files of the environment or of
// packages that warm interpreters import, or hides its metadata. It reports other files that may surprise to
// in.Progress. own has the files that the environment had without packages, and hashes the names of the new packages.
func (in Installer) checkFiles(ctx context.Context, folder, site string, draft *draft, own map[string]bool,
	packages []installedPackage, hashes map[string][]string,
) error {
	if len(hashes) == 0 {
		return nil
	}
	names, _, err := run(in.command(ctx, draft.interpreter.Executable, "-I", "-S", "-c",
		"import sys; print(*sys.stdlib_module_names)"))
	if err != nil {
		return fmt.Errorf("list the modules of %s: %w", draft.interpreter.Executable, err)
	}
	c := fileCheck{own: own, added: hashes, packages: packages, warmModules: in.WarmModules,
		hidden: map[string]bool{}, resolved: map[string]string{}, namespaces: map[string]bool{}}
	for _, name := range slices.Concat(in.GuestModules, strings.Fields(string(names))) {
		c.hidden[name] = true
	}
	if c.folder, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	if c.site, err = filepath.EvalSymlinks(site); err != nil {
		return err
	}
	for name := range hashes {
		if !slices.ContainsFunc(packages, func(p installedPackage) bool { return normalizeName(p.Name) == name }) {
			return fmt.Errorf("refused the package %s, because its METADATA has no name and version in "+
				"the first %d kB; the environment is unchanged", name, maxMetadata>>10)
		}
	}
	notes, err := c.check()
	for _, note := range notes {
		in.Progress(note)
	}
	return err
}

// check returns what an operator should know about the new packages, and the errors that refuse packages.
func (c *fileCheck) check() (notes []string, err error) {
	warm := warmPackages(c.packages, c.warmModules)
	owners := map[string][]string{} // packages that have a module, if one of them is warm
	for _, p := range c.packages {
		for module := range c.modules(p) {
			owners[module] = append(owners[module], p.Name)
		}
	}
	for module, names := range owners {
		if !slices.ContainsFunc(names, func(name string) bool { return warm[normalizeName(name)] }) {
			delete(owners, module)
		}
	}
	var errs []error
	for _, p := range c.packages {
		if c.added[normalizeName(p.Name)] == nil {
			continue
		}
		problems, startup := map[string][]string{}, []string{}
		for _, name := range p.files {
			path := c.resolve(name)
			if problem := c.problem(p, path); problem != "" {
				problems[problem] = append(problems[problem], path)
			}
			if inSite := c.inSite(path); runsAtStart(c.site, inSite) {
				startup = append(startup, inSite)
			}
		}
		for module := range c.modules(p) {
			for _, other := range owners[module] {
				if other != p.Name {
					problem := "has a module of " + other + ", and warm interpreters import one of them"
					problems[problem] = append(problems[problem], module)
				}
			}
		}
		for problem, files := range problems {
			errs = append(errs, fmt.Errorf("refused the package %s %s, because it %s: %s; the environment is unchanged",
				p.Name, p.Version, problem, quoted(files)))
		}
		if len(startup) > 0 {
			notes = append(notes, fmt.Sprintf("%s has code that runs when bin/python of the environment starts: %s; "+
				"sandboxes and glasshouse do not run it", p.Name, quoted(startup)))
		}
		hidden := slices.DeleteFunc(slices.Clone(p.Modules), func(module string) bool { return !c.hidden[module] })
		if len(hidden) > 0 {
			notes = append(notes, fmt.Sprintf("%s has modules with names of Python or Glasshouse, whose modules are "+
				"imported instead: %s", p.Name, quoted(hidden)))
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return notes, errors.Join(errs...)
}

// inSite returns the path of a file of the environment relative to the folder of packages, or "" if it is elsewhere.
func (c *fileCheck) inSite(path string) string {
	name, err := filepath.Rel(c.site, filepath.Join(c.folder, path))
	if path == "" || err != nil || strings.HasPrefix(name, "../") {
		return ""
	}
	return name
}

// modules returns the modules that a package can replace: its top-level modules, and the modules in the folders that
// it may share with other packages because nothing makes them a package of Python.
func (c *fileCheck) modules(p installedPackage) map[string]bool {
	modules := map[string]bool{}
	for _, file := range p.files {
		parts := strings.Split(c.inSite(c.resolve(file)), "/")
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "__pycache__" })
		if len(parts) == 0 || strings.HasSuffix(parts[0], ".dist-info") {
			continue
		}
		module, _, _ := strings.Cut(parts[0], ".")
		if len(parts) > 1 && c.isNamespace(parts[0]) {
			second, _, _ := strings.Cut(parts[1], ".")
			module += "." + second
		}
		if len(parts) > 1 || isCode(parts[0]) {
			modules[module] = true
		}
	}
	return modules
}

// isNamespace reports whether a folder in the folder of packages has no __init__ module.
func (c *fileCheck) isNamespace(folder string) bool {
	is, known := c.namespaces[folder]
	if !known {
		found, _ := filepath.Glob(filepath.Join(c.site, folder, "__init__.*"))
		is = len(found) == 0
		c.namespaces[folder] = is
	}
	return is
}

// isCode reports whether Python can import a file.
func isCode(name string) bool {
	return slices.Contains([]string{".py", ".pyc", ".so"}, filepath.Ext(name))
}

// resolve returns the path of a file of a RECORD, relative to the environment, or "" if its folder does not exist.
func (c *fileCheck) resolve(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.site, name)
	}
	folder := filepath.Dir(name)
	real, known := c.resolved[folder]
	if !known {
		real, _ = filepath.EvalSymlinks(folder)
		c.resolved[folder] = real
	}
	if real == "" {
		return ""
	}
	path, err := filepath.Rel(c.folder, filepath.Join(real, filepath.Base(name)))
	if err != nil {
		return name
	}
	return path
}

// problem returns why a package may not have a file, or "".
func (c *fileCheck) problem(p installedPackage, path string) string {
	if path == ".." || strings.HasPrefix(path, "../") {
		return "has files outside of the environment"
	}
	for part := path; part != "." && part != ""; part = filepath.Dir(part) {
		if c.own[part] {
			return "replaces files of the environment itself"
		}
	}
	if info, err := os.Lstat(filepath.Join(c.folder, path)); path != "" && err == nil && !info.Mode().IsRegular() {
		return "has files that are not regular files"
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(c.inSite(path), "__pycache__/"), "/")
	module, _, _ := strings.Cut(top, ".")
	switch {
	case strings.HasSuffix(top, ".dist-info") && top != p.info:
		return "has metadata of another package"
	case isExtension(module):
		return "has extensions of Glasshouse"
	case slices.Contains(c.warmModules, module) && normalizeName(p.Name) != module:
		return "has the module " + module + ", which warm interpreters import from the package " + module
	}
	return ""
}

// runsAtStart reports whether Python runs a file in the folder of packages when it starts with the module site.
func runsAtStart(site, name string) bool {
	module, _, _ := strings.Cut(strings.TrimPrefix(name, "__pycache__/"), ".")
	module, _, _ = strings.Cut(module, "/")
	if module == "sitecustomize" || module == "usercustomize" {
		return true
	}
	if strings.Contains(name, "/") || !strings.HasSuffix(name, ".pth") {
		return false
	}
	text, err := os.ReadFile(filepath.Join(site, name))
	if err != nil {
		return true
	}
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("import ")) || bytes.HasPrefix(line, []byte("import\t")) {
			return true
		}
	}
	return false
}

// warmPackages returns the normalized names of the packages with the modules that warm interpreters import, and of the
// packages that these need.
func warmPackages(packages []installedPackage, modules []string) map[string]bool {
	warm := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		for _, p := range packages {
			if normalizeName(p.Name) == normalizeName(name) && !warm[normalizeName(name)] {
				warm[normalizeName(name)] = true
				for _, dependency := range p.needed {
					add(dependency)
				}
			}
		}
	}
	for _, module := range modules {
		add(module)
	}
	return warm
}

// quoted returns at most five files of a list, as a package wrote them.
func quoted(files []string) string {
	list := make([]string, min(len(files), 5))
	for i := range list {
		list[i] = fmt.Sprintf("%.100q", files[i])
	}
	if more := len(files) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// listFiles returns the files in a folder, relative to it.
func listFiles(folder string) (map[string]bool, error) {
	files := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			path, err = filepath.Rel(folder, path)
			files[path] = true
		}
		return err
	})
	return files, err
}

// recordedFiles returns the paths in a RECORD.
func recordedFiles(record []byte) (paths []string) {
	lines := csv.NewReader(bytes.NewReader(record))
	lines.FieldsPerRecord, lines.LazyQuotes, lines.ReuseRecord = -1, true, true
	for {
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return paths
		}
		if err == nil && fields[0] != "" {
			paths = append(paths, fields[0])
		}
	}
}
