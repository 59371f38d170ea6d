package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "glasshouse"

// layers gives every package the number of its layer, by the longest prefix of its path. A package may import only
// lower layers, or packages of the same entry of this table.
var layers = map[string]int{
	"cmd":                         50,
	"service/servicetest":         43, // tests of the services start them all
	"service/httpapi":             42,
	"service/chat":                41,
	"service/compat":              41,
	"service/mcpapi":              41,
	"service/debug":               40,
	"service/replaytext":          40,
	"service/write":               40,
	"service/run":                 39,
	"service/live":                38,
	"service/database":            37,
	"service/records":             37,
	"service/webui":               36,
	"service/metrics":             36,
	"service/tracing":             36,
	"service/access":              36,
	"service/signin":              35,
	"service/help":                35,
	"debugger":                    34,
	"debugger/why":                33,
	"debugger/program":            32,
	"debugger/expr":               32,
	"debugger/recording":          31,
	"dbaccess":                    30,
	"dbaccess/history":            30,
	"sandbox/supervisor":          24,
	"sandbox/isolate":             23,
	"sandbox/isolate/isolatetest": 26, // its harness opens sessions
	"sandbox/egress":              22,
	"sandbox/protocol":            22,
	"sandbox/blob":                22,
	"sandbox/inputlog":            23,
	"sandbox/environment":         22,
	"sandbox/python":              22,
	"sandbox":                     20,
	"policy":                      10,
	"migrations":                  10,
	"web":                         10,
	"scripts":                     50,
}

