package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/chat"
	"glasshouse/service/database"
	"glasshouse/service/httpapi"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

// The tests share one complete service: real isolation, a real PostgreSQL with the demo data and a real HTTP server.
// Each test has users of its own, so tests run in parallel. A test that measures memory, or counts resources of the
// whole process, does not call t.Parallel.
var (
	serverURL    string
	testServices *services
	// A second service over the same history, as after a restart. It waits only 100 ms for a sandbox to start, and
	// takes only 4 MiB of uploads in all.
	smallServerURL string
	smallServices  *services
	knowledgeURL   string // of the database that agents read, with the reader's login
	testPostgres   *embedded.Server
	testConfig     servicesConfig // of testServices; a test can start others with it
	testChats      chat.History
	dataDir        string
	admin          = client{secret: "gh_the-admin-of-the-tests"}
)

// parallelTests is more than the number of CPUs, because most tests wait for a guest most of the time.
const parallelTests = "6"

func TestMain(m *testing.M) {
	isolate.RunLauncher()
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(parallelTests) // a valid number
	}
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (int, error) {
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		return 1, errors.New("GLASSHOUSE_PYTHON is not set; set it to the sandboxes' Python, as scripts/test does")
	}
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 1, err
	}
	ctx := context.Background()
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel) // a failing test shows what the service logs
	// No test of this package stops the machine.
	settings := []string{"fsync=off", "full_page_writes=off"}
	db, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log, Settings: settings})
	if err != nil {
		return 1, err
	}
	defer db.Close()
	testPostgres = db
	if err := db.LoadDemo(ctx); err != nil {
		return 1, err
	}
	store, err := history.Open(ctx, history.Config{
		URL: db.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: filepath.Join(dir, "history"),
	}, log)
	if err != nil {
		return 1, err
	}
	defer store.Close()
	knowledgeURL = db.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	results := limit.NewResults(maxTestResults)
	reader, err := dbaccess.Open(ctx, dbaccess.Config{
		Results: results, URL: knowledgeURL, WriterURL: db.URL(embedded.RoleWriter, embedded.DatabaseKnowledge),
		MaskColumns: []string{"public.customers.email"}, ServerCheck: true,
	})
	if err != nil {
		return 1, err
	}
	defer reader.Close()
	internet = newFakeInternet()
	defer internet.close()
	bundle, err := internet.certificate(dir)
	if err != nil {
		return 1, err
	}
	sets, err := dataSets(dir)
	if err != nil {
		return 1, err
	}
	isolation, err := isolate.Open(isolate.Config{
		HashSeed: 1,
		Python:   python, WarmSets: isolate.WarmSets(3), DefaultPolicy: policy.Default(), DataSets: sets,
		CABundle: bundle, Log: log.Warnf,
	})
	if err != nil {
		return 1, err
	}
	defer isolation.Close()
	defaults, ceiling := policy.Default(), policy.Default()
	defaults.MaxExecutionTime = 300 // a busy machine takes long; tests of the limit set their own
	// A parallel subtest begins when all other tests have ended, so the sandbox of its test may wait for a long time.
	defaults.Lifetime, defaults.IdleTimeout = 24*3600, 24*3600
	ceiling.MaxExecutionTime, ceiling.MaxMemoryMB, ceiling.CPUPercent, ceiling.MaxRows = 300, 512, 400, 1_000_000
	ceiling.MaxOpenFiles, ceiling.MaxThreads, ceiling.MaxOutputSize, ceiling.MaxCodeSize = 1024, 64, 16<<20, 1<<20
	ceiling.Lifetime, ceiling.IdleTimeout = 7*24*3600, 7*24*3600
	ceiling.UploadMaxBytes, ceiling.FileMaxBytes = 64<<20, 64<<20
	ceiling.EnableNetworkAccess = true
	ceiling.AllowedHosts = []string{"*.example", internet.plain(), internet.secure(), "0.0.0.0/0"}
	blobs, err := blob.Open(dir)
	if err != nil {
		return 1, err
	}
	defer blobs.Close()
	dataDir = dir
	large := supervisor.New(isolation, 2*time.Minute) // a busy machine takes long to start Python
	large.Network.Resolve, large.Network.Dial = internet.resolve, internet.dial
	large.Uploads.User = 16 << 20
	// With the usual floor, tests with large frames would mostly wait: the race detector makes the service's work ten
	// times as expensive, and a user's guests earn little on a busy machine.
	large.Work.Floor = 1
	config := servicesConfig{log: log}
	config.live = live.Config{
		Supervisor: large, Environments: isolation, History: store, Default: defaults, Ceiling: ceiling,
		PerUser: 4, InAll: 400,
	}
	config.databases = []database.Database{{Name: "knowledge", Reader: reader, Writer: reader}}
	inputKeys, err := inputlog.NewKeys([]byte("of the tests"))
	if err != nil {
		return 1, err
	}
	config.runs = run.Config{
		History: store, Parallel: 8, Mask: []string{"secret"}, InputLog: inputlog.Rows, InputKeys: inputKeys,
	}
	config.writes = store
	// A busy machine with the race detector is slow; a test of the limit sets its own.
	config.debug.MaxSearchTime = 5 * time.Minute
	config.access = access.Config{History: store, Default: defaults, Environments: isolation, AdminKeyID: "admin"}
	testChats = store
	config.records = records.Config{
		History: store, Blobs: blobs, SigningKey: []byte("of the tests"),
		ArtifactAge: time.Hour, ArtifactBytes: 2 << 20,
	}
	testConfig = config
	testServices = newServices(config)
	defer testServices.close()
	hash := access.HashKey(admin.secret)
	adminKey := sandbox.Key{ID: "admin", Name: "tests", User: "root", Role: sandbox.RoleAdmin, CreatedAt: time.Now()}
	if err := store.CreateKey(ctx, adminKey, hash[:], 0); err != nil {
		return 1, err
	}
	serve := func(s *services) *httptest.Server {
		api := s.api(log)
		api.LogRequests, api.Results = true, results
		api.Chat = chat.New(chat.Config{ // without a model
			Live: s.live, Records: s.records, History: store, Access: s.access, Tools: s.mcp(log), Log: log,
		})
		return httptest.NewServer(httpapi.New(api))
	}
	server := serve(testServices)
	serverURL = server.URL
	small := supervisor.New(isolation, 100*time.Millisecond)
	small.Uploads.All = 4 << 20
	config.live.Supervisor = small
	smallServices = newServices(config)
	defer smallServices.close()
	smallServer := serve(smallServices)
	smallServerURL = smallServer.URL
	code := 1
	if err = waitUntilReady(serverURL); err == nil {
		code = m.Run()
	}
	stop, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	testServices.drain(stop)
	smallServices.drain(stop)
	server.Close()
	smallServer.Close()
	return code, err
}

