package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrorKind tells whether a value is invalid or the operator forbids it.
type ErrorKind string

// The kinds of a FieldError.
const (
	KindInvalid   ErrorKind = "invalid"
	KindForbidden ErrorKind = "forbidden"
)

// FieldError is the error of Accept and ParseHosts: it names a key of the config and what is wrong with its value.
type FieldError struct {
	Field  string
	Detail string
	Kind   ErrorKind
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Environments maps the name of each environment that a sandbox may choose to the modules that the operator
// has added to it.
type Environments map[string][]string

// String returns the sorted names, separated by commas.
func (e Environments) String() string { return strings.Join(slices.Sorted(maps.Keys(e)), ", ") }

// Accept returns the policy def with the keys of the config raw, a JSON object. Every key is optional; empty text
// and null count as {}. The error is a *FieldError.
//
//   - A number must not exceed that of ceiling, unless that is 0. A larger default is lowered to it.
//   - A config may tighten what def allows and may not loosen it. The exception is the network, which is off by
//     default: a config may enable it if ceiling.EnableNetworkAccess is set, for hosts in ceiling.AllowedHosts.
//   - The environment must be one of environments.
func Accept(raw []byte, def, ceiling Policy, environments Environments, admin bool) (Policy, error) {
	p := def
	value, limits := reflect.ValueOf(&p).Elem(), reflect.ValueOf(ceiling)
	for i := range value.NumField() {
		if f, c := value.Field(i), limits.Field(i); f.CanInt() && c.Int() > 0 && f.Int() > c.Int() {
			f.SetInt(c.Int())
		}
	}
	given, err := members(raw)
	if err != nil {
		return p, err
	}
	for _, m := range given {
		i, ok := fieldsByName[m.name]
		if !ok {
			return p, &FieldError{m.name, UnknownField(m.name, slices.Collect(maps.Keys(fieldsByName))), KindInvalid}
		}
		if err := assign(value.Field(i), m.value); err != nil {
			return p, &FieldError{m.name, err.Error(), KindInvalid}
		}
		if err := inRange(value.Type().Field(i), value.Field(i), limits.Field(i)); err != nil {
			return p, err
		}
	}
	isGiven := func(name string) bool {
		return slices.ContainsFunc(given, func(m member) bool { return m.name == name })
	}
	if _, ok := environments[p.Environment]; !ok && isGiven("environment") {
		return p, &FieldError{
			"environment",
			fmt.Sprintf("there is no environment %.80q; choose one of: %s", p.Environment, environments),
			KindInvalid,
		}
	}
	if err := acceptModules(&p, def, environments[p.Environment], isGiven); err != nil {
		return p, err
	}
	if err := acceptHosts(&p, ceiling, isGiven); err != nil {
		return p, err
	}
	return p, checkOperatorLimits(p, def, admin)
}

// fieldsByName has the number of each field of Policy that a config may have, by its name in JSON.
var fieldsByName = func() map[string]int {
	fields := map[string]int{}
	for f := range reflect.TypeFor[Policy]().Fields() {
		if name := f.Tag.Get("json"); name != "-" {
			fields[name] = f.Index[0]
		}
	}
	return fields
}()

// member is one key of a JSON object with its value.
type member struct {
	name  string
	value json.RawMessage
}

// members returns the keys of a JSON object in their order. A repeated key is an error, because it is not clear
// which value was meant.
func members(raw []byte) ([]member, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil, nil
	}
	notObject := &FieldError{"config", "it must be a JSON object", KindInvalid}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, notObject
	}
	var list []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, notObject
		}
		m := member{name: key.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, notObject
		}
		if slices.ContainsFunc(list, func(other member) bool { return other.name == m.name }) {
			return nil, &FieldError{m.name, "this key is given twice", KindInvalid}
		}
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, notObject
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, notObject
	}
	return list, nil
}

// assign decodes a value into its field. A list gets new memory, so that it never overwrites the default's list.
func assign(field reflect.Value, value json.RawMessage) error {
	wrong := errors.New("it must be " + describe(field.Kind()))
	if field.Kind() != reflect.Slice {
		if err := json.Unmarshal(value, field.Addr().Interface()); err != nil || string(value) == "null" {
			return wrong
		}
		return nil
	}
	var list []*string // in a []string, null would become ""
	if err := json.Unmarshal(value, &list); err != nil || list == nil || slices.Contains(list, nil) {
		return wrong
	}
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = *s
	}
	field.Set(reflect.ValueOf(words))
	return nil
}

// describe returns what a value of a field must be, for error messages.
func describe(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list of strings"
	}
	return "a whole number"
}

// inRange returns an error if a value exceeds the bounds in its field's tags or the ceiling.
func inRange(f reflect.StructField, v, ceiling reflect.Value) error {
	name := f.Tag.Get("json")
	if enum := f.Tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), v.String()) {
		return &FieldError{name, "it must be one of " + strings.ReplaceAll(enum, ",", ", "), KindInvalid}
	}
	high, _ := strconv.ParseInt(f.Tag.Get("maximum"), 10, 64)
	if maxItems, _ := strconv.Atoi(f.Tag.Get("maxItems")); v.Kind() == reflect.Slice && v.Len() > maxItems {
		return &FieldError{name, fmt.Sprintf("it may have at most %d entries", maxItems), KindInvalid}
	}
	if maxLength, _ := strconv.Atoi(f.Tag.Get("maxLength")); v.Kind() == reflect.Slice {
		for _, entry := range v.Interface().([]string) {
			if utf8.RuneCountInString(entry) > maxLength {
				return &FieldError{name, fmt.Sprintf("an entry may have at most %d characters", maxLength), KindInvalid}
			}
		}
	}
	if !v.CanInt() {
		return nil
	}
	low, _ := strconv.ParseInt(f.Tag.Get("minimum"), 10, 64)
	if c := ceiling.Int(); c > 0 && c < high {
		high = c
	}
	if v.Int() < low || v.Int() > high {
		return &FieldError{name, fmt.Sprintf("it must be from %d to %d", low, high), KindInvalid}
	}
	return nil
}

// checkOperatorLimits refuses features and profiles that the operator has disabled.
func checkOperatorLimits(p, def Policy, admin bool) error {
	switch {
	case p.EnableFileAccess && !def.EnableFileAccess:
		return &FieldError{"enable_file_access", "the operator has disabled it", KindForbidden}
	case p.EnableDebugging && !def.EnableDebugging:
		return &FieldError{"enable_debugging", "the operator has disabled it", KindForbidden}
	case p.Record == RecordAlways && !p.EnableDebugging:
		return &FieldError{"record", "it records runs, so it needs enable_debugging", KindInvalid}
	case p.SaveIntermediateResults && !def.SaveIntermediateResults:
		return &FieldError{"save_intermediate_results", "the operator has disabled it", KindForbidden}
	case admin || p.Profile == def.Profile || p.Profile == ProfileStrict || def.Profile == ProfileUnrestricted:
		return nil
	case p.Profile == ProfileUnrestricted:
		return &FieldError{"profile", "only an admin's key may choose unrestricted", KindForbidden}
	}
	return &FieldError{"profile", "the operator allows only strict", KindForbidden}
}
