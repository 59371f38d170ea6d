package main

import (
	"fmt"
	"strings"
	"testing"
)

// What a thread prints after its cell belongs to that cell, even while another runs (jupyterlab/jupyterlab#3936,
// ipython/ipykernel#1186).
func TestJupyterLateOutputOfThreads(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	s := c.connect(t, c.newKernel(t))
	first := s.send("shell", "execute_request", map[string]any{"code": `import threading
began, go, done = threading.Event(), threading.Event(), threading.Event()
def work():
    print('early')
    began.set()
    go.wait()
    print('late é')
    import sys; print('error', file=sys.stderr)
    done.set()
thread = threading.Thread(target=work); thread.start(); began.wait()`})
	s.answers(first)
	second := s.send("shell", "execute_request", map[string]any{"code": `go.set(); done.wait()
new = threading.Thread(target=print, args=('of the second',)); new.start(); new.join()
print('second')`})
	texts := map[string]string{}
	s.until(func(m kernelMessage) bool {
		if m.Kind == "stream" {
			texts[m.Parent.ID] += fmt.Sprint(m.Content["text"])
		}
		return m.Parent.ID == second && m.Content["execution_state"] == "idle"
	})
	if got, want := texts[second], "of the second\nsecond\n"; got != want {
		t.Errorf("the second cell: got %q, want %q", got, want)
	}
	if got, want := texts[first], "late é\nerror\n"; got != want {
		t.Errorf("the first cell, while the second runs: got %q, want %q", got, want)
	}
	// The record has all text of the time of a run.
	list := admin.must(t, "GET", "/executions?kind=jupyter&limit=1", nil)
	rows, _ := list["executions"].([]any)
	row, _ := rows[0].(map[string]any)
	if e := admin.must(t, "GET", "/executions/"+fmt.Sprint(row["execution_id"]), nil); !strings.Contains(
		fmt.Sprint(e["stdout"]), "late é") {
		t.Errorf("the record of the second cell: got %v, want the late text", e["stdout"])
	}
	// Text between the end of a cell and the stop of its process comes with the next cell, and belongs to the first.
	short := s.send("shell", "execute_request", map[string]any{"code": `def often():
    print_now.wait()
    for n in range(200_000):
        if ended.is_set(): break
        print('x')
ended, print_now = threading.Event(), threading.Event()
threading.Thread(target=often).start()`})
	s.answers(short)
	for range 20 {
		for _, m := range s.run("print_now.set()") {
			if m.Kind == "stream" {
				t.Fatalf("a cell that prints nothing: got %v, want no text", m.Content)
			}
		}
	}
	s.run("ended.set()")
	// A thread that has ended leaves its place to new ones.
	if got := textOf(s.run("thread.join()\n" +
		"t = threading.Thread(target=print, args=('own',)); t.start(); t.join()")); got != "stdout: own\n" {
		t.Errorf("a new thread: got %q, want its text in its own cell", got)
	}
}

// A request with store_history false, or a silent one, does not count as a cell, and the next has its number
// (denoland/deno#20847, jupyterlite/jupyterlite#478).
func TestJupyterCountsTheCellsOfTheHistory(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	s := c.connect(t, c.newKernel(t))
	for n, x := range []struct {
		request map[string]any
		want    string
	}{
		{map[string]any{"code": "'a'"}, "input 1, result 1, reply 1"},
		{map[string]any{"code": "'b'", "store_history": false}, "input 2, result 2, reply 1"},
		{map[string]any{"code": "'c'", "silent": true}, "reply 1"},
		{map[string]any{"code": "'d'", "silent": true, "store_history": true}, "reply 1"},
		{map[string]any{"code": "'e'", "store_history": true}, "input 2, result 2, reply 2"},
		{map[string]any{"code": "1/0", "store_history": false}, "input 3, reply 2"},
		{map[string]any{"code": "'f'"}, "input 3, result 3, reply 3"},
	} {
		var got []string
		for _, m := range s.request("shell", "execute_request", x.request) {
			name, ok := strings.CutPrefix(m.Kind, "execute_")
			if ok {
				got = append(got, fmt.Sprint(name, " ", m.Content["execution_count"]))
			}
		}
		if strings.Join(got, ", ") != x.want {
			t.Errorf("request %d: got %v, want %s", n+1, got, x.want)
		}
	}
}
