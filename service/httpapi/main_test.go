package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
	"glasshouse/service/httpapi"
)

// The whole service, as users have it: real walls, a real PostgreSQL with the demo
// data, a real HTTP server. One for all tests; each test has a user of its own.
var (
	serverURL      string
	testService    *service.Service
	smallServerURL string           // the same service, but that a start waits for a tenth of a second only, and has little room for uploads
	smallService   *service.Service // that of hasty: over the same history, as after a restart
	knowledgeURL   string           // the database that is read, by its reader's login
	dataDir        string
	admin          = client{secret: "gh_the-admin-of-the-tests"}
)

func TestMain(m *testing.M) {
	isolate.RunLauncher()
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
		return 1, fmt.Errorf("GLASSHOUSE_PYTHON must name the sandboxes' Python; scripts/test sets it")
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
	log.SetLevel(logrus.WarnLevel) // what the service logs belongs to the output of a failing test
	db, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log})
	if err != nil {
		return 1, err
	}
	defer db.Close()
	if err := db.LoadDemo(ctx); err != nil {
		return 1, err
	}
	store, err := history.Open(ctx, history.Config{URL: db.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: filepath.Join(dir, "history")}, log)
	if err != nil {
		return 1, err
	}
	defer store.Close()
	knowledgeURL = db.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	reader, err := dbaccess.Open(ctx, dbaccess.Config{URL: knowledgeURL, WriterURL: db.URL(embedded.RoleWriter, embedded.DatabaseKnowledge), MaskColumns: []string{"public.customers.email"}})
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
	wall, err := isolate.Open(isolate.Config{Python: python, WarmSets: isolate.WarmSets(3), DefaultPolicy: policy.Default(), DataSets: sets, CABundle: bundle, Log: log.Warnf})
	if err != nil {
		return 1, err
	}
	defer wall.Close()
	ceiling := policy.Default()
	ceiling.MaxExecutionTime, ceiling.MaxMemoryMB, ceiling.CPUPercent, ceiling.MaxRows = 60, 512, 400, 1_000_000
	ceiling.MaxOpenFiles, ceiling.MaxThreads, ceiling.MaxOutputSize, ceiling.MaxCodeSize = 1024, 64, 16<<20, 1<<20
	ceiling.Lifetime, ceiling.IdleTimeout = 7*24*3600, 7*24*3600
	ceiling.UploadMaxBytes, ceiling.FileMaxBytes = 64<<20, 64<<20
	ceiling.EnableNetworkAccess, ceiling.AllowedHosts = true, []string{"*.example", internet.plain(), internet.secure(), "0.0.0.0/0"}
	kept, err := blob.Open(dir)
	if err != nil {
		return 1, err
	}
	defer kept.Close()
	dataDir = dir
	rooms := supervisor.New(wall, 20*time.Second)
	rooms.Network.Resolve, rooms.Network.Dial = internet.resolve, internet.dial
	rooms.Uploads.User = 16 << 20
	parts := service.Config{
		Supervisor: rooms, Environments: wall, Reader: reader, Writer: reader, History: store, Blobs: kept, Default: policy.Default(), Ceiling: ceiling,
		PerUser: 4, InAll: 100, Parallel: 8, Mask: []string{"secret"}, Log: log,
		SigningKey: []byte("of the tests"), ArtifactAge: time.Hour, ArtifactBytes: 2 << 20,
	}
	s := service.New(parts)
	testService = s
	hash := service.HashKey(admin.secret)
	if err := store.CreateKey(ctx, sandbox.Key{ID: "admin", Name: "tests", User: "root", Role: sandbox.RoleAdmin, CreatedAt: time.Now()}, hash[:]); err != nil {
		return 1, err
	}
	server := httptest.NewServer(httpapi.New(httpapi.Config{Service: s, Log: log, Version: "test", Access: true}))
	serverURL = server.URL
	narrow := supervisor.New(wall, 100*time.Millisecond)
	narrow.Uploads.All = 4 << 20
	parts.Supervisor = narrow
	hurried := service.New(parts)
	smallService = hurried
	second := httptest.NewServer(httpapi.New(httpapi.Config{Service: hurried, Log: log, Version: "test", Access: true}))
	smallServerURL = second.URL
	code := 1
	if err = waitUntilReady(serverURL); err == nil {
		code = m.Run()
	}
	stop, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s.Drain(stop)
	hurried.Drain(stop)
	server.Close()
	second.Close()
	return code, err
}

// dataSets are an operator's: a folder and a file.
func dataSets(dir string) (map[string]string, error) {
	sets := map[string]string{"prices": filepath.Join(dir, "sets", "prices"), "units.csv": filepath.Join(dir, "sets", "units.csv")}
	return sets, errors.Join(os.MkdirAll(filepath.Join(sets["prices"], "2024"), 0o755),
		os.WriteFile(filepath.Join(sets["prices"], "2024", "may.csv"), []byte("day,price\n1,2.5\n"), 0o644), os.WriteFile(sets["units.csv"], []byte("unit\nkg\n"), 0o644))
}

// waitUntilReady waits as an operator's load balancer would, until the service says that it is.
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
			return fmt.Errorf("not ready within a minute: %s", text)
		}
	}
}

// client calls with one key; root is what stands before each path.
type client struct {
	secret, prefix string
	server         string // another server than base
}

// answer is what a call came back with.
type answer struct {
	status int
	header http.Header
	text   []byte
	body   map[string]any // nil where it is no JSON object
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
	if a.text, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(a.text, &a.body) // a text answer has no fields to ask for
	if !isDescribed(method, resp.Request.URL.Path, strconv.Itoa(a.status)) {
		t.Errorf("%s %s answered %d, which OpenAPI does not describe: %.300s", method, path, a.status, a.text)
	}
	return a
}

// isDescribed reports whether OpenAPI describes a status of a route.
var isDescribed = httpapi.DescribedStatuses()

// get is a value by a path such as "data.config.max_rows"; nil where there is none.
func (a answer) get(path string) any {
	var v any = a.body
	for _, part := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

func (c client) ok(t testing.TB, method, path string, body any) answer {
	t.Helper()
	a := c.do(t, method, path, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: HTTP %d %s", method, path, a.status, a.text)
	}
	return a
}

var users atomic.Int64

// newUser makes a key of a user of the test's own.
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
		t.Fatal("create answered no sandbox_id")
	}
	return id
}

func (c client) run(t testing.TB, id, code string) answer {
	t.Helper()
	return c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code})
}

// wantProblem checks what every error has, and that its text has all of words.
func wantProblem(t testing.TB, a answer, status int, kind string, words ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("HTTP %d, not %d: %s", a.status, status, a.text)
		return
	}
	if ct := a.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/problem+json") {
		t.Errorf("the content type is %q: %s", ct, a.text)
	}
	if got, _ := a.get("type").(string); !strings.HasSuffix(got, kind) {
		t.Errorf("the type is %q, not %q", got, kind)
	}
	if a.get("status") != float64(status) || a.get("title") == "" || a.get("detail") == "" || a.get("request_id") == nil || a.get("request_id") != a.header.Get("X-Request-ID") {
		t.Errorf("a part is missing (request id in the header: %q): %s", a.header.Get("X-Request-ID"), a.text)
	}
	for _, word := range words {
		if !strings.Contains(string(a.text), word) {
			t.Errorf("%q is not in %s", word, a.text)
		}
	}
}

// compactJSON is a value as JSON.
func compactJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
