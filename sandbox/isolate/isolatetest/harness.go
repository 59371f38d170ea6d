// Package isolatetest tests package isolate from inside a sandbox, with hostile programs
// (escapes/) and programs that inspect their environment. They run under the profile without
// import rules, so that only the isolation layers stop them.
//
// go test -short tests the strongest level that the machine has, as the current user.
// Without -short TestEveryLevel runs the tests again on each other level, as one user
// each, and with -tags nightly as every user. Tests that measure time, CPU or memory are
// in the package timing, and need an idle machine.
package isolatetest

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/stages"
	"glasshouse/sandbox/supervisor"
)

// tokenVariable is the name of an environment variable of the service that contains a
// secret. Children do not get it.
const tokenVariable = "GLASSHOUSE_ESCAPE_TOKEN"

// parallelTests is how many tests run at a time, unless -parallel is larger. Most of a
// test's time is waiting for the kernel or for a child.
const parallelTests = 4

// Main runs a package's tests, on the level and as the user that RunOnOtherLevels chose.
func Main(m *testing.M) {
	isolate.RunLauncher()
	becomeContained()
	exitIfLevelIsMissing()
	flag.Parse()
	parallel := flag.Lookup("test.parallel").Value
	if n, _ := strconv.Atoi(parallel.String()); n < parallelTests {
		_ = parallel.Set(strconv.Itoa(parallelTests))
	}
	_ = os.Setenv(tokenVariable, "gh-token-"+Nonce())
	code := m.Run()
	if i := shared.isolator; i != nil {
		i.Close()
	}
	os.Exit(code)
}

// Python returns the interpreter that the tests use.
func Python(t testing.TB) string {
	t.Helper()
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_PYTHON must name the interpreter of the sandboxes; scripts/test sets it")
	}
	return python
}

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// searchableDir returns a folder for the test, through which the accounts of sandboxes can pass.
func searchableDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	Must(t, os.Chmod(dir, 0o711))
	return dir
}

// Open opens an isolator for the test. It sets empty fields of config to defaults: a bare
// warm set with one waiting child, and the level of this run.
func Open(t testing.TB, config isolate.Config) *isolate.Isolator {
	t.Helper()
	i, err := isolate.Open(withDefaults(t, config))
	Must(t, err)
	t.Cleanup(i.Close)
	return i
}

func withDefaults(t testing.TB, config isolate.Config) isolate.Config {
	config.Python, config.DefaultPolicy = Python(t), policy.Default()
	if config.WarmSets == nil {
		config.WarmSets = []isolate.WarmSet{{Name: "bare", Modules: []string{}, Pool: 1}}
	}
	if config.Level == "" {
		config.Level = Level()
	}
	if config.Log == nil {
		config.Log = func(string, ...any) {}
	}
	return config
}

// OpenWithout opens an isolator that leaves layers out.
func OpenWithout(t testing.TB, layers ...layer.Layer) *isolate.Isolator {
	t.Helper()
	return Open(t, isolate.Config{Without: layers})
}

var shared struct {
	once     sync.Once
	isolator *isolate.Isolator
	err      error
}

// Shared returns the isolator for all tests that do not need their own. It has numpy, and
// the data set "programs": the folder of the interpreter.
func Shared(t testing.TB) *isolate.Isolator {
	t.Helper()
	python := Python(t) // outside once.Do, because it may fail this test
	shared.once.Do(func() {
		shared.isolator, shared.err = isolate.Open(withDefaults(t, isolate.Config{
			WarmSets: []isolate.WarmSet{{Name: "numpy", Modules: []string{"numpy"}, Pool: 4}},
			DataSets: map[string]string{"programs": filepath.Dir(python)},
		}))
	})
	Must(t, shared.err)
	return shared.isolator
}

// Policy returns the policy of the tests' sandboxes: without import rules, and with limits
// that only the tests of limits reach.
func Policy() policy.Policy {
	p := policy.Default()
	p.Profile, p.CPUPercent, p.MaxExecutionTime = policy.ProfileUnrestricted, 200, 20
	return p
}

// NewSession opens a session for the test. change may change its policy.
func NewSession(t testing.TB, i *isolate.Isolator, change func(*policy.Policy)) *supervisor.Session {
	t.Helper()
	p := Policy()
	if change != nil {
		change(&p)
	}
	s, err := OpenSession(i, p, 20*time.Second)
	Must(t, err)
	t.Cleanup(s.Close)
	return s
}

// OpenSession opens a session; wait bounds the time until it is open. The caller closes it.
func OpenSession(i *isolate.Isolator, p policy.Policy, wait time.Duration) (*supervisor.Session, error) {
	return supervisor.New(i, wait).Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, "")
}

// Run runs code in a session.
func Run(t testing.TB, s *supervisor.Session, code string) sandbox.Outcome {
	t.Helper()
	outcome, err := RunWith(context.Background(), s, code, nil, Handler{})
	Must(t, err)
	return outcome
}

// RunWith runs code with a context, and with a handler for its requests.
func RunWith(
	ctx context.Context, s *supervisor.Session, code string, given json.RawMessage, h supervisor.RequestHandler,
) (sandbox.Outcome, error) {
	if given == nil {
		given = json.RawMessage("{}")
	}
	request := sandbox.Request{Code: code, Context: sandbox.Object(given)}
	return s.Run(ctx, "e", request, supervisor.Callbacks{Requests: h})
}

// Why returns an outcome's error, or "".
func Why(o sandbox.Outcome) string {
	if o.Error == nil {
		return ""
	}
	return *o.Error
}

// Handler is a request handler without a database.
type Handler struct{}

// Query refuses every statement.
func (Handler) Query(context.Context, string, string, map[string]any, sandbox.RowSink) (sandbox.QuerySummary, error) {
	return sandbox.QuerySummary{}, &sandbox.Refusal{Reason: "there is no database"}
}

// Stages returns no stages.
func (Handler) Stages(context.Context, string, string, map[string]any) (*stages.Stages, error) {
	return &stages.Stages{}, nil
}

// Schema returns a table without columns.
func (Handler) Schema(context.Context, string, string) (sandbox.Table, error) {
	return sandbox.Table{}, nil
}

// Tables returns no table.
func (Handler) Tables(context.Context, string) ([]string, error) { return nil, nil }

// History returns no execution.
func (Handler) History(context.Context) ([]sandbox.Execution, error) { return nil, nil }

// Nonce returns a random name.
func Nonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// Eventually polls for a state that has no event.
var Eventually = polltest.Eventually

// escapesFS is part of the binary, because an ordinary user may not be able to read the
// source folder.
//
//go:embed escapes
//go:embed escapes/_prelude.py
var escapesFS embed.FS

// callPrelude defines call(number, ...) in Python, which makes a system call.
func callPrelude() string {
	text, err := escapesFS.ReadFile("escapes/_prelude.py")
	if err != nil {
		panic(fmt.Sprintf("read the embedded prelude of the escapes: %v", err))
	}
	return string(text)
}
