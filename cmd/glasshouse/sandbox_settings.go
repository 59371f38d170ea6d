package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"glasshouse/policy"
)

// sandboxSettings are the limits of sandboxes: what each has if its config does not say otherwise, and the most that a
// config may ask for.
type sandboxSettings struct {
	defaults, ceilings [len(sandboxLimits)]int64 // by the index in sandboxLimits, in the unit of the flag
	profile            string
	allowedModules     string
	blockedModules     string
}

// sandboxLimit is a limit with a flag for its default and one for its ceiling: default-NAME and max-NAME.
type sandboxLimit struct {
	name, key, unit string // key is that of the config
	bytes           int64  // of one unit of the flag, if the config has bytes; else 1
	ceiling         int64  // in the unit of the flag
}

var sandboxLimits = [...]sandboxLimit{
	{"memory-mb", "max_memory_mb", "MIB", 1, 1024},
	{"execution-time", "max_execution_time", "SECONDS", 1, 300},
	{"idle-timeout", "idle_timeout", "SECONDS", 1, 7 * 24 * 3600},
	{"lifetime", "lifetime", "SECONDS", 1, 7 * 24 * 3600},
	{"sandbox-uploads-mb", "upload_max_bytes", "MIB", 1 << 20, 1024},
	{"code-size", "max_code_size", "BYTES", 1, 1 << 20},
}

// standardLimits returns the limits of policy.Default() by the index in sandboxLimits, in the unit of the flag.
func standardLimits() (standard [len(sandboxLimits)]int64) {
	p := reflect.ValueOf(policy.Default())
	for n, l := range sandboxLimits {
		for i := range p.NumField() {
			if p.Type().Field(i).Tag.Get("json") == l.key {
				standard[n] = p.Field(i).Int() / l.bytes
			}
		}
	}
	return standard
}

func (s *sandboxSettings) register(f *pflag.FlagSet) {
	standard := standardLimits()
	for n, l := range sandboxLimits {
		f.Int64Var(&s.defaults[n], "default-"+l.name, standard[n],
			fmt.Sprintf("%s of a sandbox whose config does not name it, in `%s`", l.key, l.unit))
		f.Int64Var(&s.ceilings[n], "max-"+l.name, l.ceiling,
			fmt.Sprintf("largest %s that a sandbox may request, in `%s`", l.key, l.unit))
	}
	f.StringVar(&s.profile, "default-profile", string(policy.Default().Profile),
		"`PROFILE` of a sandbox whose config does not name it: analyst, strict or unrestricted")
	f.StringVar(&s.allowedModules, "allowed-modules", "",
		"comma-separated `MODULES` that code may import in addition to those of its profile, such as os,torch; "+
			"*: any. The isolation does not depend on it")
	f.StringVar(&s.blockedModules, "blocked-modules", "",
		"comma-separated `MODULES` that no sandbox may import")
}

// policies returns the policy of a sandbox without a config, and the limits of a config. A default that was not set is
// lowered to its ceiling.
func (s *sandboxSettings) policies() (defaults, ceiling policy.Policy, err error) {
	config, limits, standard := map[string]any{}, map[string]any{}, standardLimits()
	for n, l := range sandboxLimits {
		limits[l.key] = s.ceilings[n] * l.bytes
		if s.defaults[n] != standard[n] {
			config[l.key] = s.defaults[n] * l.bytes
		}
	}
	accepted, err := acceptFlags(limits, policy.Policy{}, "max-")
	if err != nil {
		return defaults, ceiling, err
	}
	ceiling = policy.Policy{
		MaxMemoryMB: accepted.MaxMemoryMB, MaxExecutionTime: accepted.MaxExecutionTime,
		IdleTimeout: accepted.IdleTimeout, Lifetime: accepted.Lifetime,
		UploadMaxBytes: accepted.UploadMaxBytes, MaxCodeSize: accepted.MaxCodeSize,
	}
	if s.profile != string(policy.Default().Profile) {
		config["profile"] = s.profile
	}
	if blocked := splitList(s.blockedModules); len(blocked) > 0 {
		config["blocked_modules"] = blocked
	}
	if defaults, err = acceptFlags(config, ceiling, "default-"); err != nil {
		return defaults, ceiling, err
	}
	defaults.OperatorModules = splitList(s.allowedModules)
	for _, m := range defaults.OperatorModules {
		if m != "*" && !policy.IsModule(m) {
			return defaults, ceiling, fmt.Errorf("--allowed-modules: %q is not a module name such as scipy.stats", m)
		}
	}
	return defaults, ceiling, nil
}

// acceptFlags returns the default policy with the values of flags, which begin with prefix.
func acceptFlags(config map[string]any, ceiling policy.Policy, prefix string) (policy.Policy, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return policy.Policy{}, err
	}
	p, err := policy.Accept(raw, policy.Default(), ceiling, nil, true)
	wrong, isField := errors.AsType[*policy.FieldError](err)
	if !isField {
		return p, err
	}
	flag := strings.ReplaceAll(wrong.Field, "_", "-")
	if flag == "profile" {
		flag = prefix + flag
	}
	unit := ""
	for _, l := range sandboxLimits {
		if l.key == wrong.Field {
			flag = prefix + l.name
			if l.bytes > 1 {
				unit = " bytes"
			}
		}
	}
	return p, fmt.Errorf("--%s (%s): %s%s", flag, environmentName(flag), wrong.Detail, unit)
}
