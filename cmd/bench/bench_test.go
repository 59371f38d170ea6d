package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// newStub returns a client of a server that answers the programs of mixedRun correctly. spoil may change the
// answer to the n-th request.
func newStub(t *testing.T, spoil func(n int, answer map[string]any)) *client {
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
				Label string
				I     int
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		label := in.Context.Label
		out := map[string]any{"status": "completed", "result": nil, "stdout": "", "error": nil}
		mu.Lock()
		defer mu.Unlock()
		requests++
		switch {
		case strings.Contains(in.Code, "ValueError"):
			out["status"], out["stdout"], out["error"] = "failed", label+"\n", "ValueError: "+label
		case strings.Contains(in.Code, "1 / 0"):
			out["status"], out["stdout"], out["error"] = "failed", label+"\n", "ZeroDivisionError: division by zero"
		case strings.Contains(in.Code, "print(label)"):
			out["stdout"] = label + "\n"
		case strings.Contains(in.Code, "turns"):
			turns[r.URL.Path]++
			out["result"] = []any{label, turns[r.URL.Path]}
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

func stubPaths(n int) (paths []string) {
	for i := range n {
		paths = append(paths, executePath(fmt.Sprintf("s%d", i)))
	}
	return paths
}

func TestWrongAnswersAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(map[string]any)
		want  float64
	}{
		"none":   {func(map[string]any) {}, 0},
		"status": {func(a map[string]any) { a["status"] = "killed" }, 10},
		"stdout": {func(a map[string]any) { a["stdout"] = a["stdout"].(string) + " " }, 10},
		"fields": {func(a map[string]any) {
			a["result"], a["error"] = 0, "SystemError: gone"
			if a["status"] == "completed" && a["stdout"] != "" { // an output alone has no result to spoil
				a["status"] = "failed"
			}
		}, 10},
	} {
		stub := newStub(t, func(n int, a map[string]any) {
			if n%50 == 0 {
				c.spoil(a)
			}
		})
		if got, err := stub.mixedRuns(t.Context(), 500, stubPaths(16)); err != nil || got != c.want {
			t.Errorf("%s: got %v wrong answers, %v, want %v", name, got, err, c.want)
		}
	}
	stub := newStub(t, nil)
	stub.key = "another"
	if got, _ := stub.mixedRuns(t.Context(), 20, stubPaths(2)); got != 20 {
		t.Errorf("refused requests: got %v wrong answers, want 20", got)
	}
}

// constant returns a sample function of one value that appends a name to order.
func constant(order *string, name string, value float64) sampleFunc {
	return func() (float64, error) { *order += name; return value, nil }
}

func TestPairsAreTakenInTurn(t *testing.T) {
	for alternate, want := range map[bool]string{true: "ba" + "abbaabba", false: "ba" + "babababa"} {
		order := ""
		as, bs, err := inTurn(
			t.Context(),
			4,
			time.Minute,
			constant(&order, "a", 3),
			constant(&order, "b", 2),
			alternate,
		)
		if err != nil || order != want || len(as) != 4 || median(ratios(as, bs)) != 1.5 {
			t.Errorf(
				"alternate %v: got order %s, samples %v and %v, %v, want order %s",
				alternate,
				order,
				as,
				bs,
				err,
				want,
			)
		}
	}
	order := ""
	broken := func() (float64, error) { return 0, errors.New("broken") }
	if _, _, err := inTurn(t.Context(), 4, time.Minute, constant(&order, "a", 1), broken, true); err == nil {
		t.Error("got no error of a sample that failed")
	}
}

func TestQuantiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	if m, q := median(hundred), quantile(hundred, 0.99); m != 50.5 || q != 99 {
		t.Errorf("got median %v and p99 %v, want 50.5 and 99", m, q)
	}
	if m, q := median([]float64{3}), quantile([]float64{3}, 0.99); m != 3 || q != 3 {
		t.Errorf("of one sample: got median %v and p99 %v, want 3", m, q)
	}
}

