package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// cell is one cell of a notebook with its expected outcome.
type cell struct {
	title, code                    string
	result, fields                 string // JSON; has: only the fields that it names
	stdout                         string
	stderr                         []string // substrings
	outputs                        []string // MIME types of each rich output
	newArtifacts, changedArtifacts []string // path and MIME type
	failure                        string
	prints                         string // a part of stdout; the rest is not checked
	cut                            string // JSON of truncated
}

// readNotebook reads a notebook in the percent format.
func readNotebook(t *testing.T, name string) (cells []cell) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return readCells(t, string(text))
}

// readCells reads the cells of a notebook.
func readCells(t *testing.T, text string) (cells []cell) {
	t.Helper()
	for _, part := range strings.Split(text, "\n# %% ")[1:] {
		c := cell{result: "null"}
		c.title, c.code, _ = strings.Cut(part, "\n")
		for line := range strings.Lines(c.code) {
			word, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "# "), "\n"), " ")
			switch {
			case !strings.HasPrefix(line, "# "):
			case word == "->":
				c.result = rest
			case word == "has:":
				c.result, c.fields = "", rest
			case word == "stdout:":
				c.stdout += rest + "\n"
			case word == "cut:":
				c.cut = rest
			case word == "prints:":
				c.prints = rest
			case word == "stderr:":
				c.stderr = append(c.stderr, rest)
			case word == "shown:":
				c.outputs = append(c.outputs, rest)
			case word == "left:":
				c.newArtifacts = append(c.newArtifacts, rest)
			case word == "changed:":
				c.changedArtifacts = append(c.changedArtifacts, rest)
			case word == "fails:":
				c.failure = rest
			default:
				t.Fatalf("cell %s: unknown annotation %q", c.title, line)
			}
		}
		cells = append(cells, c)
	}
	return cells
}

// check compares the execution of a cell with the expected outcome.
func (c cell) check(t *testing.T, e sandbox.Execution) {
	t.Helper()
	var fails string
	if x := e.Exception; x != nil {
		fails = fmt.Sprintf("%s at %d: %s", x.Type, x.Line, x.Message)
	}
	if (c.failure == "") != (fails == "") || (fails == "") != (e.Status == sandbox.StatusCompleted) {
		t.Fatalf("got the status %s: %s", e.Status, fails)
	}
	if head, said, _ := strings.Cut(c.failure, ": "); c.failure != "" && (!strings.HasPrefix(fails, head+": ") ||
		!strings.Contains(fails, said)) {
		t.Errorf("got the failure %q", fails)
	}
	if c.result != "" && !sameJSON(t, c.result, e.Result) {
		t.Errorf("got the result %s", e.Result)
	}
	if c.fields != "" {
		var want, got map[string]json.RawMessage
		_ = json.Unmarshal(e.Result, &got) // without fields if it is not an object
		if err := json.Unmarshal([]byte(c.fields), &want); err != nil {
			t.Fatal(err)
		}
		for key := range want {
			if got[key] == nil || !sameJSON(t, string(want[key]), got[key]) {
				t.Errorf("field %s: got %s", key, got[key])
			}
		}
	}
	isPrinted := e.Stdout == c.stdout
	if c.prints != "" {
		isPrinted = strings.Contains(e.Stdout, c.prints)
	}
	want := cmp.Or(c.cut, "{}")
	if !sameJSON(t, want, mustJSON(t, e.Truncated)) && len(e.Truncated)+len(c.cut) > 0 {
		t.Errorf("got truncated %v, want %s", e.Truncated, want)
	}
	if !isPrinted {
		t.Errorf("got the output %q", e.Stdout)
	}
	for _, part := range c.stderr {
		if !strings.Contains(e.Stderr, part) {
			t.Errorf("want %q in stderr, got %q", part, e.Stderr)
		}
	}
	if len(c.stderr) == 0 && e.Stderr != "" {
		t.Errorf("got %q in stderr, want nothing", e.Stderr)
	}
	var shown, left, changed []string
	for _, out := range e.Outputs {
		var types []string
		for kind := range out.Data {
			types = append(types, kind)
		}
		slices.Sort(types)
		if at := slices.Index(types, "text/plain"); at < 0 || out.Summary == "" {
			t.Errorf("got an output without text: %v %q", types, out.Summary)
		} else {
			types = slices.Delete(types, at, at+1)
		}
		shown = append(shown, strings.Join(types, " "))
	}
	for _, a := range e.Artifacts {
		if line := a.Path + " " + a.MIME; a.Change == sandbox.ChangeNew {
			left = append(left, line)
		} else {
			changed = append(changed, line)
		}
		if a.Size == 0 {
			t.Errorf("the artifact %s is empty", a.Path)
		}
	}
	if !slices.Equal(shown, c.outputs) {
		t.Errorf("got the outputs %q", shown)
	}
	if !slices.Equal(left, c.newArtifacts) || !slices.Equal(changed, c.changedArtifacts) {
		t.Errorf("got the new artifacts %q and the changed ones %q", left, changed)
	}
}

