package history

import (
	"strings"
	"testing"
)

// TestRecordSize covers the largest records that a service may write, and records that take much memory.
func TestRecordSize(t *testing.T) {
	t.Parallel()
	const statement = `{"sql":"SELECT 1","parameters":{"a":[1,2]},"database":"knowledge","rows":1,"status":"ok",` +
		`"duration_ms":0.25,"computed_with_mask":["users.ssn"]}`
	list := func(item string, count int) string { return "[" + strings.Repeat(item+",", count-1) + item + "]" }
	for name, c := range map[string]struct{ record, want string }{
		"control characters":   {`{"stdout":"` + strings.Repeat(`\u0001`, 16<<20) + `"}`, ""},
		"statements":           {`{"queries":` + list(statement, 300_000) + `}`, ""},
		"numbers of a result":  {`{"result":` + list("1", 10<<20) + `,"error":null}`, ""},
		"numbers of an output": {`{"outputs":[{"data":{"application/json":` + list("1", 8<<20) + `}}]}`, ""},
		"notes": {`{"debug_info":{"logs":` + list(`{"message":"x","data":[1,2]}`, 300_000) +
			`,"variables":{"x":[{"message":"y"}]}}}`, ""},
		"empty":            {`{}`, ""},
		"longer text":      {`{"stdout":"` + strings.Repeat(`\u0001`, 17<<20) + `"}`, `"stdout" has 1069`},
		"empty statements": {`{"queries":` + list("{}", 2<<20) + `}`, "its lists would take more than 512 MiB"},
		"empty lists":      {`{"edits":[{"changes":` + list("[]", 2<<20) + `}]}`, "its lists would take more"},
		"empty texts":      {`{"queries":[{"computed_with_mask":` + list(`""`, 40<<20) + `}]}`, "its lists would"},
		"of another field": {`{"x":` + list("{}", 2<<20) + `}`, "its lists would take more than 512 MiB"},
		"twice":            {`{"notes":` + list(`"x"`, 1<<20) + `,"notes":` + list("{}", 2<<20) + `}`, "its lists would"},
		"long chain": {`{"exception":` + strings.Repeat(`{"chain":[`, 400_000) + strings.Repeat("]}", 400_000) + `}`,
			"exceeded max depth"},
		"many names": {`{"artifact_map":{` + strings.Repeat(`"x":"",`, 6<<20) + `"x":""}}`, `"artifact_map" has 44`},
	} {
		err := checkSize([]byte(c.record))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
