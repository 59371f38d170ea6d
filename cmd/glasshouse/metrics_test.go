package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// metricTypes are the metrics of the program. Dashboards depend on their names, types and labels.
var metricTypes = map[string]string{
	"glasshouse_executions_total{kind,status}":                    "counter",
	"glasshouse_execution_duration_seconds":                       "histogram",
	"glasshouse_execution_queue_seconds":                          "histogram",
	"glasshouse_fork_seconds":                                     "histogram",
	"glasshouse_pool_ready{zygote}":                               "gauge",
	"glasshouse_pool_misses_total":                                "counter",
	"glasshouse_sandboxes{state}":                                 "gauge",
	"glasshouse_queries_total{database,reason,status}":            "counter",
	"glasshouse_query_duration_seconds{database}":                 "histogram",
	"glasshouse_check_seconds":                                    "histogram",
	"glasshouse_history_wal_bytes":                                "gauge",
	"glasshouse_history_lag_seconds":                              "gauge",
	"glasshouse_recording_bytes_total":                            "counter",
	"glasshouse_egress_connections_total{outcome}":                "counter",
	"glasshouse_pending_writes":                                   "gauge",
	"glasshouse_kills_total{reason}":                              "counter",
	"glasshouse_late_cleanups{kind}":                              "gauge",
	"glasshouse_http_request_duration_seconds{code,method,route}": "histogram",
	"glasshouse_build_info{goversion,version}":                    "gauge",
	"glasshouse_active_sandboxes":                                 "gauge",
	"glasshouse_executions_failed_total":                          "counter",
	"glasshouse_executions_timeout_total":                         "counter",
	"glasshouse_http_requests_total":                              "counter",
	"glasshouse_http_errors_total":                                "counter",
	"glasshouse_uptime_seconds":                                   "gauge",
}

// scrape is an answer of /metrics: the value of each series, and the type of each metric.
type scrape struct {
	series map[string]float64
	types  map[string]string
}