// forbidden lists imports that the layers would allow: cmd passes these packages as interfaces, or only the package
// above them may import them.
var forbidden = map[string][]string{
	"dbaccess": {"sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol",
		"sandbox/python", "dbaccess/history"},
	"dbaccess/history": {"dbaccess", "sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol",
		"sandbox/python"},
	"debugger": {"dbaccess", "sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol",
		"sandbox/python"},
	"service/run": {"dbaccess", "dbaccess/history", "sandbox/blob", "sandbox/isolate", "sandbox/egress",
		"sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/debug": {"dbaccess", "dbaccess/history", "sandbox/blob", "sandbox/isolate", "sandbox/egress",
		"sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/write": {"dbaccess", "dbaccess/history", "debugger", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/database": {"dbaccess", "dbaccess/history", "debugger", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/access": {"dbaccess", "dbaccess/history", "debugger", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/live": {"dbaccess", "dbaccess/history", "debugger", "sandbox/blob", "sandbox/isolate", "sandbox/egress",
		"sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/records": {"dbaccess", "dbaccess/history", "sandbox/supervisor", "sandbox/isolate", "sandbox/egress",
		"sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/httpapi": {"dbaccess", "dbaccess/history", "sandbox/supervisor", "sandbox/blob", "sandbox/isolate",
		"sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/compat": {"dbaccess", "dbaccess/history", "debugger", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/chat": {"dbaccess", "dbaccess/history", "debugger", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/mcpapi": {"dbaccess", "dbaccess/history", "sandbox/supervisor", "sandbox/blob",
		"sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
}

// libraries says where each third-party library may be imported, by prefix of its import path.
var libraries = map[string][]string{
	"github.com/gin-gonic/gin":         {"service/httpapi"},
	"github.com/danielgtaylor/huma":    {"service/httpapi"},
	"github.com/coder/websocket":       {"service/httpapi", "service/compat/jupyter", "cmd"}, // cmd: editors
	"github.com/prometheus":            {"service/metrics"},
	"go.opentelemetry.io":              {"service/tracing"},
	"github.com/jackc/pgx":             {"dbaccess"},
	"github.com/santhosh-tekuri":       {"service/httpapi"}, // its tests: JSON schema
	"github.com/klauspost/compress":    {"debugger/recording", "dbaccess/history", "sandbox/inputlog"},
	"github.com/coreos/go-oidc":        {"service/signin"},
	"github.com/go-jose/go-jose":       {"service/signin"}, // the provider's keys
	"golang.org/x/oauth2":              {"service/signin"},
	"github.com/google/jsonschema-go":  {"service/mcpapi"},
	"github.com/modelcontextprotocol":  {"service/mcpapi"},
	"golang.org/x/image":               {"service/mcpapi"}, // smaller figures
	"github.com/google/go-dap":         {"debugger/dap"},
	"github.com/go-json-experiment":    {"service", "debugger/dap", "dbaccess/history"},
	"github.com/segmentio/encoding":    {"sandbox"}, // records and answers, two to three times as fast
	"github.com/pganalyze/pg_query_go": {"dbaccess"},
	"golang.org/x/sys": {
		"sandbox/isolate", "sandbox/supervisor", "sandbox/protocol", "dbaccess/embedded", "cmd/glasshouse",
	},
	"golang.org/x/net":           {"sandbox/isolate"},             // bpf, for the filter's bytes
	"golang.org/x/net/idna":      {"policy"},                      // names of hosts, as the DNS has them
	"golang.org/x/sync":          {"policy/limit"},                // semaphores
	"golang.org/x/time":          {"policy/limit"},                // token buckets
	"github.com/goccy/go-yaml":   {"cmd"},                         // its tests: deploy/compose.yaml
	"github.com/spf13":           {"cmd"},                         // commands and flags
	"github.com/sirupsen/logrus": {"cmd", "service", "dbaccess"},  // lower layers return errors
	"google.golang.org/protobuf": {"dbaccess", "service/tracing"}, // the parse tree; the receiver of its tests
}

// banned lists package names that say nothing about the content.
var banned = []string{"util", "utils", "common", "helpers", "types", "models", "manager"}

type goPackage struct {
	ImportPath, Dir, Name, Doc string
	Imports                    []string
	GoFiles, CgoFiles          []string
	TestGoFiles, XTestGoFiles  []string
}

// path returns the import path below the module's own.
func (p goPackage) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// longestPrefix returns the longest key of table that is p or a folder above it.
func longestPrefix[V any](table map[string]V, p string) (string, bool) {
	for ; p != "." && p != ""; p = path.Dir(p) {
		if _, ok := table[p]; ok {
			return p, true
		}
	}
	return "", false
}

func under(p, folder string) bool { return p == folder || strings.HasPrefix(p, folder+"/") }

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if len(list) < 2 {
		t.Fatalf("go list found %d packages", len(list))
	}
	return list
}

// checkImport returns why one of our packages may not import another, or "" if it may.
func checkImport(from, to string) string {
	a, ok := longestPrefix(layers, from)
	if !ok {
		return from + " has no layer: add it to layers in scripts/archtest"
	}
	b, ok := longestPrefix(layers, to)
	if !ok {
		return to + " has no layer: add it to layers in scripts/archtest"
	}
	// A package may import the packages below its own folder, unless the table names them apart.
	if a != b && layers[b] >= layers[a] || a == b && !under(to, from) && !under(from, to) &&
		path.Dir(from) != path.Dir(to) {
		return fmt.Sprintf("%s (layer %d) imports %s (layer %d): imports run down only", from, layers[a], to, layers[b])
	}
	rule, ok := longestPrefix(forbidden, from)
	if !ok {
		return ""
	}
	for _, no := range forbidden[rule] {
		if named, _ := longestPrefix(layers, to); to == no || under(to, no) && named == no {
			return fmt.Sprintf("%s imports %s: take it as an interface that cmd fills, or call the package in between",
				from, to)
		}
	}
	return ""
}

func TestImportsRunDown(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if !under(imp, module) {
				continue
			}
			if wrong := checkImport(p.path(), strings.TrimPrefix(imp, module+"/")); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

// TestCheckImport tests the rules themselves.
func TestCheckImport(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"cmd/glasshouse", "service/httpapi", true},
		{"cmd/glasshouse", "dbaccess/history", true},
		{"service/httpapi", "service/run", true},
		{"service/run", "sandbox", true},
		{"service/run", "service/access", true},
		{"service/run", "service/records", true},
		{"service/access", "service/run", false},
		{"service/access", "service/records", false},
		{"service/records", "service/access", true},
		{"service/records", "service/run", false},
		{"service/run", "service/live", true},
		{"service/live", "service/run", false},
		{"service/live", "service/records", true},
		{"service/live", "debugger", false},
		{"service/run", "service/database", true},
		{"service/database", "dbaccess", false},
		{"service/database", "service/run", false},
		{"service/write", "service/run", true},
		{"service/run", "service/write", false},
		{"service/write", "service/debug", false},
		{"service/debug", "service/run", true},
		{"service/run", "service/debug", false},
		{"service/debug", "dbaccess/history", false},
		{"service/records", "sandbox/supervisor", false},
		{"service/access", "sandbox/supervisor", false},
		{"dbaccess", "sandbox", true},
		{"dbaccess", "policy", true},
		{"sandbox/supervisor", "sandbox/isolate", true},
		{"sandbox/isolate", "sandbox/python", true},
		{"sandbox", "policy", true},
		{"dbaccess", "dbaccess/parse", true},
		{"policy", "sandbox", false},
		{"service/run", "service/httpapi", false},
		{"service/run", "dbaccess", false},
		{"service/run", "dbaccess/history", false},
		{"service/httpapi", "sandbox/supervisor", false},
		{"dbaccess", "sandbox/supervisor", false},
		{"dbaccess/history", "dbaccess", false},
		{"dbaccess", "dbaccess/history", false},
		{"debugger", "sandbox/supervisor", false},
		{"sandbox/protocol", "sandbox/isolate", false},
		{"sandbox/egress", "policy", true},
		{"sandbox/egress", "sandbox/supervisor", false},
		{"service/run", "sandbox/egress", false},
		{"sandbox", "sandbox/protocol", false},
		{"attic", "sandbox", false},
	} {
		if wrong := checkImport(c.from, c.to); (wrong == "") != c.allowed {
			t.Errorf("checkImport(%q, %q) = %q, want allowed %v", c.from, c.to, wrong, c.allowed)
		}
	}
}

func TestLibrariesAreImportedWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") {
				continue // ours, or the standard library
			}
			library, ok := longestPrefix(libraries, imp)
			if !ok {
				t.Errorf("%s imports %s, which is not in libraries of scripts/archtest: add it there", p.path(), imp)
				continue
			}
			if !slices.ContainsFunc(libraries[library], func(folder string) bool { return under(p.path(), folder) }) {
				t.Errorf("%s imports %s, which only %v may import", p.path(), imp, libraries[library])
			}
		}
	}
}

func TestPackagesHaveNamesAndComments(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(banned, path.Base(p.ImportPath)) {
			t.Errorf("%s: the name says nothing about the content; name the concept", p.path())
		}
		if p.Doc == "" && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			t.Errorf("%s has no package comment: describe its purpose, its goroutines, and who closes its values",
				p.path())
		}
	}
}

