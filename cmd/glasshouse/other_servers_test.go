package main

import (
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each variable of other servers sets a limit of a service that runs. The service's own variable and its flag override
// it.
func TestVariablesOfOtherServers(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	_, admin := start(t, withLog(t, log), dataDir(t), "SANDBOX_TIMEOUT_S=17.5", "SESSION_TTL_S=321",
		"SESSION_MAX_BYTES=3000000", "MAX_INPUT_CHARS=2345", "RATE_LIMIT_MAX=2", "RATE_LIMIT_WINDOW_MS=20000",
		"SANDBOX_AS_MB=299.5", "CPYTHON_NOFILE=64")
	data := admin.must(t, "POST", "/sandbox/create", map[string]any{})["data"].(map[string]any)
	config := data["config"].(map[string]any)
	for key, want := range map[string]float64{"max_memory_mb": 300, "max_execution_time": 18, "idle_timeout": 321,
		"upload_max_bytes": 3 << 20, "max_code_size": 2345, "lifetime": 3600} {
		if config[key] != want {
			t.Errorf("%s: got %v, want %v", key, config[key], want)
		}
	}
	made := admin.must(t, "POST", "/keys", map[string]any{"name": "n", "user_id": "anna"})
	for n := range 8 {
		status, text := me(t, admin.address, fmt.Sprint(made["key"]))
		if want := http.StatusOK; n < 6 && status != want {
			t.Errorf("request %d: got HTTP %d %s, want %d", n, status, text, want)
		}
		if n == 7 && (status != http.StatusTooManyRequests || !strings.Contains(text, "6 requests per minute")) {
			t.Errorf("request %d: got HTTP %d %s, want the limit of 6 per minute", n, status, text)
		}
	}
	for _, line := range []string{"SANDBOX_TIMEOUT_S set --default-execution-time to 18",
		"SESSION_TTL_S set --default-idle-timeout to 321", "SESSION_MAX_BYTES set --default-sandbox-uploads-mb to 3",
		"MAX_INPUT_CHARS set --default-code-size to 2345",
		"RATE_LIMIT_MAX and RATE_LIMIT_WINDOW_MS set --key-requests to 6",
		"SANDBOX_AS_MB set --default-memory-mb to 300", "CPYTHON_NOFILE is not used: ",
	} {
		if text := read(t, log); !strings.Contains(text, line) {
			t.Errorf("got the log %s, want %q", text, line)
		}
	}
}

func TestOwnSettingsOverrideThoseOfOtherServers(t *testing.T) {
	t.Setenv("SANDBOX_TIMEOUT_S", "17")
	t.Setenv("SESSION_TTL_S", "321")
	t.Setenv("GLASSHOUSE_DEFAULT_IDLE_TIMEOUT", "44")
	t.Setenv("RATE_LIMIT_MAX", "7")
	s, err := parseSettings("--default-execution-time=12")
	if err != nil {
		t.Fatal(err)
	}
	if s.defaults.MaxExecutionTime != 12 || s.defaults.IdleTimeout != 44 || s.limits.keys.Requests != 7 {
		t.Errorf("got %v s, %v s and %d requests, want 12, 44 and 7", s.defaults.MaxExecutionTime,
			s.defaults.IdleTimeout, s.limits.keys.Requests)
	}
	wantNotes(t, s, "RATE_LIMIT_MAX set --key-requests to 7", "SANDBOX_TIMEOUT_S is not used, because",
		"SESSION_TTL_S is not used, because --default-idle-timeout or GLASSHOUSE_DEFAULT_IDLE_TIMEOUT is set")
	for _, wrong := range []string{"x", "-1", "0", "NaN", "1e99", "Inf"} {
		t.Setenv("SANDBOX_TIMEOUT_S", wrong)
		if _, err := parseSettings(); err == nil || !strings.Contains(err.Error(), "SANDBOX_TIMEOUT_S") {
			t.Errorf("SANDBOX_TIMEOUT_S=%s: got %v, want an error that names it", wrong, err)
		}
	}
	t.Setenv("SANDBOX_TIMEOUT_S", "100000") // above the ceiling
	if _, err := parseSettings(); err == nil || !strings.Contains(err.Error(), "SANDBOX_TIMEOUT_S set") {
		t.Errorf("got %v, want an error that names the variable and the ceiling", err)
	}
}

// wantNotes requires the beginnings of the notes of settings, in any order.
func wantNotes(t *testing.T, s settings, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.ContainsFunc(s.notes, func(note string) bool { return strings.HasPrefix(note, w) }) {
			t.Errorf("got the notes %q, want one that begins with %q", s.notes, w)
		}
	}
	if len(s.notes) != len(want) {
		t.Errorf("got the notes %q, want %d", s.notes, len(want))
	}
}

// Each variable of such a server sets a flag or has a note that says why it does not.
func TestEachVariableOfOtherServersHasANote(t *testing.T) {
	for _, test := range []struct {
		environ map[string]string
		memory  int
		notes   []string
	}{
		{map[string]string{"SANDBOX_AS_MB": "0"}, 256,
			[]string{"SANDBOX_AS_MB=0 is not used: a sandbox always has a limit"}},
		{map[string]string{"SANDBOX_AS_MB": "512", "CPYTHON_AS_MB": "0"}, 512,
			[]string{"SANDBOX_AS_MB set --default-memory-mb to 512", "CPYTHON_AS_MB=0 is not used: "}},
		{map[string]string{"SANDBOX_AS_MB": "512", "CPYTHON_AS_MB": "400"}, 400, []string{
			"CPYTHON_AS_MB set --default-memory-mb to 400", "SANDBOX_AS_MB is not used, because CPYTHON_AS_MB set"}},
		{map[string]string{"CPYTHON_AS_MB": "4096"}, 1024,
			[]string{"CPYTHON_AS_MB set --default-memory-mb to 1024, the value of --max-memory-mb"}},
		{map[string]string{"CPYTHON_AS_MB": "4096", "GLASSHOUSE_MAX_MEMORY_MB": "4096"}, 4096,
			[]string{"CPYTHON_AS_MB set --default-memory-mb to 4096;"}},
		{map[string]string{"SANDBOX_TIMEOUT_S": "9", "CPYTHON_TIMEOUT_S": "8", "RATE_LIMIT_WINDOW_MS": "1000",
			"CPYTHON_BIN": "/usr/bin/python3", "CPYTHON_FSIZE_MB": "1", "SESSION_BASE_DIR": "/tmp/s",
			"PYODIDE_INDEX_URL": "/opt/pyodide"}, 256, []string{
			"CPYTHON_TIMEOUT_S set --default-execution-time to 8",
			"SANDBOX_TIMEOUT_S is not used, because CPYTHON_TIMEOUT_S",
			"RATE_LIMIT_WINDOW_MS is not used without RATE_LIMIT_MAX", "CPYTHON_BIN set --python to /usr/bin/python3;",
			"CPYTHON_FSIZE_MB is not used: ", "SESSION_BASE_DIR is not used: ", "PYODIDE_INDEX_URL is not used: "}},
	} {
		t.Run(strings.Join(slices.Sorted(maps.Keys(test.environ)), " "), func(t *testing.T) {
			t.Setenv("GLASSHOUSE_PYTHON", "")
			for name, value := range test.environ {
				t.Setenv(name, value)
			}
			s, err := parseSettings()
			if err != nil {
				t.Fatal(err)
			}
			if s.defaults.MaxMemoryMB != test.memory {
				t.Errorf("got %d MiB of memory, want %d", s.defaults.MaxMemoryMB, test.memory)
			}
			wantNotes(t, s, test.notes...)
		})
	}
}