var (
	seriesLine = regexp.MustCompile(`^([a-z_A-Z:0-9]+(?:\{.*\})?) (\S+)$`)
	labelName  = regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	suffixes   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// readMetrics returns the metrics at a URL. key may be "".
func readMetrics(t testing.TB, url, key string) scrape {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: got HTTP %d %s %v, want 200", url, resp.StatusCode, text, err)
	}
	s := scrape{map[string]float64{}, map[string]string{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			s.types[name] = kind
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		match := seriesLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("GET %s: got the line %q, want Prometheus's text format", url, line)
		}
		if s.series[match[1]], err = strconv.ParseFloat(match[2], 64); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// metrics returns the type of each metric of the program by its name and labels.
func (s scrape) metrics() map[string]string {
	found := map[string]string{}
	for series := range s.series {
		name, labels, _ := strings.Cut(series, "{")
		if !strings.HasPrefix(name, "glasshouse_") {
			continue
		}
		if s.types[name] == "" {
			name = suffixes.ReplaceAllString(name, "")
		}
		var names []string
		for _, match := range labelName.FindAllStringSubmatch(labels, -1) {
			if match[1] != "le" {
				names = append(names, match[1])
			}
		}
		slices.Sort(names)
		described := name
		if len(names) > 0 {
			described += "{" + strings.Join(names, ",") + "}"
		}
		found[described] = s.types[name]
	}
	return found
}

// reserveMetrics returns an address for the metrics and the setting with which a service listens there.
func reserveMetrics(t *testing.T) (url, setting string) {
	t.Helper()
	address := reserveAddress(t)
	return "http://" + address + "/metrics", "--metrics-listen=" + address
}

// TestMetricsCountWhatHappens makes everything happen that a metric counts, and requires that the metric moves.
func TestMetricsCountWhatHappens(t *testing.T) {
	t.Parallel()
	url, setting := reserveMetrics(t)
	_, c := start(t, binary(t), dataDir(t), setting)
	for host, want := range map[string]int{"rebound.example": 403, "127.0.0.1.example": 403, "localhost:1": 200} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("Host %s: got HTTP %d, want %d", host, resp.StatusCode, want)
		}
	}
	c.must(t, "GET", "/healthz", nil) // the first request begins the series of requests
	before := readMetrics(t, url, "")
	if got := before.metrics(); !maps.Equal(got, metricTypes) {
		t.Errorf("got the metrics %v, want %v", got, metricTypes)
	}
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
		if before.series[name] <= 0 {
			t.Errorf("got %s = %v, want it positive", name, before.series[name])
		}
	}

	quick := func(code string, more map[string]any) {
		t.Helper()
		body := map[string]any{"code": code}
		maps.Copy(body, more)
		c.must(t, "POST", "/sandbox/agent/quick-execute", body)
	}
	id := c.newSandbox(t, nil)
	c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "a = 1\nb = 2", "record": true})
	quick("await db_query('SELECT 1 AS n')", nil)
	quick("await db_query('DELETE FROM customers')", nil)
	quick("while True: pass", map[string]any{"timeout": 0.2})
	quick("await db_query('DELETE FROM customers')", map[string]any{
		"config": map[string]any{"write_policy": "capture"}})
	quick("import urllib.request\nurllib.request.urlopen('http://elsewhere.example/')", map[string]any{
		"config": map[string]any{"enable_network_access": true, "allowed_hosts": []string{"one.example"},
			"profile": "unrestricted"}})
	if err := c.call(t.Context(), "GET", "/executions/none", nil, &map[string]any{}); err == nil {
		t.Error("GET /executions/none: got no error, want 404")
	}

	after := readMetrics(t, c.address+"/metrics", c.key)
	changes := func(series string, want float64) {
		t.Helper()
		if got := after.series[series] - before.series[series]; got != want {
			t.Errorf("%s: got a change of %v, want %v", series, got, want)
		}
	}
	grows := func(series string) {
		t.Helper()
		if after.series[series] <= before.series[series] {
			t.Errorf("%s: got %v, then %v; want it to grow", series, before.series[series], after.series[series])
		}
	}
	changes(`glasshouse_executions_total{kind="execute",status="completed"}`, 1)
	changes(`glasshouse_executions_total{kind="quick-execute",status="completed"}`, 2)
	changes(`glasshouse_executions_total{kind="quick-execute",status="failed"}`, 2)
	changes(`glasshouse_executions_total{kind="quick-execute",status="timeout"}`, 1)
	changes(`glasshouse_executions_failed_total`, 2)
	changes(`glasshouse_executions_timeout_total`, 1)
	changes(`glasshouse_kills_total{reason="timeout"}`, 1)
	changes(`glasshouse_execution_duration_seconds_count`, 6)
	grows(`glasshouse_execution_duration_seconds_sum`)
	changes(`glasshouse_execution_queue_seconds_count`, 6)
	changes(`glasshouse_queries_total{database="knowledge",reason="",status="ok"}`, 1)
	changes(`glasshouse_queries_total{database="knowledge",reason="read-only",status="refused"}`, 1)
	changes(`glasshouse_queries_total{database="knowledge",reason="",status="captured"}`, 1)
	changes(`glasshouse_query_duration_seconds_count{database="knowledge"}`, 2)
	changes(`glasshouse_pending_writes`, 1)
	changes(`glasshouse_egress_connections_total{outcome="refused"}`, 1)
	changes(`glasshouse_sandboxes{state="idle"}`, 1)
	changes(`glasshouse_active_sandboxes`, 1)
	const requests = "glasshouse_http_request_duration_seconds_count"
	changes(requests+`{code="200",method="POST",route="/sandbox/agent/quick-execute"}`, 5)
	changes(requests+`{code="404",method="GET",route="/executions/:id"}`, 1)
	grows(`glasshouse_check_seconds_count`)
	grows(`glasshouse_fork_seconds_count`)
	grows(`glasshouse_pool_misses_total`) // a sandbox with a network takes no waiting guest
	grows(`glasshouse_recording_bytes_total`)
	grows(`glasshouse_http_requests_total`)
	grows(`glasshouse_uptime_seconds`)
	eventually(t, func() error {
		if ready := readMetrics(t, url, "").series[`glasshouse_pool_ready{zygote="bare"}`]; ready < 1 {
			return fmt.Errorf(`got glasshouse_pool_ready{zygote="bare"} = %v, want a waiting guest`, ready)
		}
		return nil
	})

	writes, _ := c.must(t, "GET", "/pending-writes", nil)["pending_writes"].([]any)
	if len(writes) != 1 {
		t.Fatalf("got %d pending writes, want 1", len(writes))
	}
	write := fmt.Sprint(writes[0].(map[string]any)["id"])
	c.must(t, "POST", "/pending-writes/"+write+"/reject", map[string]any{})
	after = readMetrics(t, url, "")
	changes("glasshouse_pending_writes", 0)
}

