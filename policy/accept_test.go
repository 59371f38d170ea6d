package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"glasshouse/policy"
)

func ceiling() policy.Policy {
	c := policy.Default()
	c.MaxMemoryMB, c.MaxExecutionTime = 512, 120
	return c
}

func TestAcceptNamesTheInvalidKey(t *testing.T) {
	tooManyHosts := `{"allowed_hosts": [` + strings.Repeat(`"example.com",`, 100) + `"example.com"]}`
	for raw, want := range map[string]struct {
		field string
		why   policy.ErrorKind
	}{
		`{"max_memory_mb": 513}`:             {"max_memory_mb", policy.KindInvalid},
		`{"max_memory_mb": 63}`:              {"max_memory_mb", policy.KindInvalid},
		`{"max_memory_mb": 1e400}`:           {"max_memory_mb", policy.KindInvalid},
		`{"max_memory_mb": 64.5}`:            {"max_memory_mb", policy.KindInvalid},
		`{"max_memory_mb": null}`:            {"max_memory_mb", policy.KindInvalid},
		`{"MAX_MEMORY_MB": 64}`:              {"MAX_MEMORY_MB", policy.KindInvalid},
		`{"colour": 1}`:                      {"colour", policy.KindInvalid},
		`{"-": ["*"]}`:                       {"-", policy.KindInvalid},
		`{"profile": "root"}`:                {"profile", policy.KindInvalid},
		`{"profile": "compat"}`:              {"profile", policy.KindInvalid},
		`{"profile": "notebook"}`:            {"profile", policy.KindInvalid},
		`{"profile": "unrestricted"}`:        {"profile", policy.KindForbidden},
		`{"allowed_modules": ["os"]}`:        {"allowed_modules", policy.KindForbidden},
		`{"allowed_modules": ["torch"]}`:     {"allowed_modules", policy.KindForbidden},
		`{"allowed_modules": "json"}`:        {"allowed_modules", policy.KindInvalid},
		`{"allowed_modules": null}`:          {"allowed_modules", policy.KindInvalid},
		`{"allowed_modules": [null]}`:        {"allowed_modules", policy.KindInvalid},
		`{"allowed_modules": ["not json"]}`:  {"allowed_modules", policy.KindInvalid},
		`{"allowed_modules": ["js-on"]}`:     {"allowed_modules", policy.KindInvalid},
		`{"blocked_modules": ["json."]}`:     {"blocked_modules", policy.KindInvalid},
		`{"blocked_modules": ["9json"]}`:     {"blocked_modules", policy.KindInvalid},
		`{"environment": "other"}`:           {"environment", policy.KindInvalid},
		`{"max_rows": 7, "max_rows": 7}`:     {"max_rows", policy.KindInvalid},
		tooManyHosts:                         {"allowed_hosts", policy.KindInvalid},
		`{"enable_network_access": true}`:    {"enable_network_access", policy.KindForbidden},
		`{"allowed_hosts": ["example.com"]}`: {"allowed_hosts", policy.KindForbidden},
		`[]`:                                 {"config", policy.KindInvalid},
		`{"max_rows": }`:                     {"config", policy.KindInvalid},
		`{"max_rows": 7`:                     {"config", policy.KindInvalid},
		`{"max_rows": 7, x}`:                 {"config", policy.KindInvalid},
		`{} {}`:                              {"config", policy.KindInvalid},
	} {
		_, err := policy.Accept([]byte(raw), policy.Default(), ceiling(), nil, false)
		var field *policy.FieldError
		if !errors.As(err, &field) || field.Field != want.field || field.Kind != want.why {
			t.Errorf("%s: got %#v, want a FieldError of %s, kind %s", raw, err, want.field, want.why)
		}
	}
}

func TestAcceptKeepsDefaultsOfAbsentKeys(t *testing.T) {
	for _, raw := range []string{``, `null`, `{}`, `{"max_rows": 7, "profile": "strict", "allowed_modules": ["json", "numpy.linalg"]}`} {
		p, err := policy.Accept([]byte(raw), policy.Default(), ceiling(), nil, false)
		if err != nil || p.MaxMemoryMB != 256 || p.Lifetime != 3600 || !p.EnableDebugging {
			t.Errorf("%s: got %+v, %v; want the defaults", raw, p, err)
		}
		if raw != "" && len(raw) > 4 &&
			(p.MaxRows != 7 || p.Profile != policy.ProfileStrict || len(p.AllowedModules) != 2) {
			t.Errorf("%s: got %+v, want the given values", raw, p)
		}
	}
	if p, err := policy.Accept([]byte(`{"profile": "unrestricted"}`), policy.Default(), ceiling(), nil, true); err != nil ||
		p.Profile != policy.ProfileUnrestricted {
		t.Errorf("unrestricted with an admin's key: got profile %s, %v", p.Profile, err)
	}
}

// A limit may have both of its bounds. A default above the ceiling is lowered to it, and a ceiling of 0 is none.
func TestAcceptKeepsNumbersWithinTheCeiling(t *testing.T) {
	for raw, want := range map[string]int{`{}`: 256, `{"max_memory_mb": 64}`: 64, `{"max_memory_mb": 512}`: 512} {
		p, err := policy.Accept([]byte(raw), policy.Default(), ceiling(), nil, false)
		if err != nil || p.MaxMemoryMB != want {
			t.Errorf("%s: got %d MiB, %v; want %d", raw, p.MaxMemoryMB, err, want)
		}
	}
	low := policy.Policy{MaxMemoryMB: 100}
	p, err := policy.Accept([]byte(`{"max_threads": 64}`), policy.Default(), low, nil, false)
	if err != nil || p.MaxMemoryMB != 100 || p.MaxThreads != 64 || p.MaxRows != policy.Default().MaxRows {
		t.Errorf("a ceiling of 100 MiB only: got %+v, %v; want it to change no other limit", p, err)
	}
}