// newAccess starts an access like that of testServices, which ends with the test.
func newAccess(t *testing.T, change func(*access.Config)) *access.Service {
	t.Helper()
	config := testServices.access.Config
	change(&config)
	s := access.New(config)
	t.Cleanup(s.Close)
	return s
}

// dataSets makes the data sets of an operator: a folder and a file.
func dataSets(dir string) (map[string]string, error) {
	sets := map[string]string{"prices": filepath.Join(dir, "sets", "prices"), "units.csv": filepath.Join(dir, "sets",
		"units.csv")}
	return sets, errors.Join(os.MkdirAll(filepath.Join(sets["prices"], "2024"), 0o755),
		os.WriteFile(filepath.Join(sets["prices"], "2024", "may.csv"), []byte("day,price\n1,2.5\n"),
			0o644), os.WriteFile(sets["units.csv"], []byte("unit\nkg\n"), 0o644))
}

// waitUntilReady polls /readyz for at most a minute, as a load balancer does.
func waitUntilReady(url string) error {
	last := time.Now().Add(time.Minute)
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		answer, err := http.Get(url + "/readyz")
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		if time.Now().After(last) {
			return fmt.Errorf("/readyz did not answer 200 within a minute: %s", text)
		}
	}
}

// client sends requests with one key.
type client struct {
	secret string
	prefix string // of every path
	server string // serverURL if empty
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	text   []byte
	body   map[string]any // nil if the response is not a JSON object
}