func TestGoals(t *testing.T) {
	for _, c := range []struct {
		goal                     goal
		unit                     unit
		median, p99, peer, ratio float64
		met                      bool
		text                     string
	}{
		{absolute(2, 10), milliseconds, 1.9, 9, 0, 0, true, "≤ 2 ms, p99 10 ms"},
		{absolute(2, 10), milliseconds, 1.9, 11, 0, 0, false, "≤ 2 ms, p99 10 ms"},
		{ofPeer(0.12, 0.5), milliseconds, 2, 5, 17, 0.1, true, "≤ 0.12x, p99 0.5x"},
		{ofPeer(0.12, 0.5), milliseconds, 2, 9, 17, 0.1, false, "≤ 0.12x, p99 0.5x"},
		{ofPeer(1.3, 0), perSecond, 100, 0, 80, 1.25, false, "≥ 1.3x"},
		{absolute(3000, 0), perSecond, 3001, 0, 0, 0, true, "≥ 3000 /s"},
		{absolute(0, 0), wrongAnswers, 0, 0, 0, 0, true, "≤ 0 wrong"},
		{absolute(0, 0), wrongAnswers, 1, 0, 0, 0, false, "≤ 0 wrong"},
	} {
		if got := c.goal.met(c.unit, c.median, c.p99, c.peer, c.ratio); got != c.met {
			t.Errorf("%+v: got met %v, want %v", c, got, c.met)
		}
		if got := c.goal.text(c.unit); got != c.text {
			t.Errorf("got text %q, want %q", got, c.text)
		}
	}
}

func TestRowIsWorseOnlyIfBothMeasurementsAre(t *testing.T) {
	for _, c := range []struct {
		unit          unit
		ratios, again []float64
		worse         bool
	}{
		{milliseconds, []float64{1.05, 1.2, 1.0}, nil, false},
		{milliseconds, []float64{1.2, 1.3, 1.1}, []float64{1.2}, true},
		{milliseconds, []float64{1.2, 1.3, 0.9, 1.5}, []float64{1.2, 1.4, 0.8, 0.9}, false},
		{milliseconds, []float64{1.2, 1.3, 0.9}, []float64{1.0}, false},
		{milliseconds, []float64{0.5}, nil, false},
		{perSecond, []float64{0.8}, []float64{0.8}, true},
		{perSecond, []float64{1.4}, nil, false},
	} {
		row := comparison{measurement: measurement{unit: c.unit}, ratios: c.ratios, again: c.again}
		if got := row.worse(10); got != c.worse {
			t.Errorf("%s, ratios %v, again %v: got worse %v, want %v", c.unit.label, c.ratios, c.again, got, c.worse)
		}
	}
}

func TestRowsAreSelectedBySuiteAndPattern(t *testing.T) {
	o := options{only: regexp.MustCompile("^hello, fresh sandbox$")}
	if rows, err := selectRows(o, []string{"api"}); err != nil || len(rows) != 1 || rows[0].suite != "api" {
		t.Errorf("got %v, %v, want one row of the suite api", rows, err)
	}
	if _, err := selectRows(o, []string{"nonsense"}); err == nil {
		t.Error("got no error for an unknown suite")
	}
	o.only = regexp.MustCompile("")
	all, err := selectRows(o, suiteNames())
	if err != nil {
		t.Fatal(err)
	}
	for n, m := range all {
		if m.open == nil || m.samples == 0 || m.name == "" || m.unit.label == "" {
			t.Errorf("row %q lacks a field", m.name)
		}
		if slices.ContainsFunc(all[:n], func(o measurement) bool {
			return o.suite == m.suite && o.name == m.name && o.settings == m.settings && o.peerName == m.peerName
		}) {
			t.Errorf("row %q is there twice", m.name)
		}
	}
}

