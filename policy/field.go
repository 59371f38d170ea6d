package policy

import (
	"fmt"
	"slices"
	"strings"
)

// meantFields maps names that clients of similar services use to the names here. Of several, the first that the object
// has is meant.
var meantFields = map[string][]string{
	"params": {"parameters"}, "args": {"parameters", "context"}, "arguments": {"parameters"},
	"sql": {"query"}, "statement": {"query"}, "source": {"code"}, "script": {"code"}, "variables": {"context"},
	"max_time": {"max_execution_time", "timeout"}, "timeout": {"max_execution_time"}, "memory": {"max_memory_mb"},
	"table": {"table_name"}, "type": {"analysis_type"}, "network": {"enable_network_access"},
}

// UnknownField returns the message for a field that an object does not have. It names the field that was probably
// meant. known has the names of the object's fields.
func UnknownField(name string, known []string) string {
	if name == "user_id" {
		return "this field does not exist: a request acts for the user of its key; leave it out"
	}
	if meant := meantField(name, known); meant != "" {
		return fmt.Sprintf("this field does not exist; did you mean %s?", meant)
	}
	return "this field does not exist; GET /openapi.json lists the fields"
}

func meantField(name string, known []string) string {
	known = slices.Sorted(slices.Values(known))
	key := strings.ToLower(name)
	for _, meant := range meantFields[key] {
		if slices.Contains(known, meant) {
			return meant
		}
	}
	if meant := Nearest(key, slices.Values(known)); meant != "" {
		return meant
	}
	for _, other := range known { // max_memory for max_memory_mb, timeout_seconds for timeout
		if len(key) >= 4 && strings.Contains(other, key) || len(other) >= 4 && strings.Contains(key, other) {
			return other
		}
	}
	return ""
}
