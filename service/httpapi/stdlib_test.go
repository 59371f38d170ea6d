package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Each module of the standard library is allowed and can be imported, or refused with a reason, or absent on this
// machine.
func TestEveryModuleOfTheStandardLibrary(t *testing.T) {
	t.Parallel()
	root := admin.create(t, map[string]any{"profile": "unrestricted"})
	listed := admin.run(t, root, "import sys\nsorted(sys.stdlib_module_names)")
	names, _ := listed.get("result").([]any)
	admin.ok(t, "DELETE", "/sandbox/"+root, nil)
	if len(names) < 200 {
		t.Fatalf("got %d modules: %s", len(names), listed.text)
	}
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"cpu_percent": 100, "max_memory_mb": 512})
	refused, allowed := map[string]string{}, []string{}
	for part := range slices.Chunk(names, 50) {
		code := ""
		for _, name := range part {
			code += fmt.Sprintf("import %s\n", name)
		}
		reasons := map[int]string{}
		problems, _ := c.ok(t, "POST", "/sandbox/"+id+"/check", map[string]any{"code": code}).get("problems").([]any)
		for _, each := range problems {
			problem := each.(map[string]any)
			reasons[int(problem["line"].(float64))-1] = fmt.Sprint(problem["kind"], ": ", problem["message"])
		}
		for n, name := range part {
			if reason, isRefused := reasons[n]; isRefused {
				refused[name.(string)] = reason
			} else {
				allowed = append(allowed, name.(string))
			}
		}
	}
	for name, reason := range refused {
		if !strings.HasPrefix(reason, "policy: ") || !strings.Contains(reason, "use ") ||
			strings.Contains(reason, "one of the allowed modules") || strings.Contains(reason, "if you meant that") ||
			!strings.Contains(reason, "--allowed-modules "+name+" ") {
			t.Errorf("%s is refused with %q, want a reason, and how the operator allows it", name, reason)
		}
		if !strings.HasPrefix(name, "_") && !slices.Contains(refusedModules, name) {
			t.Errorf("%s is refused: %s", name, reason)
		}
	}
	code := "found = {}\n"
	for _, name := range allowed {
		code += fmt.Sprintf("try:\n    import %s\nexcept Exception as error:\n", name)
		code += fmt.Sprintf("    found[%q] = repr(error)\n", name)
	}
	a := c.run(t, id, code+"found")
	failures, _ := a.get("result").(map[string]any)
	if a.get("status") != "completed" {
		t.Fatalf("importing the allowed modules: %s", a.text)
	}
	for name, problem := range failures {
		if !strings.Contains(fmt.Sprint(problem), "ModuleNotFoundError") {
			t.Errorf("%s is allowed, but cannot be imported: %v", name, problem)
		}
	}
	t.Logf("%d modules: %d allowed, %d refused, %d absent",
		len(names), len(allowed)-len(failures), len(refused), len(failures))
	for _, name := range strings.Fields("html xml ast difflib unicodedata secrets pickle sqlite3 tempfile inspect") {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	for code, want := range map[string]string{
		"eval('1 + 1')": "2",
		"help(len)":     "null",
		"from os import path\npath.join('a', 'b')":                                           `"a/b"`,
		"import os.path\nos.path.splitext('a.csv')[1]":                                       `".csv"`,
		"import sqlite3\nsqlite3.connect(':memory:').execute('select 3').fetchone()":         "[3]",
		"import tempfile, shutil\nwith tempfile.TemporaryDirectory() as d:\n    pass\nd[:5]": `"/tmp/"`,
	} {
		if a := c.run(t, id, code); a.get("status") != "completed" || compactJSON(a.get("result")) != want {
			t.Errorf("%s: got %s, want %s", code, a.text, want)
		}
	}
	if a := c.run(t, id, "help(len)"); !strings.Contains(fmt.Sprint(a.get("stdout")), "number of items") {
		t.Errorf("help(len): got %s", a.text)
	}
	strict := c.create(t, map[string]any{"profile": "strict"})
	if a := c.run(t, strict, "eval('1')"); !strings.Contains(string(a.text), "PolicyError") {
		t.Errorf("strict, eval: got %s, want a PolicyError", a.text)
	}
}

// refusedModules are the public modules that agents cannot import: they cannot work in a sandbox, or they surprise.
var refusedModules = strings.Fields(`
antigravity asynchat asyncore atexit bdb builtins code codeop ctypes curses ensurepip faulthandler fcntl ftplib getpass
grp http idlelib imaplib imp importlib multiprocessing nis nntplib os ossaudiodev pdb pkgutil poplib posix pty pwd
readline resource rlcompleter runpy select selectors signal site smtpd smtplib socket socketserver spwd ssl subprocess
sys sysconfig syslog telnetlib termios tkinter tty turtle turtledemo urllib venv webbrowser wsgiref xmlrpc zipimport`)
