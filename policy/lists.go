package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// acceptModules checks the module lists of a config against those of the operator and of the profile. It does not
// check the operator's own lists.
func acceptModules(p *Policy, def Policy, added []string, isGiven func(string) bool) error {
	allowed := append(withAdded(added), def.OperatorModules...)
	for _, m := range p.BlockedModules {
		if isGiven("blocked_modules") && !IsModule(m) {
			return &FieldError{
				"blocked_modules",
				fmt.Sprintf("%q is not a module name such as scipy.stats", m),
				KindInvalid,
			}
		}
	}
	if isGiven("allowed_modules") {
		for _, m := range p.AllowedModules {
			if !IsModule(m) {
				return &FieldError{
					"allowed_modules",
					fmt.Sprintf("%q is not a module name such as scipy.stats", m),
					KindInvalid,
				}
			}
			_, blocked := blockedModules[m]
			byProfile := p.Profile == ProfileUnrestricted || slices.Contains(allowed, "*") ||
				(!blocked || slices.Contains(allowed, m)) && covers(allowed, m)
			if !byProfile || len(def.AllowedModules) > 0 && !covers(def.AllowedModules, m) {
				return &FieldError{
					"allowed_modules",
					m + " is not among the modules that the profile and the operator allow",
					KindForbidden,
				}
			}
		}
	}
	if len(p.AllowedModules) == 0 { // an empty list means the profile's modules, within the operator's list
		p.AllowedModules = slices.Clone(def.AllowedModules)
	}
	for _, m := range def.BlockedModules {
		if !slices.Contains(p.BlockedModules, m) {
			p.BlockedModules = append(slices.Clip(p.BlockedModules), m)
		}
	}
	return nil
}

// CheckModules returns a *FieldError unless allowed and blocked may restrict a key: each allowed module must be one
// that def or an environment allows.
func CheckModules(allowed, blocked []string, def Policy, environments Environments) error {
	p := def
	p.AllowedModules, p.BlockedModules = allowed, blocked
	added := slices.Concat(slices.Collect(maps.Values(environments))...)
	return acceptModules(&p, def, added, func(string) bool { return true })
}

// WithModules returns the policy with the lists of a key: only the allowed modules, if there are any, and not the
// blocked ones.
func (p Policy) WithModules(allowed, blocked []string) Policy {
	if len(allowed) > 0 {
		p.AllowedModules = allowed
	}
	p.BlockedModules = append(slices.Clip(p.BlockedModules), blocked...) // not nil, which would be null in JSON
	return p
}

// IsModule reports whether a name can be imported: identifiers joined by dots. A rule with any other name would
// never match.
func IsModule(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' || strings.ContainsFunc(part, func(r rune) bool {
			return r < 0x80 && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return false
		}
	}
	return true
}

// acceptHosts checks the network settings of a config against the operator's, which are in the ceiling.
func acceptHosts(p *Policy, ceiling Policy, isGiven func(string) bool) error {
	hosts, err := ParseHosts(p.AllowedHosts)
	if err != nil {
		return err
	}
	p.AllowedHosts = hosts.List()
	if !ceiling.EnableNetworkAccess {
		const off = "the operator has disabled the network for all sandboxes"
		switch {
		case p.EnableNetworkAccess && isGiven("enable_network_access"):
			return &FieldError{"enable_network_access", off, KindForbidden}
		case len(p.AllowedHosts) > 0 && isGiven("allowed_hosts"):
			return &FieldError{"allowed_hosts", off, KindForbidden}
		}
		p.EnableNetworkAccess = false
		return nil
	}
	operators, err := ParseHosts(ceiling.AllowedHosts)
	if err != nil {
		return err
	}
	if entry := operators.FirstUncovered(hosts); entry != "" {
		return &FieldError{"allowed_hosts", entry + " is not among the hosts that the operator allows", KindForbidden}
	}
	if p.EnableNetworkAccess && len(p.AllowedHosts) == 0 {
		return &FieldError{"allowed_hosts", "enable_network_access needs at least one host here", KindInvalid}
	}
	return nil
}
