package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
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
	WhyNotYet    Why = "not-yet"
)

// FieldError names the key of a config that cannot be taken, and what to do.
type FieldError struct {
	Field  string
	Detail string
	Why    Why
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Detail }

// Accept reads a config, a JSON object whose keys are all optional ("" and null
// stand for {}), over the defaults. A value may not go beyond the ceiling, nor
// loosen what the default forbids. The error is a *FieldError.
func Accept(raw []byte, def, ceiling Policy, admin bool) (Policy, error) {
	p := def
	if len(bytes.TrimSpace(raw)) == 0 || string(bytes.TrimSpace(raw)) == "null" {
		return p, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return p, &FieldError{"config", "it must be a JSON object", WhyInvalid}
	}
	value := reflect.ValueOf(&p).Elem()
	limits := reflect.ValueOf(ceiling)
	fields := map[string]int{}
	for i := range value.NumField() {
		fields[value.Type().Field(i).Tag.Get("json")] = i
	}
	names := make([]string, 0, len(given))
	for name := range given {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		i, ok := fields[name]
		if !ok {
			return p, &FieldError{name, "there is no such key; GET /openapi.json lists them", WhyInvalid}
		}
		value.Field(i).SetZero() // a list must not be read into the default's own
		if err := json.Unmarshal(given[name], value.Field(i).Addr().Interface()); err != nil || string(given[name]) == "null" {
			return p, &FieldError{name, "it must be " + describe(value.Field(i).Kind()), WhyInvalid}
		}
		if err := inRange(value.Type().Field(i), value.Field(i), limits.Field(i)); err != nil {
			return p, err
		}
	}
	for _, m := range def.BlockedModules {
		if !slices.Contains(p.BlockedModules, m) {
			p.BlockedModules = append(slices.Clip(p.BlockedModules), m)
		}
	}
	if len(p.AllowedModules) == 0 { // "those of the profile" must not mean more than the operator's
		p.AllowedModules = slices.Clone(def.AllowedModules)
	}
	return p, judge(p, def, admin)
}

// judge applies the rules that are about more than one number.
func judge(p, def Policy, admin bool) error {
	switch {
	case p.EnableNetworkAccess:
		return &FieldError{"enable_network_access", "network access for sandboxes is not built yet", WhyNotYet}
	case len(p.AllowedHosts) > 0:
		return &FieldError{"allowed_hosts", "network access for sandboxes is not built yet", WhyNotYet}
	case p.EnableFileAccess && !def.EnableFileAccess:
		return &FieldError{"enable_file_access", "the operator has it off", WhyForbidden}
	case p.EnableDebugging && !def.EnableDebugging:
		return &FieldError{"enable_debugging", "the operator has it off", WhyForbidden}
	case p.Profile == ProfileUnrestricted && !admin:
		return &FieldError{"profile", "only an admin's key may choose unrestricted", WhyForbidden}
	case p.Profile == ProfileAnalyst && def.Profile == ProfileStrict && !admin:
		return &FieldError{"profile", "the operator allows no more than strict", WhyForbidden}
	}
	if p.Profile != ProfileUnrestricted {
		for _, m := range p.AllowedModules {
			if _, blocked := blockedModules[m]; blocked || !among(allowedModules, m) || len(def.AllowedModules) > 0 && !among(def.AllowedModules, m) {
				return &FieldError{"allowed_modules", m + " is not among the modules that the profile allows", WhyForbidden}
			}
		}
	}
	return nil
}

// among says whether a module, or a package around it, is in the list.
func among(list []string, module string) bool {
	return slices.ContainsFunc(list, func(m string) bool { return m == module || strings.HasPrefix(module, m+".") })
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
	if !v.CanInt() {
		return nil
	}
	low, _ := strconv.ParseInt(f.Tag.Get("minimum"), 10, 64)
	high, _ := strconv.ParseInt(f.Tag.Get("maximum"), 10, 64)
	if c := ceiling.Int(); c > 0 && c < high {
		high = c
	}
	if v.Int() < low || v.Int() > high {
		return &FieldError{name, fmt.Sprintf("it must be from %d to %d", low, high), WhyInvalid}
	}
	return nil
}
