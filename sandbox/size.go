package sandbox

import (
	"fmt"
	"maps"
	"slices"
)

// The sizes, in bytes, of what clients name. Such texts are kept while a sandbox lives and come back in lists, so their
// sizes bound the memory of sandboxes and of lists. An ID counts as a name, and CheckPath has the same limit for a path.
// Linux allows 128 KiB for one environment variable.
const (
	MaxNameBytes      = 1 << 10  // each name
	MaxMetadataBytes  = 16 << 10 // all names and values of a sandbox's metadata
	MaxVariablesBytes = 64 << 10 // all names and values of environment variables
)

// CheckNames returns FaultInvalid for a name of more than MaxNameBytes. The keys are the fields of the request that
// have the names.
func CheckNames(names map[string]string) error {
	for _, field := range slices.Sorted(maps.Keys(names)) {
		if err := CheckSize(field, MaxNameBytes, len(names[field])); err != nil {
			return err
		}
	}
	return nil
}

// CheckMapSize returns FaultInvalid if the keys and values of a field have more than maxBytes together.
func CheckMapSize(field string, maxBytes int, values map[string]string) error {
	size := 0
	for key, value := range values {
		size += len(key) + len(value)
	}
	return CheckSize(field, maxBytes, size)
}

// CheckSize returns FaultInvalid, with both sizes, if a field has more than maxBytes.
func CheckSize(field string, maxBytes, bytes int) error {
	if bytes <= maxBytes {
		return nil
	}
	return &Error{Fault: FaultInvalid, Field: field,
		Detail: fmt.Sprintf("it has %d bytes, and may have %d; send a shorter one", bytes, maxBytes)}
}
