package policy_test

import (
	"errors"
	"slices"
	"testing"

	"glasshouse/policy"
)

func ceiling() policy.Policy {
	c := policy.Default()
	c.MaxMemoryMB, c.MaxExecutionTime = 512, 120
	return c
}

func TestAcceptNamesTheKey(t *testing.T) {
	for raw, want := range map[string]struct {
		field string
		why   policy.Why
	}{
		`{"max_memory_mb": 513}`:             {"max_memory_mb", policy.WhyInvalid},
		`{"max_memory_mb": 63}`:              {"max_memory_mb", policy.WhyInvalid},
		`{"max_memory_mb": 1e400}`:           {"max_memory_mb", policy.WhyInvalid},
		`{"max_memory_mb": 64.5}`:            {"max_memory_mb", policy.WhyInvalid},
		`{"max_memory_mb": null}`:            {"max_memory_mb", policy.WhyInvalid},
		`{"MAX_MEMORY_MB": 64}`:              {"MAX_MEMORY_MB", policy.WhyInvalid},
		`{"colour": 1}`:                      {"colour", policy.WhyInvalid},
		`{"profile": "root"}`:                {"profile", policy.WhyInvalid},
		`{"profile": "compat"}`:              {"profile", policy.WhyInvalid},
		`{"profile": "unrestricted"}`:        {"profile", policy.WhyForbidden},
		`{"allowed_modules": ["os"]}`:        {"allowed_modules", policy.WhyForbidden},
		`{"allowed_modules": ["torch"]}`:     {"allowed_modules", policy.WhyForbidden},
		`{"allowed_modules": "json"}`:        {"allowed_modules", policy.WhyInvalid},
		`{"enable_network_access": true}`:    {"enable_network_access", policy.WhyForbidden},
		`{"allowed_hosts": ["example.com"]}`: {"allowed_hosts", policy.WhyForbidden},
		`[]`:                                 {"config", policy.WhyInvalid},
	} {
		_, err := policy.Accept([]byte(raw), policy.Default(), ceiling(), nil, false)
		var field *policy.FieldError
		if !errors.As(err, &field) || field.Field != want.field || field.Why != want.why {
			t.Errorf("%s: %#v", raw, err)
		}
	}
}

func TestAcceptKeepsWhatIsNotAsked(t *testing.T) {
	for _, raw := range []string{``, `null`, `{}`, `{"max_rows": 7, "profile": "strict", "allowed_modules": ["json", "numpy.linalg"]}`} {
		p, err := policy.Accept([]byte(raw), policy.Default(), ceiling(), nil, false)
		if err != nil || p.MaxMemoryMB != 256 || p.Lifetime != 3600 || !p.EnableDebugging {
			t.Errorf("%s: %+v, %v", raw, p, err)
		}
		if raw != "" && len(raw) > 4 &&
			(p.MaxRows != 7 || p.Profile != policy.ProfileStrict || len(p.AllowedModules) != 2) {
			t.Errorf("%s: %+v", raw, p)
		}
	}
	if p, err := policy.Accept([]byte(`{"profile": "unrestricted"}`), policy.Default(), ceiling(), nil, true); err != nil ||
		p.Profile != policy.ProfileUnrestricted {
		t.Errorf("an admin's: %v", err)
	}
}

// A request tightens the operator's rules and never loosens them, nor writes into
// them.
func TestAcceptNeverLoosens(t *testing.T) {
	def := policy.Default()
	def.Profile, def.EnableFileAccess, def.EnableDebugging = policy.ProfileStrict, false, false
	def.AllowedModules, def.BlockedModules = []string{"json", "math", "numpy"}, []string{"requests", "aiohttp"}
	for _, raw := range []string{`{"profile": "analyst"}`, `{"enable_file_access": true}`, `{"enable_debugging": true}`, `{"allowed_modules": ["pandas"]}`} {
		if _, err := policy.Accept([]byte(raw), def, ceiling(), nil, false); err == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
	p, err := policy.Accept([]byte(`{"allowed_modules": [], "blocked_modules": ["csv"]}`), def, ceiling(), nil, false)
	if err != nil || !slices.Equal(p.AllowedModules, def.AllowedModules) ||
		!slices.Contains(p.BlockedModules, "requests") ||
		!slices.Contains(p.BlockedModules, "csv") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := policy.Accept([]byte(`{"allowed_modules": ["math"], "blocked_modules": ["csv", "json"]}`), def, ceiling(), nil, false); err != nil {
		t.Error(err)
	}
	if !slices.Equal(def.AllowedModules, []string{"json", "math", "numpy"}) ||
		!slices.Equal(def.BlockedModules, []string{"requests", "aiohttp"}) {
		t.Errorf("a request wrote into the operator's lists: %v %v", def.AllowedModules, def.BlockedModules)
	}
}

// The network is asked for, with hosts that the operator allows.
func TestAcceptHosts(t *testing.T) {
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
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := policy.Accept(nil, policy.Default(), on, nil, false); err != nil || p.EnableNetworkAccess {
		t.Errorf("nobody asked for the network: %+v, %v", p, err)
	}
	for raw, want := range map[string]policy.FieldError{
		`{"enable_network_access": true}`:                                        {Field: "allowed_hosts", Why: policy.WhyInvalid},
		`{"enable_network_access": true, "allowed_hosts": ["http://a.example"]}`: {Field: "allowed_hosts", Why: policy.WhyInvalid},
		`{"enable_network_access": true, "allowed_hosts": ["a.example:22"]}`:     {Field: "allowed_hosts", Why: policy.WhyForbidden},
		`{"enable_network_access": true, "allowed_hosts": ["10.1.2.3"]}`:         {Field: "allowed_hosts", Why: policy.WhyForbidden},
		`{"allowed_hosts": ["10.0.0.0/8:5000"]}`:                                 {Field: "allowed_hosts", Why: policy.WhyForbidden},
	} {
		_, err := policy.Accept([]byte(raw), policy.Default(), on, nil, true)
		var field *policy.FieldError
		if !errors.As(err, &field) || field.Field != want.Field || field.Why != want.Why {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