func TestReportHasEveryRow(t *testing.T) {
	table := &table{Machine: map[string]string{"CPU": "one"}, Rows: []row{
		{
			Suite:      "api",
			Name:       "fast",
			Unit:       "ms",
			Samples:    9,
			Median:     new(1.0),
			P99:        new(2.0),
			Peer:       "peer",
			PeerMedian: new(4.0),
			Ratio:      new(0.25),
			Goal:       "≤ 1x",
			Met:        new(true),
			digits:     2,
		},
		{Suite: "api", Name: "slow", Unit: "ms", Median: new(40.0), Goal: "≤ 1 ms", Met: new(false)},
		{Suite: "sql", Name: "broken", Unit: "ms", Goal: "≤ 1 ms", Met: new(false), Error: "HTTP 500"},
		{Suite: "peers", Name: "lost", Unit: "ms", Goal: "≤ 1x", Peer: "server", Error: "no server"},
	}}
	var terminal bytes.Buffer
	table.print(&terminal)
	for _, want := range []string{
		"1 of 3 goals are met", "MISSED", "could not be measured: HTTP 500", "0.250", "slow", "broken",
	} {
		if !strings.Contains(terminal.String(), want) {
			t.Errorf("got no %q in:\n%s", want, &terminal)
		}
	}
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := table.writeMarkdown(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, markdown, _ := strings.Cut(string(text), "\n## Results\n")
	for _, want := range []string{
		"### The API\n\n| what | ours | p99 | peer | its figure | ratio |\n|---|---|---|---|---|---|\n",
		"| fast | 1.00 ms | 2.00 | peer | 4.00 ms | 0.250 |\n",
		"### Compared with other servers\n", "| lost | could not be measured: no server |  | server |  |  |\n",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("got no %q in:\n%s", want, markdown)
		}
	}
	for _, wrong := range []string{"slow", "broken", "SQL", "goal", "MISSED", "≤"} { // no peer, or for developers
		if strings.Contains(markdown, wrong) {
			t.Errorf("got %q, which users do not compare, in:\n%s", wrong, markdown)
		}
	}
}

// TestReportWaitsForAQuietMachine checks when a report begins, and that it refuses a machine that stays busy.
func TestReportWaitsForAQuietMachine(t *testing.T) {
	const looks = 121 // one at once, then one every 5 s for ten minutes
	repeat := func(load float64, n int) []float64 { return slices.Repeat([]float64{load}, n) }
	unread := errors.New("unread")
	for _, c := range []struct {
		name  string
		cores int
		loads []float64 // of each look; after them it fails
		waits int
		want  string // in the error
	}{
		{"a quiet machine", 2, []float64{1}, 0, ""},
		{"a busy machine", 2, []float64{9, 1.01, 0.2}, 2, ""},
		{"many cores", 64, []float64{32.1, 31}, 1, ""},
		{"one core", 1, []float64{0.6, 0.5}, 1, ""},
		{"quiet at the last look", 2, append(repeat(3, looks-1), 1), looks - 1, ""},
		{"busy for ten minutes", 2, append(repeat(3, looks), 1), looks - 1, "is 3.00 after 10m0s, and a report needs"},
		{"no load", 2, nil, 0, unread.Error()},
	} {
		waits, next := 0, c.loads
		load := func() (float64, error) {
			if len(next) == 0 {
				return 0, unread
			}
			defer func() { next = next[1:] }()
			return next[0], nil
		}
		err := waitForQuiet(t.Context(), c.cores, load, func(context.Context) error { waits++; return nil })
		if waits != c.waits || (c.want == "") != (err == nil) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: got %v after %d waits, want %d waits and error %q", c.name, err, waits, c.waits, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	busy := func() (float64, error) { return 9, nil }
	if err := waitForQuiet(ctx, 2, busy, pause); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v, want %v", err, context.Canceled)
	}
	if load, err := loadOfMinute(); err != nil || load < 0 {
		t.Errorf("got a load of %v, %v", load, err)
	}
}

func TestMissingPeersMissNoGoal(t *testing.T) {
	b := newBench(options{})
	b.services[""] = &glasshouse{}
	m := measurement{
		unit: milliseconds, goal: ofPeer(1, 0), samples: 1,
		open: func(context.Context, *glasshouse) (sampler, error) { return sampler{}, nil }, peer: onServer(replServer, nil),
	}
	if r := b.measure(t.Context(), m); r.Met != nil || !strings.Contains(r.Error, "not installed") {
		t.Errorf("got %+v, want an error that says that the peers are not installed, and no missed goal", r)
	}
	m.peer = nil
	m.open = func(context.Context, *glasshouse) (sampler, error) { return sampler{}, errors.New("no") }
	if r := b.measure(t.Context(), m); r.Met == nil || *r.Met || r.Error != "no" || r.Peer != baselineName {
		t.Errorf("got %+v, want a missed goal and a row of the report", r)
	}
}

