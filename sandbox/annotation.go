package sandbox

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Annotations are what a client says about its code for those who look for the execution later. They do not change how
// the code runs. Request, Execution and ExecutionSummary embed them, so each field is decoded, recorded and returned.
type Annotations struct {
	Tags map[string]string `json:"tags,omitempty" maxProperties:"16" doc:"Names [A-Za-z0-9_.-]{1,64}, values 256 bytes"`

	Title string `json:"title,omitempty" maxLength:"200" doc:"What lists call the execution; it may be renamed"`
}

// OfReplay returns the annotations that a replay has of its original. Lists by the others have originals only.
func (a Annotations) OfReplay() Annotations { return Annotations{Title: a.Title} }

// ModelAnnotations describes to models, by their JSON names, the annotations that they may set.
var ModelAnnotations = map[string]string{
	"title": "What the code is for, in a few words",
	"tags":  "Texts by name to find the run in history, if asked for",
}

// Limits of Annotations.
const (
	maxTags          = 16
	maxTagValueBytes = 256
	MaxTitleChars    = 200
)

var tagName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// CheckAnnotations returns FaultInvalid for annotations that exceed a limit. The error names the first such tag, by
// name. All transports reach it: tags of the struct such as maxProperties hold for bodies in HTTP only.
func (a Annotations) CheckAnnotations() error {
	refusal := func(format string, args ...any) error {
		return &Error{Fault: FaultInvalid, Field: "tags", Detail: fmt.Sprintf(format, args...)}
	}
	if err := CheckTitle(a.Title); err != nil {
		return err
	}
	if len(a.Tags) > maxTags {
		return refusal("got %d tags; send at most %d", len(a.Tags), maxTags)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Tags)) {
		switch value := a.Tags[name]; {
		case !tagName.MatchString(name):
			return refusal("the name of the tag %.80q is not valid; use 1 to 64 of A-Z a-z 0-9 _ . -", name)
		case len(value) > maxTagValueBytes:
			return refusal("the value of the tag %q has %d bytes; send at most %d", name, len(value), maxTagValueBytes)
		case strings.ContainsFunc(value, unicode.IsControl):
			return refusal("the value of the tag %q has a control character; send it without", name)
		}
	}
	return nil
}

// CheckTitle returns FaultInvalid for a title of an execution or of a sandbox that is too long or has control
// characters.
func CheckTitle(title string) error { return checkLine("title", title, MaxTitleChars) }

// checkLine returns FaultInvalid for a text of a field that has more than maxChars characters, or control characters.
func checkLine(field, text string, maxChars int) error {
	var detail string
	if n := utf8.RuneCountInString(text); n > maxChars {
		detail = fmt.Sprintf("it has %d characters; it may have %d", n, maxChars)
	} else if strings.ContainsFunc(text, unicode.IsControl) {
		detail = "it has a control character; send one line of text"
	} else {
		return nil
	}
	return &Error{Fault: FaultInvalid, Field: field, Detail: detail}
}

// ExecutionFilter selects executions for a list, newest first unless it has another order. A zero field does not
// filter. HTTP decodes a query into the fields with the tag query, and sets the others itself.
type ExecutionFilter struct {
	User      string `query:"user_id" doc:"Only an admin may ask for other users"`
	SandboxID string `query:"sandbox_id"`
	Status    Status `query:"status" enum:"created,running,completed,failed,timeout,cancelled,killed"`
	Kind      Kind

	Since time.Time
	Until time.Time
	Tags  []Tag  // the execution has all of them
	Text  string `query:"text" maxLength:"200" doc:"Text in title, code, error or output"` // in upper or lower case
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`                   // 0 means 50
	After string `query:"after" doc:"Value of next in the previous page"`

	ReplayOf string `query:"replay_of" doc:"Only replays of this execution that have ended"`

	// IsWork leaves out replays and explanations.
	IsWork bool `query:"work" doc:"true: leave out replays, and statements that ran only to explain one"`

	Order ExecutionOrder `query:"order" enum:"newest,duration,rows" default:"newest" doc:"The largest number first"`
}

// ExecutionOrder is the order of a list of executions. "" is ListNewest.
type ExecutionOrder string

// The orders. Those by a number have ended executions only.
const (
	ListNewest     ExecutionOrder = "newest"
	ListByDuration ExecutionOrder = "duration"
	ListByRows     ExecutionOrder = "rows"
)

// Tag is one of the tags of an execution.
type Tag struct{ Name, Value string }

// ParseTag returns the tag of a text such as team:risk. It returns FaultInvalid if the text has no colon.
func ParseTag(text string) (Tag, error) {
	name, value, ok := strings.Cut(text, ":")
	if !ok {
		return Tag{}, &Error{Fault: FaultInvalid, Field: "tag", Detail: "write a tag as NAME:VALUE, such as team:risk"}
	}
	return Tag{name, value}, nil
}
