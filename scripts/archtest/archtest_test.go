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
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module   = "glasshouse"
	maxLines = 400
)

// floors gives every package its height, by the longest prefix of its path.
// Imports run down only: to a lower height, or within one room.
var floors = map[string]int{
	"cmd":                 50,
	"service/httpapi":     41,
	"service":             40,
	"debugger":            30,
	"dbaccess":            30,
	"dbaccess/history":    30,
	"sandbox/supervisor":  24,
	"sandbox/isolate":     23,
	"sandbox/egress":      22,
	"sandbox/protocol":    22,
	"sandbox/blob":        22,
	"sandbox/environment": 22,
	"sandbox/python":      22,
	"sandbox":             20,
	"policy":              10,
	"migrations":          10,
	"web":                 10,
	"scripts":             50,
}

// never lists what a room may not import although the floors would allow it.
var never = map[string][]string{
	"dbaccess":         {"sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol", "sandbox/python", "dbaccess/history"},
	"dbaccess/history": {"dbaccess", "sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol", "sandbox/python"},
	"debugger":         {"dbaccess", "sandbox/supervisor", "sandbox/isolate", "sandbox/egress", "sandbox/protocol", "sandbox/python"},
	"service":          {"dbaccess", "dbaccess/history", "sandbox/blob", "sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	"service/httpapi":  {"dbaccess", "dbaccess/history", "sandbox/supervisor", "sandbox/blob", "sandbox/isolate", "sandbox/egress", "sandbox/environment", "sandbox/protocol", "sandbox/python"},
	// The benchmark speaks HTTP, as its peers do.
	"cmd/bench": {"service", "dbaccess", "debugger", "sandbox", "policy", "migrations", "web"},
}

// homes says where each third-party library lives, by prefix of its import path.
var homes = map[string][]string{
	"github.com/gin-gonic/gin":         {"service/httpapi"},
	"github.com/danielgtaylor/huma":    {"service/httpapi"},
	"github.com/coder/websocket":       {"service/httpapi"},
	"github.com/jackc/pgx":             {"dbaccess"},
	"github.com/santhosh-tekuri":       {"service/httpapi"}, // its tests: JSON schema, for messages
	"github.com/klauspost/compress":    {"debugger"},        // zstd, for chunks
	"github.com/pganalyze/pg_query_go": {"dbaccess"},
	"golang.org/x/sys":                 {"sandbox/isolate", "sandbox/supervisor", "sandbox/protocol"},
	"golang.org/x/net":                 {"sandbox/isolate"},            // bpf, for the filter's bytes
	"golang.org/x/net/idna":            {"policy"},                     // names of hosts, as the DNS has them
	"golang.org/x/sync":                {"policy/limit"},               // semaphores
	"golang.org/x/time":                {"policy/limit"},               // token buckets
	"github.com/spf13":                 {"cmd"},                        // commands and flags
	"github.com/sirupsen/logrus":       {"cmd", "service", "dbaccess"}, // what runs below returns its errors
	"google.golang.org/protobuf":       {"dbaccess"},                   // the parse tree's reflection
}

// banned are names that say nothing of what is in the room.
var banned = []string{"util", "utils", "common", "helpers", "types", "models", "manager"}

type goPackage struct {
	ImportPath, Dir, Name, Doc string
	Imports                    []string
	GoFiles, CgoFiles          []string
	TestGoFiles, XTestGoFiles  []string
}

// room is the path below the module's own.
func (p goPackage) room() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// prefix returns the longest key of table that is p or a folder above it.
func prefix[V any](table map[string]V, p string) (string, bool) {
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

// checkImport says what is wrong with one package importing another of ours.
func checkImport(from, to string) string {
	a, ok := prefix(floors, from)
	if !ok {
		return from + " has no floor: give it one in scripts/archtest"
	}
	b, ok := prefix(floors, to)
	if !ok {
		return to + " has no floor: give it one in scripts/archtest"
	}
	// A room's own inner rooms are its own, unless the tables name them apart.
	if a != b && floors[b] >= floors[a] || a == b && !under(to, from) && !under(from, to) && path.Dir(from) != path.Dir(to) {
		return fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports run down only", from, floors[a], to, floors[b])
	}
	rule, ok := prefix(never, from)
	if !ok {
		return ""
	}
	for _, no := range never[rule] {
		if named, _ := prefix(floors, to); to == no || under(to, no) && named == no {
			return fmt.Sprintf("%s imports %s: it is handed in by cmd, or stays below", from, to)
		}
	}
	return ""
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			if !under(imp, module) {
				continue
			}
			if wrong := checkImport(p.room(), strings.TrimPrefix(imp, module+"/")); wrong != "" {
				t.Error(wrong)
			}
		}
	}
}