func TestRatesCountOnlyExpectedAnswers(t *testing.T) {
	const answer = `{"status":"completed","code":"x","result":22,"stdout":"hello\n","stderr":""}`
	for want, ok := range map[expectation]bool{
		{status: "completed", result: "22", stdout: "hello\n"}: true,
		{status: "completed", stdout: "hello\n"}:               true,
		{status: "failed", stdout: "hello\n"}:                  false,
		{status: "completed", result: "2", stdout: "hello\n"}:  false,
		{status: "completed", stdout: ""}:                      false,
	} {
		if err := want.search([]byte(answer)); (err == nil) != ok {
			t.Errorf("%+v: got %v, want it found: %v", want, err, ok)
		}
	}
}

func TestConnectionsAreReused(t *testing.T) {
	// A blocking connection occupies a processor of Go's scheduler and cannot be stopped for a garbage
	// collection, and the server of this test is in the same process.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, blocking := range []bool{false, true} {
		var mu sync.Mutex
		clients, asked := map[string]int{}, make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			clients[r.RemoteAddr]++
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
		all := newConnections(server.URL, blocking)
		for path, size := range map[string]int{"/": 6, "/last": 6, "/long": 100_006} {
			for range 3 {
				if status, body, err := all.exchange(t.Context(), "POST", path, "", []byte("{}")); err != nil ||
					status != 200 ||
					len(body) != size {
					t.Errorf(
						"%s: got status %d, %d bytes, %v, want 200 and %d bytes",
						path,
						status,
						len(body),
						err,
						size,
					)
				}
			}
		}
		if _, _, err := all.exchange(t.Context(), "POST", "/short", "", nil); err == nil {
			t.Error("a truncated answer: got no error")
		}
		mu.Lock()
		if n := len(clients); n < 3 || n > 5 { // each /last closes one
			t.Errorf("got %d connections, want 3 to 5", n)
		}
		mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		if _, _, err := all.exchange(ctx, "POST", "/never", "", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled request: got %v, want %v", err, context.Canceled)
		}
	}
}

// A row that is renamed, or a revision that does not exist, would silently be compared with nothing.
func TestBestRevisionsAreThoseOfRows(t *testing.T) {
	best, err := readBest(bestText)
	if err != nil {
		t.Fatal(err)
	}
	names := map[[2]string]bool{{anyRow, anyRow}: true}
	rows, err := selectRows(options{only: regexp.MustCompile("")}, suiteNames())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		names[[2]string{m.suite, m.name}] = true
	}
	for row, revision := range best {
		if !names[row] {
			t.Errorf("best.txt has a row %q of the suite %q, which does not exist", row[1], row[0])
		}
		if !regexp.MustCompile("^[0-9a-f]{7,40}$").MatchString(revision) {
			t.Errorf("best.txt has the revision %q for %q; want the digits of a commit", revision, row[1])
		}
	}
}

func TestBestRevisionOfARow(t *testing.T) {
	best, err := readBest("# a comment\n*\t*\taaaaaaa\napi\tone\tbbbbbbb\n")
	if err != nil {
		t.Fatal(err)
	}
	rows := []measurement{{suite: "api", name: "one"}, {suite: "sql", name: "one"}, {suite: "api", name: "two"}}
	if got := best.only(rows, "bbbbbbb"); len(got) != 1 || got[0].name != "one" || got[0].suite != "api" {
		t.Errorf("rows of bbbbbbb: got %+v, want the row one of api", got)
	}
	if got := best.only(rows, "aaaaaaa"); len(got) != 2 {
		t.Errorf("rows of aaaaaaa: got %+v, want the other two", got)
	}
	if got := best.revisions(); !slices.Equal(got, []string{"aaaaaaa", "bbbbbbb"}) {
		t.Errorf("got the revisions %v, want both", got)
	}
	for _, wrong := range []string{"api\tone\tbbbbbbb\n", "*\t*\n", "*\t*\taaaaaaa\n*\t*\tbbbbbbb\n"} {
		if _, err := readBest(wrong); err == nil {
			t.Errorf("%q: got no error", wrong)
		}
	}
}