// TestSeriesHaveABound sends what a client can invent. It must not make series without a bound.
func TestSeriesHaveABound(t *testing.T) {
	t.Parallel()
	_, c := start(t, binary(t), dataDir(t))
	invent := func(round string) int {
		for _, path := range []string{"/nowhere/" + round, "/executions/" + round, "/sandbox/" + round + "/execute",
			"/artifacts/" + round, "/api/v1/executions/" + round, "/ui/" + round, "/executions?text=" + round} {
			for _, method := range []string{"GET", "POST", "INVENTED" + round} {
				req, err := http.NewRequestWithContext(t.Context(), method, c.address+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+c.key)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
		}
		user := c.newUser(t, "user-"+round)
		user.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
			"code": "import contextlib\nfor sql in ['SELECT " + round + "', 'SELECT unknown" + round +
				"', '" + round + " " + round + "']:\n    with contextlib.suppress(Exception): await db_query(sql)\n" +
				"with contextlib.suppress(Exception): await db_query('SELECT 1', database='" + round + "')"})
		s := readMetrics(t, c.address+"/metrics", c.key)
		count := 0
		for series := range s.series {
			if strings.Contains(series, round) {
				t.Errorf("got the series %s, want none with text from outside", series)
			}
			if !strings.Contains(series, `code="503"`) { // a busy machine may refuse a request of any round
				count++
			}
		}
		return count
	}
	invent("zqa")
	readMetrics(t, c.address+"/metrics", c.key) // counts the scrape itself
	known := invent("zqb")
	for _, round := range []string{"zqc", "zqd", "zqe"} {
		if got := invent(round); got != known {
			t.Errorf("round %s: got %d series, want %d as before", round, got, known)
		}
	}
	// Each route has a histogram of 7 series for each method and code. There are about a hundred routes, and most
	// have two codes.
	const maxSeries = 2000
	if known > maxSeries {
		t.Errorf("got %d series, want at most %d", known, maxSeries)
	}
}

// TestScrapeAsksNoDatabase stops PostgreSQL. The metrics show what waits for it.
func TestScrapeAsksNoDatabase(t *testing.T) {
	t.Parallel()
	url, setting := reserveMetrics(t)
	cmd, c := start(t, binary(t), dataDir(t), setting)
	id := c.newSandbox(t, nil)
	c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "1"})
	eventually(t, func() error { // history connects for its first record: a later process would not be stopped
		if got := readMetrics(t, url, "").series["glasshouse_history_wal_bytes"]; got != 0 {
			return fmt.Errorf("got glasshouse_history_wal_bytes = %v, want 0", got)
		}
		return nil
	})
	var servers []int
	for _, p := range descendants(cmd.Process.Pid) {
		name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "comm"))
		if strings.HasPrefix(string(name), "postgres") {
			servers = append(servers, p.pid)
		}
	}
	if len(servers) == 0 {
		t.Fatal("found no process of PostgreSQL")
	}
	signal := func(s syscall.Signal) (err error) {
		for _, pid := range servers {
			err = errors.Join(err, syscall.Kill(pid, s))
		}
		return err
	}
	if err := signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = signal(syscall.SIGCONT) }()
	c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "2"})
	var slowest time.Duration
	eventually(t, func() error {
		began := time.Now()
		s := readMetrics(t, url, "")
		slowest = max(slowest, time.Since(began))
		if s.series["glasshouse_history_wal_bytes"] <= 0 || s.series["glasshouse_history_lag_seconds"] <= 0 {
			return fmt.Errorf("got %v bytes and a lag of %v s, want what waits for PostgreSQL",
				s.series["glasshouse_history_wal_bytes"], s.series["glasshouse_history_lag_seconds"])
		}
		return nil
	})
	if slowest > 5*time.Second { // a scrape that asked PostgreSQL would wait 10 s
		t.Errorf("the slowest scrape took %s, want no wait for PostgreSQL", slowest)
	}
	if err := signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := readMetrics(t, url, "").series["glasshouse_history_wal_bytes"]; got != 0 {
			return fmt.Errorf("got glasshouse_history_wal_bytes = %v, want 0", got)
		}
		return nil
	})
}
