package isolatetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/layer"
)

// hostilePackage is the __init__.py of a package that runs programs when it is imported, and prints what came of
// each. Its argument is a JSON list of [name, variables, program], as a literal of Python.
const hostilePackage = `import ast, asyncio, inspect, json, os

def run(tree, mode, space):
    code = compile(tree, "hostile", mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, space)
    return asyncio.run(result) if code.co_flags & inspect.CO_COROUTINE else result

def attempt(program, given):
    tree = ast.parse(program)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    space = {"__name__": "__main__", **given}
    try:
        run(tree, "exec", space)
        return run(ast.Expression(last.value), "eval", space) if last else None
    except BaseException as error:
        return f"refused: {error!r}"

def say(text):
    os.write(2, text[:4000].replace("\n", " ").encode() + b"\n")

for name, given, program in json.loads(%s):
    say(f"tries {name}")
    say(f"tried {name}: {attempt(program, given)!r}")
`

// canTry reports whether a level has a layer against an escape that a package tries. Programs that exhaust or block
// their own process do not count: a zygote that does not become warm is ended, and its sandboxes do not start.
func canTry(e escape, level string) bool {
	isRoot := os.Geteuid() == 0
	switch {
	case e.openOnImport != "", len(e.parts) > 1, slices.Contains([]string{"exhaustion", "stuck", "protocol"}, e.family),
		slices.Contains([]string{"left", "printed", "output", "large"}, e.proof):
		return false
	case level == isolate.LevelLandlock:
		return e.openOnLandlock == "" && (isRoot || e.has(layer.Seccomp) || e.has(layer.Landlock))
	case level == isolate.LevelRLimits: // no layer protects files
		return e.has(layer.Seccomp)
	}
	return true
}

func (e escape) has(l layer.Layer) bool { return slices.Contains(e.layers, string(l)) }

// hostile imports a package that tries escapes, in a zygote with the warm modules.
type hostile struct {
	python string
	warm   []string
	level  string
	open   bool // without the layers: the programs must succeed
	at     *targets

	slowLog time.Duration // for a line
}

// try returns the escapes that succeeded, those that were tried, since a program may end its zygote, and what the
// isolation said.
func (h hostile) try(t *testing.T, escapes []escape) (escaped, tried []string, said string) {
	h.at.restore()
	var programs [][3]any
	marks := map[string]string{}
	for _, e := range escapes {
		marks[e.name] = Nonce()
		given := map[string]any{"nonce": marks[e.name]}
		for name, value := range h.at.context {
			given[name] = value
		}
		programs = append(programs, [3]any{e.name, given, e.parts[0]})
	}
	text, err := json.Marshal(programs)
	Must(t, err)
	said = h.importPackage(t, fmt.Sprintf(hostilePackage, literal(string(text))))
	target, _ := os.ReadFile(h.at.folder + "/target")
	for _, e := range escapes {
		if strings.Contains(said, "tries "+e.name+"\n") {
			tried = append(tried, e.name)
		}
		_, result, _ := strings.Cut(said, "tried "+e.name+": ")
		result, _, _ = strings.Cut(result, "\n")
		_, left := os.Stat(h.at.folder + "/open/" + marks[e.name])
		succeeded := result == "'escaped'"
		switch e.proof {
		case "secret":
			succeeded = strings.Contains(result, h.at.token)
		case "arrived":
			succeeded = h.at.hasReceived(marks[e.name], 0)
		case "signalled":
			succeeded = h.at.wasSignalled(0)
		case "changed":
			succeeded = strings.Contains(string(target), marks[e.name]) || left == nil
		}
		if succeeded {
			escaped = append(escaped, e.name)
		}
	}
	return escaped, tried, said
}

// importPackage starts a zygote that imports a package with this code, and returns what the isolation logs.
func (h hostile) importPackage(t *testing.T, code string) string {
	name := "hostile_" + Nonce()
	folder := filepath.Join(sitePackages(t, h.python), name)
	Must(t, os.Mkdir(folder, 0o755))
	defer os.RemoveAll(folder)
	Must(t, os.WriteFile(folder+"/__init__.py", []byte(code), 0o644))
	var mu sync.Mutex
	var output strings.Builder
	config := withDefaults(t, isolate.Config{Level: h.level,
		WarmSets: []isolate.WarmSet{{Name: "hostile", Modules: append(slices.Clone(h.warm), name), Pool: 1}},
		Log: func(format string, args ...any) {
			time.Sleep(h.slowLog)
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&output, format+"\n", args...)
		}})
	config.Python = h.python
	if h.open {
		config.Without = layer.Set{layer.User, layer.Root, layer.ReadOnly, layer.PID, layer.Network, layer.IPC,
			layer.Environment, layer.Seccomp, layer.Landlock, layer.NoNewPrivs, layer.Capabilities, layer.UID,
			layer.Rlimits}
	}
	i, err := isolate.Open(config)
	if err == nil {
		i.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		fmt.Fprintf(&output, "Open: %v\n", err)
	}
	return output.String()
}

