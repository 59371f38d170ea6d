package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// setBy is the annotation of a flag whose value an otherVariable has set: its name, and the note that says so.
const setBy = "set by"

// otherVariable is an environment variable with which other servers of this kind are configured. It sets a flag whose
// own variable is not set, so that such a server can be replaced without other settings.
type otherVariable struct {
	name, flag string
	perUnit    float64 // of the variable, in one unit of the flag; a part of a unit counts as one; 0: a text
}

// otherVariables are in the order of precedence: code runs in CPython, so a variable of CPython is nearer than one of
// any sandbox.
var otherVariables = []otherVariable{
	{"CPYTHON_TIMEOUT_S", "default-execution-time", 1},
	{"SANDBOX_TIMEOUT_S", "default-execution-time", 1},
	{"CPYTHON_AS_MB", "default-memory-mb", 1},
	{"SANDBOX_AS_MB", "default-memory-mb", 1},
	{"CPYTHON_BIN", "python", 0},
	{"SESSION_TTL_S", "default-idle-timeout", 1},
	{"SESSION_MAX_BYTES", "default-sandbox-uploads-mb", 1 << 20},
	{"MAX_INPUT_CHARS", "default-code-size", 1},
	{"RATE_LIMIT_MAX", "key-requests", 1}, // per RATE_LIMIT_WINDOW_MS
}

// unusedVariables are variables of the same servers that no setting of this service corresponds to, each with a reason.
var unusedVariables = []struct{ name, reason string }{
	{"CPYTHON_FSIZE_MB", "file_max_bytes of a sandbox's config limits a file"},
	{"CPYTHON_NOFILE", "max_open_files of a sandbox's config limits the open files"},
	{"SESSION_BASE_DIR", "the files of a session are in the session's own memory, and all other data is in --data-dir"},
	{"PYODIDE_INDEX_URL", "code runs in CPython; --python names its interpreter"},
}

// otherVariablesOf returns the variables of other servers that set a flag, in the order of precedence.
func otherVariablesOf(flag string) (list []otherVariable) {
	for _, v := range otherVariables {
		if v.flag == flag {
			list = append(list, v)
		}
	}
	return list
}

// apply sets the flag to the variable's value. It returns false if the variable is not set, or has no limit.
func (v otherVariable) apply(f *pflag.Flag) (applied bool, err error) {
	text, from := os.Getenv(v.name), v.name
	if text == "" || v.isNoLimit(text) {
		return false, nil
	}
	if v.perUnit > 0 {
		value, err := positiveVariable(v.name)
		if err != nil {
			return false, err
		}
		if v.name == "RATE_LIMIT_MAX" && os.Getenv(rateLimitWindow) != "" {
			window, err := positiveVariable(rateLimitWindow)
			if err != nil {
				return false, err
			}
			value *= 60_000 / window
			from += " and " + rateLimitWindow
		}
		text = strconv.FormatFloat(math.Ceil(value/v.perUnit), 'f', 0, 64)
	}
	if err := f.Value.Set(text); err != nil {
		return false, fmt.Errorf("the environment variable %s is invalid: --%s %s: %w", from, f.Name, text, err)
	}
	f.Annotations[setBy] = []string{v.name, fmt.Sprintf("%s set --%s to %s; its own variable is %s", from, f.Name, text,
		environmentName(f.Name))}
	return true, nil
}

// lowerMemory lowers the default memory that a limit of the address space has set to the ceiling: a process has much
// more address space than memory, so such limits are above what sandboxes may have.
func lowerMemory(flags *pflag.FlagSet) error {
	f, ceiling := flags.Lookup("default-memory-mb"), flags.Lookup("max-memory-mb")
	setter := f.Annotations[setBy]
	if len(setter) < 2 || f.Changed {
		return nil
	}
	value, err := strconv.ParseInt(f.Value.String(), 10, 64)
	most, err2 := strconv.ParseInt(ceiling.Value.String(), 10, 64)
	if err != nil || err2 != nil || value <= most {
		return errors.Join(err, err2)
	}
	f.Annotations[setBy][1] = fmt.Sprintf("%s set --%s to %d, the value of --%s; its own variable is %s",
		setter[0], f.Name, most, ceiling.Name, environmentName(f.Name))
	return f.Value.Set(ceiling.Value.String())
}

// isNoLimit reports whether a value turns the limit of an address space off.
func (v otherVariable) isNoLimit(text string) bool {
	value, err := strconv.ParseFloat(text, 64)
	return strings.HasSuffix(v.name, "_AS_MB") && err == nil && value == 0
}

// rateLimitWindow is the variable of the time, in milliseconds, in which RATE_LIMIT_MAX requests may come.
const rateLimitWindow = "RATE_LIMIT_WINDOW_MS"

// positiveVariable returns the number in an environment variable that is set.
func positiveVariable(name string) (float64, error) {
	text := os.Getenv(name)
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value > 0) || value > 1e15 {
		return 0, fmt.Errorf("the environment variable %s=%q must be a positive number", name, text)
	}
	return value, nil
}

// notesOf returns a line for each variable of other servers that is set: which flag it set, or why it is not used.
func notesOf(flags *pflag.FlagSet) (notes []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		for _, v := range otherVariablesOf(f.Name) {
			text, setter := os.Getenv(v.name), f.Annotations[setBy]
			switch {
			case text == "" || f.Annotations[sectionOf] == nil:
			case f.Changed || os.Getenv(environmentName(f.Name)) != "":
				notes = append(notes, fmt.Sprintf("%s is not used, because --%s or %s is set",
					v.name, f.Name, environmentName(f.Name)))
			case len(setter) == 2 && setter[0] == v.name:
				notes = append(notes, setter[1])
			case v.isNoLimit(text):
				notes = append(notes, fmt.Sprintf("%s=%s is not used: a sandbox always has a limit of memory, --%s",
					v.name, text, f.Name))
			case len(setter) == 2:
				notes = append(notes, fmt.Sprintf("%s is not used, because %s set --%s", v.name, setter[0], f.Name))
			}
		}
	})
	if os.Getenv(rateLimitWindow) != "" && os.Getenv("RATE_LIMIT_MAX") == "" {
		notes = append(notes, rateLimitWindow+" is not used without RATE_LIMIT_MAX")
	}
	for _, v := range unusedVariables {
		if os.Getenv(v.name) != "" {
			notes = append(notes, fmt.Sprintf("%s is not used: %s", v.name, v.reason))
		}
	}
	return notes
}
