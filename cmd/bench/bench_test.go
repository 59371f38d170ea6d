package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// stub answers the programs of the benchmark as a right service would; spoil
// may change an answer, given the number of the request.
func stub(t *testing.T, spoil func(n int, answer map[string]any)) *client {
	t.Helper()
	var mu sync.Mutex
	turns, requests := map[string]int{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var in struct {
			Code    string
			Context struct {
				Mark string
				I    int
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		mark := in.Context.Mark
		out := map[string]any{"status": "completed", "result": nil, "stdout": "", "error": nil}
		mu.Lock()
		defer mu.Unlock()
		requests++
		switch {
		case strings.Contains(in.Code, "ValueError"):
			out["status"], out["stdout"], out["error"] = "failed", mark+"\n", "ValueError: "+mark
		case strings.Contains(in.Code, "1 / 0"):
			out["status"], out["stdout"], out["error"] = "failed", mark+"\n", "ZeroDivisionError: division by zero"
		case strings.Contains(in.Code, "print(mark)"):
			out["stdout"] = mark + "\n"
		case strings.Contains(in.Code, "turns"):
			turns[r.URL.Path]++
			out["result"] = []any{mark, turns[r.URL.Path]}
		default:
			out["result"] = in.Context.I*7 + 1
		}
		if spoil != nil {
			spoil(requests, out)
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	return newClient(server.URL, "key")
}

func ids(n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("s%d", i))
	}
	return ids
}

func TestCountWrongFindsNothingInRightAnswers(t *testing.T) {
	wrong, done, examples := stub(t, nil).countWrong(t.Context(), 500, ids(16))
	if wrong != 0 || done != 500 {
		t.Fatalf("wrong %d of %d: %v", wrong, done, examples)
	}
}

func TestCountWrongSeesEachKindOfWrongness(t *testing.T) {
	for name, spoil := range map[string]func(map[string]any){
		"status": func(a map[string]any) { a["status"] = "killed" },
		"stdout": func(a map[string]any) { a["stdout"] = a["stdout"].(string) + " " },
		"fields": func(a map[string]any) {
			a["result"], a["error"] = 0, "SystemError: gone"
			if a["status"] == "completed" && a["stdout"] != "" { // an output alone has no result to spoil
				a["status"] = "failed"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := stub(t, func(n int, a map[string]any) {
				if n%50 == 0 {
					spoil(a)
				}
			})
			wrong, done, examples := c.countWrong(t.Context(), 500, ids(16))
			if wrong != 10 || done != 500 || len(examples) != maxExamples {
				t.Fatalf("wrong %d of %d, want 10: %v", wrong, done, examples)
			}
		})
	}
}

func TestCountWrongCountsRefusedRequests(t *testing.T) {
	c := stub(t, nil)
	c.key = "another"
	if wrong, _, examples := c.countWrong(t.Context(), 20, ids(2)); wrong != 20 || !strings.Contains(examples[0], "401") {
		t.Fatalf("wrong %d: %v", wrong, examples)
	}
}

func TestInterleaveTakesBothSidesAlike(t *testing.T) {
	calls := 0
	p, err := interleave(t.Context(), 5, time.Minute, func() (time.Duration, error) {
		calls++
		return time.Duration(calls) * time.Millisecond, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{2, 3, 4, 5, 6}; !slices.Equal(p.subject, want) { // the first isn't counted
		t.Errorf("subject %v, want %v", p.subject, want)
	}
	if len(p.b) != 5 || slices.Min(p.b) <= 0 {
		t.Errorf("B %v", p.b)
	}
}

func TestQuantiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	if m, q := median(hundred), quantile(hundred, 0.99); m != 50.5 || q != 99 {
		t.Errorf("median %v, p99 %v", m, q)
	}
	if m, q := median([]float64{3}), quantile([]float64{3}, 0.99); m != 3 || q != 3 {
		t.Errorf("of one: median %v, p99 %v", m, q)
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("of nothing there is no quantile")
	}
}

func TestReportSaysWhatWasMissed(t *testing.T) {
	var r report
	r.add(row{Name: "fast", P50: new(1.0), B: 17, Ratio: new(0.06), Goal: "p50 0.12 B", Met: new(true)})
	r.add(row{Name: "slow", P50: new(40.0), B: 17, Ratio: new(2.3), Goal: "p50 1 B", Met: new(false)})
	r.failed("broken", errors.New("HTTP 500"))
	var text bytes.Buffer
	r.print(&text)
	for _, want := range []string{"1 of 3 goals met", "MISSED", "could not be measured", "HTTP 500"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
}

// Two subjects beside each other: each goes first every other time, and the ratio is
// that of each pair, so that what slows both down changes nothing.
func TestBeside(t *testing.T) {
	b := &bench{report: &report{}, size: size{latency: 10, limit: time.Minute}}
	order, slow := "", time.Duration(0)
	takes := func(name string, d time.Duration) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			order += name
			slow = time.Duration(len(order)/2) * time.Millisecond
			return d * max(slow, 1), nil
		}
	}
	b.beside(t.Context(), "a pair", "other", takes("s", 3), takes("w", 2))
	if want := "sw" + strings.Repeat("swws", 5); order != want {
		t.Errorf("they went %s, not %s", order, want)
	}
	if r := b.report.Rows[0]; r.Samples != 10 || !strings.HasPrefix(r.Value, "1.50 of one other (quartiles 1.") {
		t.Errorf("%+v", r)
	}
	b.beside(t.Context(), "a broken pair", "other", takes("s", 3), func() (time.Duration, error) { return 0, errors.New("broken") })
	if r := b.report.Rows[1]; r.Note != "broken" || r.Met == nil || *r.Met {
		t.Errorf("%+v", r)
	}
}

// A rate counts only what is expected, though it only glances at it.
func TestAGlanceSeesWhatIsWrong(t *testing.T) {
	const answer = `{"status":"completed","code":"x","result":22,"stdout":"hello\n","stderr":""}`
	for _, c := range []struct {
		x    expect
		good bool
	}{
		{expect{status: "completed", result: "22", stdout: "hello\n"}, true},
		{expect{status: "completed", stdout: "hello\n"}, true},
		{expect{status: "failed", stdout: "hello\n"}, false},
		{expect{status: "completed", result: "2", stdout: "hello\n"}, false},
		{expect{status: "completed", stdout: ""}, false},
	} {
		if err := c.x.glance([]byte(answer), nil); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.x, err)
		}
	}
	if (expect{status: "completed", stdout: "hello\n"}).glance([]byte(answer), errors.New("no")) == nil {
		t.Error("what failed is counted")
	}
}