// tryAll is try with a few programs in each zygote.
func (h hostile) tryAll(t *testing.T, escapes []escape) (escaped, tried []string) {
	atOnce := 10
	if h.open {
		atOnce = 1 // they change what the next ones find
	}
	for len(escapes) > 0 {
		good, done, said := h.try(t, escapes[:min(atOnce, len(escapes))])
		if len(done) == 0 {
			t.Errorf("level %s: no zygote imports the package with %s; the isolation says\n%s", h.level,
				escapes[0].name, said)
			done = []string{escapes[0].name}
		}
		escaped, tried = append(escaped, good...), append(tried, done...)
		escapes = escapes[len(done):]
	}
	return escaped, tried
}

// literal returns a text as a literal of Python.
func literal(text string) string {
	body, _ := json.Marshal(text)
	return string(body)
}

// A package that a zygote imports is code of strangers. It can do no more than the code of a guest.
func TestPackagesCannotEscapeWhenTheyAreImported(t *testing.T) {
	t.Parallel()
	levels := []string{Level()}
	if Level() == "" && !testing.Short() {
		levels = []string{isolate.LevelFull, isolate.LevelWithoutCgroups, isolate.LevelLandlock, isolate.LevelRLimits}
	}
	h := hostile{python: copyInterpreter(t), at: plantTargets(t, Python(t), os.Getenv(tokenVariable))}
	var escapes []escape
	for _, e := range readEscapes(t) {
		if e.openOnImport != "" {
			t.Logf("report: a package may try %s: %s", e.name, e.openOnImport)
		}
		if cannotSucceed(e, h.at) == "" {
			escapes = append(escapes, e)
		}
	}
	for _, h.level = range levels {
		list := slices.DeleteFunc(slices.Clone(escapes), func(e escape) bool { return !canTry(e, h.level) })
		escaped, tried := h.tryAll(t, list)
		if len(escaped) > 0 {
			t.Errorf("level %s: got the escapes %v of a package that is imported, want none", h.level, escaped)
		}
		t.Logf("report: level %s: a package tried %d of %d escapes when it was imported", h.level, len(tried),
			len(escapes))
	}
	if Level() != "" || testing.Short() || os.Geteuid() != 0 {
		return
	}
	h.level, h.open = isolate.LevelFull, true
	list := slices.DeleteFunc(slices.Clone(escapes), func(e escape) bool { return !canTry(e, h.level) })
	escaped, _ := h.tryAll(t, list)
	t.Logf("report: without the layers %d of %d escapes of a package that is imported succeed", len(escaped), len(list))
	if len(escaped) < 40 {
		t.Errorf("without the layers: got the escapes %v, want at least 40: the programs must be attacks", escaped)
	}
}

// copyInterpreter makes a virtual environment without packages.
func copyInterpreter(t *testing.T) (python string) {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "glasshouse-hostile-")
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	Must(t, os.Chmod(folder, 0o755)) // so that the sandboxes' accounts can enter it
	out, err := exec.Command(Python(t), "-m", "venv", "--without-pip", folder+"/env").CombinedOutput()
	if err != nil {
		t.Fatalf("make a virtual environment: %v: %s", err, out)
	}
	return folder + "/env/bin/python"
}

func sitePackages(t *testing.T, python string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Dir(python) + "/../lib/python3*/site-packages")
	if len(found) != 1 {
		t.Fatalf("find the packages of %s: got %v", python, found)
	}
	return found[0]
}

// A package may write a few files when it is imported, and fills no disk. That it maps memory which all sandboxes share
// is told, or refused.
func TestFilesAndMemoryOfPackagesAreLimited(t *testing.T) {
	t.Parallel()
	h := hostile{python: copyInterpreter(t), level: Level()}
	said := h.importPackage(t, `import os, time
written = 0
try:
    with open(os.environ["TMPDIR"] + "/fill", "wb", 0) as file:
        while written < 1000:
            file.write(bytes(1 << 20))
            written += 1
            time.sleep(0.01)
except OSError as error:
    pass
os.write(2, b"stopped after %d MiB\n" % written)
`)
	want := "its packages have written more than 64 MiB"
	if HasNamespaces() {
		want = "stopped after 6" // MiB: the size of /tmp
	}
	if !strings.Contains(said, want) {
		t.Errorf("a package that writes 1000 MiB: got the log %s, want %q", said, want)
	}
	said = h.importPackage(t, "import mmap\nkept = mmap.mmap(-1, 4096)\n")
	refused := strings.Contains(said, "Cannot allocate memory") // where no control group would count it
	if !refused && !strings.Contains(said, "maps memory that all of its sandboxes share") {
		t.Errorf("a package that maps shared memory: got the log %s", said)
	}
}

// What a package has printed is logged when the isolation is closed, even if logging takes longer than the import.
func TestOutputOfPackagesIsLogged(t *testing.T) {
	t.Parallel()
	h := hostile{python: copyInterpreter(t), level: Level(), slowLog: time.Millisecond}
	said := h.importPackage(t, `import os
for i in range(300):
    os.write(2, b"line %d\n" % i)
`)
	if !strings.Contains(said, "line 299\n") {
		t.Errorf("a package that prints 300 lines: got the log %s, want all of them", said)
	}
}