func sameJSON(t *testing.T, want string, got []byte) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatalf("not JSON: %s: %v", want, err)
	}
	return json.Unmarshal(got, &b) == nil && reflect.DeepEqual(a, b)
}

// A notebook, cell by cell in one sandbox, streamed: each cell produces its own output only, and the stream, the response
// and history agree.
func TestNotebookCells(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"max_memory_mb": 512, "cpu_percent": 100})
	made := t.TempDir()
	if out, err := exec.Command(os.Getenv("GLASSHOUSE_PYTHON"), "testdata/notebook/tables.py",
		made).CombinedOutput(); err != nil {
		t.Fatalf("could not make the tables: %v: %s", err, out)
	}
	for _, name := range []string{"testdata/notebook/sales.csv", made + "/stores.xlsx", made + "/readings.parquet"} {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := c.put(t, id, filepath.Base(name), string(body)); a.status != 200 {
			t.Fatalf("uploading %s: got %s", name, a.text)
		}
	}
	cells := readNotebook(t, "testdata/notebook/exercises.py")
	if !testing.Short() {
		cells = append(cells, readNotebook(t, "testdata/notebook/shown.py")...)
	}
	if len(cells) < 10 || !testing.Short() && len(cells) < 30 {
		t.Fatalf("got %d cells, want at least 40", len(cells))
	}
	for _, x := range cells {
		t.Run(x.title, func(t *testing.T) {
			list := c.stream(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": x.code}).all()
			checkEventIDs(t, list, 0)
			if len(list) == 0 || list[len(list)-1].name != "done" {
				t.Fatalf("got the events %v, want done at the end", eventNames(list))
			}
			done := list[len(list)-1].data
			var e sandbox.Execution
			if err := json.Unmarshal(mustJSON(t, done), &e); err != nil {
				t.Fatal(err)
			}
			x.check(t, e)
			var shown []any
			for _, event := range list {
				if event.name == "output" {
					shown = append(shown, event.data)
				}
			}
			if joinText(list, "stdout") != e.Stdout || joinText(list, "stderr") != e.Stderr ||
				compactJSON(shown) != compactJSON(done["outputs"]) && len(shown)+len(e.Outputs) > 0 {
				t.Errorf("got the streamed stdout %q, stderr %q and %d outputs, want the execution's",
					joinText(list, "stdout"), joinText(list, "stderr"), len(shown))
			}
			if record := c.ok(t, "GET", "/executions/"+e.ID,
				nil); compactJSON(withoutEmpty(record.body)["outputs"]) != compactJSON(done["outputs"]) ||
				!reflect.DeepEqual(record.get("result"), done["result"]) {
				t.Errorf("history: got %s, want the same", record.text)
			}
		})
	}
}

// annotations are the lines of a cell that say what is expected: in a cell of another language they would be content.
var annotations = regexp.MustCompile(`(?m)^# (->|has:|stdout:|stderr:|shown:|left:|changed:|fails:|prints:|cut:).*\n?`)

// Short notebooks, each in a sandbox of its own: magics, displays, plots, modules and cuts.
func TestNotebooks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cells/*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no notebooks: %v", err)
	}
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, notebook := range strings.Split(string(text), "\n# ## ")[1:] {
			title, _, _ := strings.Cut(notebook, "\n")
			count++
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				c := newUser(t, sandbox.RoleAgent)
				id := c.create(t, map[string]any{"max_memory_mb": 512, "cpu_percent": 100})
				for _, x := range readCells(t, notebook) {
					a := c.run(t, id, annotations.ReplaceAllString(x.code, ""))
					var e sandbox.Execution
					if err := json.Unmarshal([]byte(a.text), &e); err != nil {
						t.Fatal(err)
					}
					t.Run(x.title, func(t *testing.T) { x.check(t, e) })
				}
			})
		}
	}
	if count < 40 {
		t.Errorf("got %d notebooks, want at least 40", count)
	}
}

// A fresh sandbox shows what a library displays that is imported there. The interpreter that it is forked from has
// run a session of its own.
func TestFreshSandboxShowsWhatItDisplays(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for mime, code := range map[string]string{
		"text/html": "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))",
		"application/vnd.plotly.v1+json": "import plotly.graph_objects as go\n" +
			"go.Figure(go.Bar(x=[1], y=[2])).show()",
	} {
		a := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
		outputs, _ := a.get("outputs").([]any)
		if len(outputs) != 1 || outputs[0].(map[string]any)["data"].(map[string]any)[mime] == nil {
			t.Errorf("%q: got the outputs %v, want one with %s", code, outputs, mime)
		}
	}
}