// The rules themselves: each of these arrows must be seen for what it is.
func TestFloorsCatch(t *testing.T) {
	for _, c := range []struct {
		from, to string
		allowed  bool
	}{
		{"cmd/glasshouse", "service/httpapi", true},
		{"cmd/glasshouse", "dbaccess/history", true},
		{"service/httpapi", "service", true},
		{"service", "sandbox", true},
		{"dbaccess", "sandbox", true},
		{"dbaccess", "policy", true},
		{"sandbox/supervisor", "sandbox/isolate", true},
		{"sandbox/isolate", "sandbox/python", true},
		{"sandbox", "policy", true},
		{"dbaccess", "dbaccess/parse", true},
		{"policy", "sandbox", false},
		{"service", "service/httpapi", false},
		{"service", "dbaccess", false},
		{"service", "dbaccess/history", false},
		{"service/httpapi", "sandbox/supervisor", false},
		{"dbaccess", "sandbox/supervisor", false},
		{"dbaccess/history", "dbaccess", false},
		{"dbaccess", "dbaccess/history", false},
		{"debugger", "sandbox/supervisor", false},
		{"sandbox/protocol", "sandbox/isolate", false},
		{"sandbox/egress", "policy", true},
		{"sandbox/egress", "sandbox/supervisor", false},
		{"service", "sandbox/egress", false},
		{"sandbox", "sandbox/protocol", false},
		{"cmd/bench", "sandbox", false},
		{"attic", "sandbox", false},
	} {
		if wrong := checkImport(c.from, c.to); (wrong == "") != c.allowed {
			t.Errorf("%s -> %s: allowed should be %v, said %q", c.from, c.to, c.allowed, wrong)
		}
	}
}

func TestHomes(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") {
				continue // ours, or the standard library
			}
			library, ok := prefix(homes, imp)
			if !ok {
				t.Errorf("%s imports %s, which has no home: give it one in scripts/archtest", p.room(), imp)
				continue
			}
			if !slices.ContainsFunc(homes[library], func(h string) bool { return under(p.room(), h) }) {
				t.Errorf("%s imports %s, whose home is %v", p.room(), imp, homes[library])
			}
		}
	}
}

func TestRooms(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(banned, path.Base(p.ImportPath)) {
			t.Errorf("%s: the name says nothing of what is in it", p.room())
		}
		if p.Doc == "" && len(p.GoFiles)+len(p.CgoFiles) > 0 {
			t.Errorf("%s has no package comment; it gives the picture: goroutines, who closes what", p.room())
		}
	}
}

// Only cmd knows of flags and of the environment: whatever else needs a setting
// is given it.
func TestOnlyCmdReadsTheEnvironment(t *testing.T) {
	readers := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	for _, p := range packages(t) {
		if under(p.room(), "cmd") || under(p.room(), "scripts") {
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
				if ok && (pkg.Name == "os" || pkg.Name == "syscall" || pkg.Name == "unix") && slices.Contains(readers, call.Sel.Name) {
					t.Errorf("%s calls %s.%s; only cmd reads the environment", fset.Position(n.Pos()), pkg.Name, call.Sel.Name)
				}
				return true
			})
		}
	}
}

// files calls visit with the path and text of each file that people write here.
func files(t *testing.T, visit func(name string, text []byte)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, name)
		if d.IsDir() {
			if base := d.Name(); rel != "." && (strings.HasPrefix(base, ".") && base != ".ci" || base == "bin" || base == "testdata" || base == "node_modules" || base == "__pycache__") {
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

func TestFileLength(t *testing.T) {
	seen := 0
	files(t, func(name string, text []byte) {
		seen++
		if n := bytes.Count(text, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, %d at the most: a room that wants a second door", name, n, maxLines)
		}
	})
	if seen < 10 {
		t.Fatalf("only %d files were looked at", seen)
	}
}

// A test that can't run here must fail and say what it needs: the set-up brings
// it.
func TestNoSkips(t *testing.T) {
	marks := []string{"t.Sk" + "ip(", "t.Sk" + "ipf(", "t.Sk" + "ipNow(", "pytest.sk" + "ip", "skip" + "if("}
	files(t, func(name string, text []byte) {
		for _, mark := range marks {
			if bytes.Contains(text, []byte(mark)) {
				t.Errorf("%s uses %s", name, mark)
			}
		}
	})
}
