// Command buildweb bundles the pages of web/src into web/dist. esbuild runs as a library, so that the build needs no
// Node, only the packages of web/package-lock.json in web/node_modules.
//
//	buildweb ROOT          writes ROOT/web/dist
//	buildweb -check ROOT   fails if ROOT/web/dist is not what the sources give
//
// The same sources and packages give the same bytes on every machine: all paths are relative to web.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	check := flag.Bool("check", false, "compare web/dist with the sources instead of writing it")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: buildweb [-check] ROOT")
		os.Exit(2)
	}
	if err := run(filepath.Join(flag.Arg(0), "web"), *check); err != nil {
		fmt.Fprintln(os.Stderr, "buildweb:", err)
		os.Exit(1)
	}
}

func run(web string, check bool) error {
	web, err := filepath.Abs(web)
	if err != nil {
		return err
	}
	files, err := build(web)
	if err != nil {
		return err
	}
	dist := filepath.Join(web, "dist")
	if check {
		return compare(dist, files)
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	for name, content := range files {
		target := filepath.Join(dist, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build returns the files of dist by their paths in it.
func build(web string) (map[string][]byte, error) {
	options := api.BuildOptions{
		AbsWorkingDir: web,
		EntryPoints:   []string{"src/main.tsx", "src/docs.ts", "src/theme.ts", "styles/frame.css", "src/favicon.png"},
		Outdir:        "dist",
		EntryNames:    "assets/[name]-[hash]",
		ChunkNames:    "assets/[name]-[hash]",
		AssetNames:    "assets/[name]-[hash]",
		Loader:        map[string]api.Loader{".png": api.LoaderCopy},
		PublicPath:    "/ui/",
		// esbuild hashes the paths of sources into the names of chunks. node_modules is a link into a folder that
		// differs between machines.
		PreserveSymlinks: true,
		Bundle:           true,
		Splitting:        true,
		Format:           api.FormatESModule,
		Target:           api.ES2022,
		Engines: []api.Engine{
			{Name: api.EngineChrome, Version: "123"}, {Name: api.EngineFirefox, Version: "120"},
		},
		JSX:             api.JSXAutomatic,
		JSXImportSource: "preact",
		MinifySyntax:    true, MinifyWhitespace: true, MinifyIdentifiers: true,
		LegalComments: api.LegalCommentsNone, // licenses.txt has the licences
		Metafile:      true,
		LogLevel:      api.LogLevelWarning,
	}
	// A frame with an origin of its own may load a script of the service, and no module.
	plot := options
	plot.EntryPoints, plot.Format, plot.Splitting = []string{"src/plot.ts"}, api.FormatIIFE, false
	built, files := metafile{Inputs: map[string]struct{}{}, Outputs: map[string]output{}}, map[string][]byte{}
	for _, o := range []api.BuildOptions{options, plot} {
		if err := bundle(web, o, built, files); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"index.html", "docs.html", "plot.html"} {
		page, err := os.ReadFile(filepath.Join(web, "src", name))
		if err == nil {
			files[name], err = built.link(page)
		}
		if err != nil {
			return nil, fmt.Errorf("src/%s: %w", name, err)
		}
	}
	var err error
	files["licenses.txt"], err = licenses(web, built)
	return files, err
}

// bundle adds the outputs of one build to files, and their names to built.
func bundle(web string, options api.BuildOptions, built metafile, files map[string][]byte) error {
	result := api.Build(options)
	if len(result.Errors) > 0 {
		return fmt.Errorf("%d errors, printed above", len(result.Errors))
	}
	var m metafile
	if err := json.Unmarshal([]byte(result.Metafile), &m); err != nil {
		return err
	}
	maps.Copy(built.Inputs, m.Inputs)
	maps.Copy(built.Outputs, m.Outputs)
	for _, file := range result.OutputFiles {
		name, err := filepath.Rel(filepath.Join(web, "dist"), file.Path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)] = file.Contents
	}
	return nil
}

// metafile is the part of esbuild's metafile that names files.
type metafile struct {
	Inputs  map[string]struct{} `json:"inputs"`
	Outputs map[string]output   `json:"outputs"`
}

type output struct {
	EntryPoint string `json:"entryPoint"`
	CSSBundle  string `json:"cssBundle"`
	Imports    []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"imports"`
}

// link replaces the names of sources in a page by those of their bundles, and makes browsers load the chunks of the
// main module together with it. The styles of src/NAME.ts are src/NAME.css.
func (m metafile) link(page []byte) ([]byte, error) {
	served := func(output string) string { return "/ui/" + strings.TrimPrefix(output, "dist/") }
	var preloads []string
	names := map[string]string{}
	for output, o := range m.Outputs {
		if o.EntryPoint == "" {
			continue
		}
		names[o.EntryPoint] = served(output)
		if o.CSSBundle != "" {
			names[strings.TrimSuffix(o.EntryPoint, path.Ext(o.EntryPoint))+".css"] = served(o.CSSBundle)
		}
		if o.EntryPoint != "src/main.tsx" {
			continue
		}
		for _, i := range o.Imports {
			if i.Kind == "import-statement" {
				preloads = append(preloads, fmt.Sprintf("<link rel=\"modulepreload\" href=%q>\n", served(i.Path)))
			}
		}
	}
	// A copied file has no entry point.
	for output := range m.Outputs {
		if path.Ext(output) == ".png" {
			names["src/favicon.png"] = served(output)
		}
	}
	for source, name := range names {
		page = bytes.ReplaceAll(page, []byte(`"`+source+`"`), []byte(`"`+name+`"`))
	}
	if bytes.Contains(page, []byte(`"src/`)) || bytes.Contains(page, []byte(`"styles/`)) {
		return nil, fmt.Errorf("it names a source that is not built; built: %v", names)
	}
	slices.Sort(preloads)
	return bytes.Replace(page, []byte("<!-- preloads -->\n"), []byte(strings.Join(preloads, "")), 1), nil
}

// licenses returns the licences of the packages that are in the bundles.
func licenses(web string, m metafile) ([]byte, error) {
	packages := map[string]bool{}
	for input := range m.Inputs {
		rest, isPackage := strings.CutPrefix(input, "node_modules/")
		if !isPackage {
			continue
		}
		parts := strings.Split(rest, "/")
		if strings.HasPrefix(rest, "@") {
			packages[path.Join(parts[0], parts[1])] = true
		} else {
			packages[parts[0]] = true
		}
	}
	var text bytes.Buffer
	text.WriteString("The files in this folder contain these packages.\n")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		license, err := os.ReadFile(filepath.Join(web, "node_modules", filepath.FromSlash(name), "LICENSE"))
		if err != nil {
			return nil, fmt.Errorf("the package %s has no licence file: %w", name, err)
		}
		fmt.Fprintf(&text, "\n--- %s ---\n\n%s\n", name, bytes.TrimSpace(license))
	}
	return text.Bytes(), nil
}

// compare returns an error that names the files of dist that differ.
func compare(dist string, files map[string][]byte) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		have, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(name)))
		if err != nil {
			wrong = append(wrong, err)
		} else if !bytes.Equal(have, files[name]) {
			wrong = append(wrong, fmt.Errorf("%s differs from what its sources give", name))
		}
	}
	err := filepath.WalkDir(dist, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, file)
		if _, built := files[filepath.ToSlash(name)]; err == nil && !built {
			wrong = append(wrong, fmt.Errorf("%s is not built from a source", name))
		}
		return err
	})
	if err = errors.Join(append(wrong, err)...); err != nil {
		return fmt.Errorf("web/dist is out of date; run `go -C scripts/tools run ./buildweb ../..`:\n%w", err)
	}
	return nil
}