// The modules of an environment and those of the operator may be asked for, and no others that the profile blocks.
func TestAcceptModulesOfTheEnvironmentAndTheOperator(t *testing.T) {
	def := policy.Default()
	def.OperatorModules = []string{"socket"}
	environments := policy.Environments{"default": nil, "ml": {"torch", "psycopg", "sys"}}
	for raw, allowed := range map[string]bool{
		`{"environment": "ml", "allowed_modules": ["torch.nn", "psycopg", "socket"]}`: true,
		`{"environment": "ml", "allowed_modules": ["sys"]}`:                           false, // it is part of Python
		`{"allowed_modules": ["torch"]}`:                                              false,
		`{"allowed_modules": ["os"]}`:                                                 false,
	} {
		if _, err := policy.Accept([]byte(raw), def, ceiling(), environments, false); (err == nil) != allowed {
			t.Errorf("%s: got %v, want allowed %v", raw, err, allowed)
		}
	}
	def.OperatorModules = []string{"*"}
	if _, err := policy.Accept([]byte(`{"allowed_modules": ["os", "torch"]}`), def, ceiling(), nil, false); err != nil {
		t.Errorf("with all modules: got %v, want no error", err)
	}
}

// A request may tighten the operator's rules. It may not loosen them, and does not change the operator's own lists.
func TestAcceptNeverLoosens(t *testing.T) {
	def := policy.Default()
	def.Profile, def.EnableFileAccess, def.EnableDebugging = policy.ProfileStrict, false, false
	def.SaveIntermediateResults = false
	def.AllowedModules, def.BlockedModules = []string{"json", "math", "numpy"}, []string{"requests", "aiohttp"}
	for _, raw := range []string{`{"profile": "analyst"}`, `{"enable_file_access": true}`, `{"enable_debugging": true}`,
		`{"allowed_modules": ["pandas"]}`, `{"save_intermediate_results": true}`, `{"record": "always"}`} {
		if _, err := policy.Accept([]byte(raw), def, ceiling(), nil, false); err == nil {
			t.Errorf("%s: got no error, want it refused", raw)
		}
	}
	p, err := policy.Accept([]byte(`{"allowed_modules": [], "blocked_modules": ["csv"]}`), def, ceiling(), nil, false)
	if err != nil || !slices.Equal(p.AllowedModules, def.AllowedModules) ||
		!slices.Contains(p.BlockedModules, "requests") ||
		!slices.Contains(p.BlockedModules, "csv") {
		t.Errorf("got %+v, %v; want the operator's lists and csv blocked", p, err)
	}
	if _, err := policy.Accept([]byte(`{"allowed_modules": ["math"], "blocked_modules": ["csv", "json"]}`), def, ceiling(), nil, false); err != nil {
		t.Error(err)
	}
	if !slices.Equal(def.AllowedModules, []string{"json", "math", "numpy"}) ||
		!slices.Equal(def.BlockedModules, []string{"requests", "aiohttp"}) {
		t.Errorf("got the operator's lists %v and %v, want them unchanged", def.AllowedModules, def.BlockedModules)
	}
}

// A request may enable the network for hosts that the operator allows.
func TestAcceptHostsWithinTheOperatorsList(t *testing.T) {
	on := ceiling()
	on.EnableNetworkAccess, on.AllowedHosts = true, []string{"*", "10.1.0.0/16:5000"}
	p, err := policy.Accept(
		[]byte(
			`{"enable_network_access": true, "allowed_hosts": ["Example.ORG", "*.example.com:443", "10.1.2.3:5000", "example.org"]}`,
		),
		policy.Default(),
		on,
		nil,
		false,
	)
	if err != nil || !p.EnableNetworkAccess ||
		!slices.Equal(p.AllowedHosts, []string{"example.org", "*.example.com:443", "10.1.2.3:5000"}) {
		t.Errorf("got %+v, %v; want the network with three hosts", p, err)
	}
	if p, err := policy.Accept(nil, policy.Default(), on, nil, false); err != nil || p.EnableNetworkAccess {
		t.Errorf("without a config: got %+v, %v; want no network", p, err)
	}
	networked := policy.Default()
	networked.EnableNetworkAccess, networked.AllowedHosts = true, []string{"example.org"}
	if p, err := policy.Accept(nil, networked, ceiling(), nil, false); err != nil || p.EnableNetworkAccess {
		t.Errorf("a default with the network below a ceiling without it: got %+v, %v; want no network", p, err)
	}
	for raw, want := range map[string]policy.FieldError{
		`{"enable_network_access": true}`:                                        {Field: "allowed_hosts", Kind: policy.KindInvalid},
		`{"enable_network_access": true, "allowed_hosts": ["http://a.example"]}`: {Field: "allowed_hosts", Kind: policy.KindInvalid},
		`{"enable_network_access": true, "allowed_hosts": ["a.example:22"]}`:     {Field: "allowed_hosts", Kind: policy.KindForbidden},
		`{"enable_network_access": true, "allowed_hosts": ["10.1.2.3"]}`:         {Field: "allowed_hosts", Kind: policy.KindForbidden},
		`{"allowed_hosts": ["10.0.0.0/8:5000"]}`:                                 {Field: "allowed_hosts", Kind: policy.KindForbidden},
	} {
		_, err := policy.Accept([]byte(raw), policy.Default(), on, nil, true)
		var field *policy.FieldError
		if !errors.As(err, &field) || field.Field != want.Field || field.Kind != want.Kind {
			t.Errorf("%s: got %v, want a FieldError of %s, kind %s", raw, err, want.Field, want.Kind)
		}
	}
}