// A connection is used again while the server keeps it, an answer that is cut short is none,
// and who no longer wants one does not wait for it.
func TestWires(t *testing.T) {
	// A direct connection keeps a thread, and stops the world from being stopped, and here the server is in the same world.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, direct := range []bool{false, true} {
		var mu sync.Mutex
		from, asked := map[string]int{}, make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			from[r.RemoteAddr]++
			mu.Unlock()
			switch r.URL.Path {
			case "/last":
				w.Header().Set("Connection", "close")
			case "/short":
				w.Header().Set("Content-Length", "100")
			case "/long":
				_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000)) // in chunks
			case "/never":
				close(asked)
				<-r.Context().Done()
			}
			_, _ = fmt.Fprint(w, "answer")
		}))
		defer server.Close()
		way := newWires(server.URL, direct)
		for path, size := range map[string]int{"/": 6, "/last": 6, "/long": 100_006} {
			for range 3 {
				if status, body, err := way.exchange(t.Context(), "POST", path, "", []byte("{}")); err != nil || status != 200 || len(body) != size {
					t.Errorf("%s: %d, %d bytes, %v", path, status, len(body), err)
				}
			}
		}
		if _, _, err := way.exchange(t.Context(), "POST", "/short", "", nil); err == nil {
			t.Error("an answer that is cut short is taken for one")
		}
		mu.Lock()
		if n := len(from); n < 3 || n > 5 { // each /last ends one
			t.Errorf("it took %d connections", n)
		}
		mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if _, _, err := way.exchange(ctx, "POST", "/never", "", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}