// TestOnlyCmdReadsTheEnvironment keeps settings in one place: cmd passes them as values.
func TestOnlyCmdReadsTheEnvironment(t *testing.T) {
	readers := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	for _, p := range packages(t) {
		if under(p.path(), "cmd") || under(p.path(), "scripts") || strings.HasSuffix(p.Name, "test") {
			continue
		}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for _, imp := range file.Imports {
				if imported, _ := strconv.Unquote(imp.Path.Value); imported == "flag" {
					t.Errorf("%s reads flags; only cmd does", fset.Position(imp.Pos()))
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := call.X.(*ast.Ident)
				if ok && (pkg.Name == "os" || pkg.Name == "syscall" || pkg.Name == "unix") &&
					slices.Contains(readers, call.Sel.Name) {
					t.Errorf("%s calls %s.%s; only cmd reads the environment", fset.Position(n.Pos()), pkg.Name,
						call.Sel.Name)
				}
				return true
			})
		}
	}
}

// files calls visit with the path and text of each source file that people write.
func files(t *testing.T, visit func(name string, text []byte)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, name)
		if d.IsDir() {
			if base := d.Name(); rel != "." && (strings.HasPrefix(base, ".") && base != ".ci" || base == "bin" ||
				base == "testdata" || base == "node_modules" || base == "__pycache__") {
				return fs.SkipDir
			}
			return nil
		}
		script := filepath.Dir(rel) == "scripts"
		if !script && !slices.Contains([]string{".go", ".py", ".js", ".ts", ".css", ".sh"}, filepath.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !bytes.Contains(text[:min(len(text), 500)], []byte("DO NOT EDIT")) {
			visit(rel, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoTestSkips fails if a test calls Skip. A test that cannot run must fail and name the missing program, because
// setup installs all of them. There are two exceptions: scripts/test counts a client of another project that cannot be
// installed as not run, and the quick tier leaves out tests that take long.
func TestNoTestSkips(t *testing.T) {
	long := regexp.MustCompile(`if testing\.Short\(\) \{\n\t+t\.Sk` + `ip\("it takes long; the whole gate runs it"\)`)
	calls := []string{"t.Sk" + "ip(", "t.Sk" + "ipf(", "t.Sk" + "ipNow(", "pytest.sk" + "ip", "skip" + "if("}
	seen := 0
	files(t, func(name string, text []byte) {
		seen++
		if bytes.HasPrefix(text, []byte("//go:build clients")) {
			return
		}
		text = long.ReplaceAll(text, nil)
		for _, call := range calls {
			if bytes.Contains(text, []byte(call)) {
				t.Errorf("%s uses %s: fail with what the test needs instead", name, call)
			}
		}
	})
	if seen < 10 {
		t.Fatalf("looked at %d files, want at least 10", seen)
	}
}

// TestBenchmarkIsAModuleOfItsOwn checks that the benchmark uses the service through its flags and HTTP only, and
// that its dependencies are separate.
func TestBenchmarkIsAModuleOfItsOwn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "cmd/bench/go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "module glasshouse/cmd/bench\n") || strings.Contains(string(text), "replace") {
		t.Errorf("got cmd/bench/go.mod %q, want a module without a replace directive for our packages", text)
	}
}
