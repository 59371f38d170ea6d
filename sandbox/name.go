package sandbox

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