func (c client) do(t testing.TB, method, path string, body any, headers ...string) answer {
	t.Helper()
	var in io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, cmp.Or(c.server, serverURL)+c.prefix+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.secret != "" {
		req.Header.Set("Authorization", "Bearer "+c.secret)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if got := resp.Header.Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s %s: got X-Content-Type-Options %q, want nosniff", method, path, got)
	}
	if a.text, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(a.text, &a.body) // other responses have no fields
	contentType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	err = checkAnswer(method, resp.Request.URL.Path, strconv.Itoa(a.status), contentType, a.text)
	if err != nil {
		t.Errorf("%s %s answered %d, which OpenAPI does not describe: %v: %.300s", method, path, a.status, err, a.text)
	}
	return a
}

// checkAnswer returns an error unless OpenAPI describes an answer.
var checkAnswer = httpapi.DescribedAnswers()

// get returns a field by its path, such as data.config.max_rows, or nil.
func (a answer) get(path string) any {
	var v any = a.body
	for _, part := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// ok requires the status 200. It sends a request again that the service refused because PostgreSQL was late: a busy
// machine delays its answers.
func (c client) ok(t testing.TB, method, path string, body any) (a answer) {
	t.Helper()
	eventually(t, "PostgreSQL to answer the service", func() bool {
		a = c.do(t, method, path, body)
		detail, _ := a.get("detail").(string)
		return a.status != http.StatusServiceUnavailable || !strings.Contains(detail, "try again in a moment")
	})
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: got HTTP %d, want 200: %s", method, path, a.status, a.text)
	}
	return a
}

var users atomic.Int64

// newUser makes a key for a new user.
func newUser(t testing.TB, role sandbox.Role) client {
	t.Helper()
	name := fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), role, users.Add(1))
	a := admin.ok(t, "POST", "/keys", map[string]any{"name": name, "user_id": name, "role": role})
	secret, _ := a.get("key").(string)
	return client{secret: secret}
}

func (c client) create(t testing.TB, config map[string]any) string {
	t.Helper()
	if config == nil {
		config = map[string]any{}
	}
	id, _ := c.ok(t, "POST", "/sandbox/create", config).get("sandbox_id").(string)
	if id == "" {
		t.Fatal("the response has no sandbox_id")
	}
	t.Cleanup(func() { c.afterTest(t, "DELETE", "/sandbox/"+id) }) // it may have ended already
	return id
}

// finished waits until an execution has ended and returns its record.
func (c client) finished(t testing.TB, id string) (record answer) {
	t.Helper()
	eventually(t, "the execution to end", func() bool {
		record = c.ok(t, "GET", "/executions/"+id+"?wait=30", nil)
		return record.get("status") != "running"
	})
	return record
}

// afterTest sends a request when the test's context has ended.
func (c client) afterTest(t testing.TB, method, path string) {
	req, err := http.NewRequestWithContext(context.Background(), method, cmp.Or(c.server, serverURL)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func (c client) run(t testing.TB, id, code string) answer {
	t.Helper()
	return c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code})
}

// wantProblem checks that a is a complete problem of a status and a kind, and that its text has all words.
func wantProblem(t testing.TB, a answer, status int, kind string, words ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("got HTTP %d, want %d: %s", a.status, status, a.text)
		return
	}
	if ct := a.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/problem+json") {
		t.Errorf("got Content-Type %q, want application/problem+json: %s", ct, a.text)
	}
	if got, _ := a.get("type").(string); !strings.HasSuffix(got, kind) {
		t.Errorf("got the type %q, want %q", got, kind)
	}
	if a.get("status") != float64(status) || a.get("title") == "" || a.get("detail") == "" ||
		a.get("request_id") == nil || a.get("request_id") != a.header.Get("X-Request-ID") {
		t.Errorf("a field is missing or wrong (X-Request-ID is %q): %s", a.header.Get("X-Request-ID"), a.text)
	}
	for _, word := range words {
		if !strings.Contains(string(a.text), word) {
			t.Errorf("want %q in the problem, got %s", word, a.text)
		}
	}
}

// compactJSON encodes a value as JSON.
func compactJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
