package main

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/spf13/pflag"
)

// setBy is the annotation of a flag whose value an otherVariable has set.
const setBy = "set by"

// otherVariable is an environment variable with which other servers of this kind are configured. It sets a flag whose
// own variable is not set, so that such a server can be replaced without other settings.
type otherVariable struct {
	name, flag string
	perUnit    float64 // of the variable, in one unit of the flag; a part of a unit counts as one
}

var otherVariables = []otherVariable{
	{"SANDBOX_TIMEOUT_S", "default-execution-time", 1},
	{"SESSION_TTL_S", "default-idle-timeout", 1},
	{"SESSION_MAX_BYTES", "default-sandbox-uploads-mb", 1 << 20},
	{"MAX_INPUT_CHARS", "default-code-size", 1},
	{"RATE_LIMIT_MAX", "key-requests", 1}, // per RATE_LIMIT_WINDOW_MS
}

// otherVariableOf returns the variable of other servers that sets a flag.
func otherVariableOf(flag string) (v otherVariable, ok bool) {
	for _, v := range otherVariables {
		if v.flag == flag {
			return v, true
		}
	}
	return v, false
}

// apply sets the flag to the variable's value, if the variable is set.
func (v otherVariable) apply(f *pflag.Flag) error {
	value, isSet, err := positiveVariable(v.name)
	if err != nil || !isSet {
		return err
	}
	from := v.name
	if v.name == "RATE_LIMIT_MAX" {
		window, isSet, err := positiveVariable("RATE_LIMIT_WINDOW_MS")
		if err != nil {
			return err
		}
		if isSet {
			value *= 60_000 / window
			from += " and RATE_LIMIT_WINDOW_MS"
		}
	}
	text := strconv.FormatFloat(math.Ceil(value/v.perUnit), 'f', 0, 64)
	if err := f.Value.Set(text); err != nil {
		return fmt.Errorf("the environment variable %s is invalid: --%s %s: %w", from, f.Name, text, err)
	}
	f.Annotations[setBy] = []string{fmt.Sprintf("%s set --%s to %s; its own variable is %s", from, f.Name, text,
		environmentName(f.Name))}
	return nil
}

// positiveVariable returns the number in an environment variable.
func positiveVariable(name string) (value float64, isSet bool, err error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, false, nil
	}
	value, err = strconv.ParseFloat(text, 64)
	if err != nil || !(value > 0) || value > 1e15 {
		return 0, false, fmt.Errorf("the environment variable %s=%q must be a positive number", name, text)
	}
	return value, true, nil
}

// notesOf returns a line for each setting that has the value of an otherVariable.
func notesOf(flags *pflag.FlagSet) (notes []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed { // a flag overrides the variable
			notes = append(notes, f.Annotations[setBy]...)
		}
	})
	return notes
}
