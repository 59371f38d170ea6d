package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The sizes, in bytes, of what clients name. Such texts are kept while a sandbox lives and come back in lists, so their
// sizes bound the memory of sandboxes and of lists. An ID counts as a name, and CheckPath has the same limit for a
// path. Linux allows 128 KiB for one environment variable.
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

// Users of the service itself. Nobody else may have their names: their executions would be those of one user.
const (
	AdminUser = "admin" // of the admin key that the first start makes, and of commands without a service
	NeMoUser  = "nemo"  // of all requests to the compatibility API of NeMo, which have no key
)

// CheckNotReserved returns FaultInvalid, with the field of a request, for the name of a user of the service itself.
func CheckNotReserved(field, user string) error {
	if user != AdminUser && user != NeMoUser {
		return nil
	}
	return &Error{Fault: FaultInvalid, Field: field, Detail: fmt.Sprintf(
		"the user %q belongs to the service itself; name another user", user)}
}

// maxNameRunes limits the name of a key and of a user.
const maxNameRunes = 200

// CheckName returns FaultInvalid, with the field of a request, if a name of a key or of a user is not one line of plain
// text. Names appear in lists, logs and audits, where invisible characters would hide what they are.
func CheckName(field, name string) error {
	problem := ""
	switch {
	case name == "":
		problem = "it is empty; give a name"
	case utf8.RuneCountInString(name) > maxNameRunes:
		problem = fmt.Sprintf("it has more than %d characters", maxNameRunes)
	case !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError):
		problem = "it is not valid UTF-8"
	case strings.TrimSpace(name) != name:
		problem = "it begins or ends with white space; leave that out"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		problem = "it has control characters or invisible characters; use letters, digits, spaces and punctuation"
	default:
		return nil
	}
	return &Error{Fault: FaultInvalid, Field: field, Detail: problem}
}

// Shorten returns the first maxRunes characters of text. If it cuts any, it appends a line
// with the number of cut characters.
func Shorten(text string, maxRunes int) string {
	if len(text) <= maxRunes {
		return text
	}
	n := 0
	for i := range text {
		if n == maxRunes {
			return fmt.Sprintf(
				"%s\n[... %d more characters were cut ...]\n",
				text[:i],
				utf8.RuneCountInString(text[i:]),
			)
		}
		n++
	}
	return text
}
