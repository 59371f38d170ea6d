package policy

import (
	"strings"
	"testing"
)

func TestUnknownField(t *testing.T) {
	known := []string{"code", "context", "timeout", "parameters", "query", "max_memory_mb", "max_rows"}
	for name, meant := range map[string]string{
		"params": "parameters", "sql": "query", "Code": "code", "max_memory": "max_memory_mb", "max_row": "max_rows",
		"timeout_seconds": "timeout", "contxet": "context", "memory_mb": "max_memory_mb",
	} {
		if got := UnknownField(name, known); !strings.HasSuffix(got, "did you mean "+meant+"?") {
			t.Errorf("%s: got %q, want %s", name, got, meant)
		}
	}
	for _, name := range []string{"", "speed", "x", "\x00", strings.Repeat("m", 1<<10)} {
		if got := UnknownField(name, known); !strings.Contains(got, "openapi.json") {
			t.Errorf("%q: got %q, want no guess", name, got)
		}
	}
	if got := UnknownField("user_id", known); !strings.Contains(got, "key") {
		t.Errorf("user_id: got %q, want that the key decides the user", got)
	}
}
