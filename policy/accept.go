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
)

// Why says what kind of no a FieldError is.
type Why string

// The kinds of a no.
const (
	WhyInvalid   Why = "invalid"
	WhyMalformed Why = "malformed"
	WhyForbidden Why = "forbidden"
)

// FieldError names the key of a config that cannot be taken, and what to do.
type FieldError struct {
	Field  string
	Detail string
	Why    Why
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Environments are those that a sandbox may choose, each with the modules that the
// operator has added to it.
type Environments map[string][]string

// String lists their names.
func (e Environments) String() string { return strings.Join(slices.Sorted(maps.Keys(e)), ", ") }

// Accept reads a config, a JSON object whose keys are all optional (nothing and
// null stand for {}), over the defaults. A number may not go beyond the ceiling,
// where the ceiling has one, and a default that does is lowered to it. Nothing
// loosens what the default forbids. The network alone is off by default and may be
// asked for: what may be reached is in the ceiling's AllowedHosts, where its
// EnableNetworkAccess is on. An environment must be one of those that there are. The
// error is a *FieldError.
func Accept(raw []byte, def, ceiling Policy, there Environments, admin bool) (Policy, error) {
	p := def
	value, limits := reflect.ValueOf(&p).Elem(), reflect.ValueOf(ceiling)
	fields := map[string]int{}
	for i := range value.NumField() {
		fields[value.Type().Field(i).Tag.Get("json")] = i
		if f, c := value.Field(i), limits.Field(i); f.CanInt() && c.Int() > 0 && f.Int() > c.Int() {
			f.SetInt(c.Int())
		}
	}
	given, err := members(raw)
	if err != nil {
		return p, err
	}
	for _, m := range given {
		i, ok := fields[m.name]
		if !ok {
			return p, &FieldError{m.name, "there is no such key; GET /openapi.json lists them", WhyInvalid}
		}
		if err := assign(value.Field(i), m.value); err != nil {
			return p, &FieldError{m.name, err.Error(), WhyInvalid}
		}
		if err := inRange(value.Type().Field(i), value.Field(i), limits.Field(i)); err != nil {
			return p, err
		}
	}
	asked := func(name string) bool {
		return slices.ContainsFunc(given, func(m member) bool { return m.name == name })
	}
	if _, ok := there[p.Environment]; !ok && asked("environment") {
		return p, &FieldError{
			"environment",
			fmt.Sprintf("there is no environment %.80q; there are: %s", p.Environment, there),
			WhyInvalid,
		}
	}
	if err := acceptModules(&p, def, there[p.Environment], asked); err != nil {
		return p, err
	}
	if err := acceptHosts(&p, ceiling, asked); err != nil {
		return p, err
	}
	return p, judge(p, def, admin)
}

// member is one key of a JSON object with its value.
type member struct {
	name  string
	value json.RawMessage
}

// members reads an object in its order. A key that stands twice is an error: which
// of the two was meant, nobody knows.
func members(raw []byte) ([]member, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil, nil
	}
	notObject := &FieldError{"config", "it must be a JSON object", WhyInvalid}
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
			return nil, &FieldError{m.name, "it is given twice", WhyInvalid}
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

// assign reads one value into its field, never into the default's own list.
func assign(field reflect.Value, value json.RawMessage) error {
	wrong := errors.New("it must be " + describe(field.Kind()))
	if field.Kind() != reflect.Slice {
		if err := json.Unmarshal(value, field.Addr().Interface()); err != nil || string(value) == "null" {
			return wrong
		}
		return nil
	}
	var list []*string // a null among them would pass for "" otherwise
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

// inRange checks a value against its own tags and against the ceiling.
func inRange(f reflect.StructField, v, ceiling reflect.Value) error {
	name := f.Tag.Get("json")
	if enum := f.Tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), v.String()) {
		return &FieldError{name, "it must be one of " + strings.ReplaceAll(enum, ",", ", "), WhyInvalid}
	}
	high, _ := strconv.ParseInt(f.Tag.Get("maximum"), 10, 64)
	if most, _ := strconv.Atoi(f.Tag.Get("maxItems")); v.Kind() == reflect.Slice && v.Len() > most {
		return &FieldError{name, fmt.Sprintf("it may have at most %d entries", most), WhyInvalid}
	}
	if !v.CanInt() {
		return nil
	}
	low, _ := strconv.ParseInt(f.Tag.Get("minimum"), 10, 64)
	if c := ceiling.Int(); c > 0 && c < high {
		high = c
	}
	if v.Int() < low || v.Int() > high {
		return &FieldError{name, fmt.Sprintf("it must be from %d to %d", low, high), WhyInvalid}
	}
	return nil
}

// judge applies the rules that are about what the operator has off.
func judge(p, def Policy, admin bool) error {
	switch {
	case p.EnableFileAccess && !def.EnableFileAccess:
		return &FieldError{"enable_file_access", "the operator has it off", WhyForbidden}
	case p.EnableDebugging && !def.EnableDebugging:
		return &FieldError{"enable_debugging", "the operator has it off", WhyForbidden}
	case p.SaveIntermediateResults && !def.SaveIntermediateResults:
		return &FieldError{"save_intermediate_results", "the operator has it off", WhyForbidden}
	case admin || p.Profile == def.Profile || p.Profile == ProfileStrict || def.Profile == ProfileUnrestricted:
		return nil
	case p.Profile == ProfileUnrestricted:
		return &FieldError{"profile", "only an admin's key may choose unrestricted", WhyForbidden}
	}
	return &FieldError{"profile", "the operator allows no more than strict", WhyForbidden}
}
