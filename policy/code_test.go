package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// verdict returns how the guest applies the rules to an import. The most specific name decides. A module that is
// neither allowed nor blocked is not allowed.
func verdict(r CodeRules, module string) string {
	if !r.Enabled {
		return "allowed"
	}
	for name := module; name != ""; name, _ = cutLast(name) {
		if slices.Contains(r.BlockedByRequest, name) {
			return "blocked by the request"
		}
	}
	for name := module; name != ""; name, _ = cutLast(name) {
		if slices.Contains(r.Allowed, name) {
			return "allowed"
		}
		if _, ok := r.Blocked[name]; ok {
			return "blocked"
		}
	}
	if slices.Contains(r.Allowed, "*") {
		return "allowed"
	}
	return "not allowed"
}

// cutLast splits a dotted name at its last dot.
func cutLast(name string) (string, string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

func TestRulesDecideImportsAndCalls(t *testing.T) {
	with := func(change func(*Policy)) Policy {
		p := Default()
		change(&p)
		return p
	}
	analyst := Default()
	strict := with(func(p *Policy) { p.Profile = ProfileStrict })
	noFiles := with(func(p *Policy) { p.EnableFileAccess = false })
	unrestricted := with(func(p *Policy) { p.Profile = ProfileUnrestricted; p.EnableFileAccess = false })
	only := with(func(p *Policy) { p.AllowedModules = []string{"json", "scipy.stats", "urllib", "os", "secrets"} })
	none := with(func(p *Policy) { p.AllowedModules = []string{"os"} })
	without := with(func(p *Policy) { p.BlockedModules = []string{"requests", "scipy.stats"} })
	bare := with(func(p *Policy) { p.Profile = ProfileUnrestricted; p.BlockedModules = []string{"os"} })
	operator := with(func(p *Policy) { p.OperatorModules = []string{"os", "bs5"} })
	anyModule := with(func(p *Policy) { p.OperatorModules = []string{"*"} })
	bareOnly := with(func(p *Policy) { p.Profile = ProfileUnrestricted; p.AllowedModules = []string{"os"} })

	for _, c := range []struct {
		name   string
		policy Policy
		module string
		want   string
	}{
		{"analyst", analyst, "json", "allowed"},
		{"analyst", analyst, "pandas.api.types", "allowed"},
		{"analyst", analyst, "concurrent.futures", "allowed"},
		{"analyst", analyst, "__future__", "allowed"},
		{"analyst", analyst, "processor_pipeline", "allowed"},
		{"analyst", analyst, "urllib.parse", "allowed"},
		{"analyst", analyst, "pathlib", "allowed"},
		{"analyst", analyst, "urllib", "blocked"},
		{"analyst", analyst, "urllib.request", "blocked"},
		{"analyst", analyst, "os", "blocked"},
		{"analyst", analyst, "os.path", "allowed"},
		{"analyst", analyst, "os.fork", "blocked"},
		{"analyst", analyst, "sys", "blocked"},
		{"analyst", analyst, "subprocess", "blocked"},
		{"analyst", analyst, "importlib.util", "blocked"},
		{"analyst", analyst, "socket", "blocked"},
		{"analyst", analyst, "ctypes", "blocked"},
		{"analyst", analyst, "http.client", "blocked"},
		{"analyst", analyst, "smtplib", "blocked"},
		{"analyst", analyst, "secrets", "allowed"},
		{"analyst", analyst, "bs5", "not allowed"},
		{"strict", strict, "json", "allowed"},
		{"strict", strict, "pathlib", "blocked"},
		{"strict", strict, "zipfile", "blocked"},
		{"strict", strict, "sqlite3", "blocked"},
		{"no files", noFiles, "pathlib", "blocked"},
		{"unrestricted", unrestricted, "os", "allowed"},
		{"unrestricted", unrestricted, "pathlib", "allowed"},
		{"only", only, "json", "allowed"},
		{"only", only, "scipy.stats", "allowed"},
		{"only", only, "scipy", "not allowed"},
		{"only", only, "pandas", "not allowed"},
		{"only", only, "urllib.parse", "allowed"},
		{"only", only, "urllib.request", "blocked"},
		{"only", only, "os", "blocked"},
		{"only", only, "secrets", "allowed"},
		{"only", only, "html", "not allowed"},
		{"only", only, "__future__", "allowed"},
		{"nothing left", none, "json", "not allowed"},
		{"nothing left", none, "os", "blocked"},
		{"without", without, "requests", "blocked by the request"},
		{"without", without, "requests.adapters", "blocked by the request"},
		{"without", without, "scipy.stats", "blocked by the request"},
		{"without", without, "scipy", "allowed"},
		{"unrestricted without", bare, "os.path", "blocked by the request"},
		{"unrestricted without", bare, "sys", "allowed"},
		{"operator", operator, "os.fork", "allowed"},
		{"operator", operator, "bs5", "allowed"},
		{"operator", operator, "sys", "blocked"},
		{"any", anyModule, "sys", "allowed"},
		{"any", anyModule, "bs5", "allowed"},
		{"unrestricted only", bareOnly, "os", "allowed"},
		{"unrestricted only", bareOnly, "sys", "not allowed"},
	} {
		if got := verdict(Rules(c.policy, nil), c.module); got != c.want {
			t.Errorf("%s: import %s: got %s, want %s", c.name, c.module, got, c.want)
		}
	}

	for module, want := range map[string]string{"bs5": "allowed", "psycopg": "allowed", "sys": "blocked"} {
		if got := verdict(Rules(strict, []string{"bs5", "psycopg", "sys"}), module); got != want {
			t.Errorf("added to the environment: import %s: got %s, want %s", module, got, want)
		}
	}
	if Rules(analyst, nil).AllowedOnly || !Rules(only, nil).AllowedOnly {
		t.Error("AllowedOnly: got the same with and without allowed_modules, want it set with them only")
	}

	for _, c := range []struct {
		name      string
		policy    Policy
		call, key string
		blocked   bool
	}{
		{"analyst", analyst, "eval", "", false},
		{"analyst", analyst, "exec", "", true},
		{"strict", strict, "eval", "", true},
		{"analyst", analyst, "__import__", "", true},
		{"analyst", analyst, "input", "", true},
		{"analyst", analyst, "globals", "", false},
		{"analyst", analyst, "vars", "", false},
		{"strict", strict, "locals", "", true},
		{"analyst", analyst, "open", "", false},
		{"analyst", analyst, "print", "", false},
		{"strict", strict, "open", "", true},
		{"no files", noFiles, "open", "enable_file_access", true},
		{"unrestricted", unrestricted, "eval", "", false},
		{"unrestricted without", bare, "eval", "", false},
	} {
		r := Rules(c.policy, nil)
		hint, blocked := r.Calls[c.call]
		blocked = blocked && r.Enabled
		if blocked != c.blocked || blocked && (hint == "" || r.Keys[c.call] != c.key) {
			t.Errorf("%s: %s(): got blocked %v, hint %q, key %q; want blocked %v, key %q",
				c.name, c.call, blocked, hint, r.Keys[c.call], c.blocked, c.key)
		}
	}
}

// A change of one policy's rules must not change those of another.
func TestRulesShareNoMemory(t *testing.T) {
	strict := Default()
	strict.Profile = ProfileStrict
	first := Rules(strict, nil)
	first.Allowed[0], first.Blocked["json"], first.Calls["print"] = "x", "x", "x"
	second := Rules(Default(), nil)
	if verdict(second, "json") != "allowed" || verdict(second, "pathlib") != "allowed" || second.Calls["open"] != "" ||
		second.Calls["print"] != "" {
		t.Errorf("after a change of other rules: got %+v, want those of the default policy", second)
	}
}

func TestEveryBlockedNameHasAReplacement(t *testing.T) {
	r := Rules(Default(), nil)
	for name, instead := range r.Blocked {
		if instead == "" || slices.Contains(r.Allowed, name) {
			t.Errorf("module %s: got replacement %q, also allowed: %v; want a replacement and false",
				name, instead, slices.Contains(r.Allowed, name))
		}
	}
	for name, instead := range r.Calls {
		if instead == "" {
			t.Errorf("call %s: got no replacement", name)
		}
	}
}

func TestRulesAreListsAndObjectsInJSON(t *testing.T) {
	for _, profile := range []Profile{ProfileAnalyst, ProfileStrict, ProfileUnrestricted} {
		body, err := json.Marshal(Rules(Policy{Profile: profile}, nil))
		if err != nil || strings.Contains(string(body), "null") {
			t.Errorf("%s: got %s, %v; want no null", profile, body, err)
		}
	}
}
