package policy

import (
	"slices"
	"testing"
)

// Each module is either allowed or blocked, and an operator may change that.
func TestOperatorModules(t *testing.T) {
	for _, m := range allowedModules {
		if _, blocked := blockedModules[m]; blocked {
			t.Errorf("%s is allowed and blocked", m)
		}
	}
	p := Default()
	p.OperatorModules = []string{"os", "torch"}
	r := Rules(p, nil)
	for module, want := range map[string]string{
		"os": "allowed", "os.path": "allowed", "torch.nn": "allowed", "subprocess": "blocked", "json": "allowed",
	} {
		if got := verdict(r, module); got != want {
			t.Errorf("import %s: got %s, want %s", module, got, want)
		}
	}
	p.Profile = ProfileStrict
	p.OperatorModules = []string{"pathlib"}
	if got := verdict(Rules(p, nil), "pathlib"); got != "allowed" {
		t.Errorf("strict, pathlib allowed by the operator: got %s", got)
	}
	p.OperatorModules = []string{"*"}
	if got := verdict(Rules(p, nil), "subprocess"); got != "allowed" {
		t.Errorf("any module allowed by the operator: got %s", got)
	}
	p.BlockedModules = []string{"subprocess"}
	if got := verdict(Rules(p, nil), "subprocess"); got != "blocked by the request" {
		t.Errorf("any module allowed, one blocked: got %s", got)
	}
	def := Default()
	def.OperatorModules, def.BlockedModules = []string{"os"}, []string{"requests"}
	accepted, err := Accept([]byte(`{"allowed_modules": ["os", "json"]}`), def, Policy{}, Environments{"default": nil}, false)
	if err != nil || verdict(Rules(accepted, nil), "os") != "allowed" || verdict(Rules(accepted, nil), "sys") == "allowed" ||
		!slices.Equal(accepted.BlockedModules, []string{"requests"}) {
		t.Errorf("a config that narrows the operator's modules: got %+v, %v", accepted, err)
	}
	if _, err := Accept([]byte(`{"-": ["os"]}`), def, Policy{}, Environments{"default": nil}, false); err == nil {
		t.Error("a config with the key \"-\" was accepted")
	}
}
