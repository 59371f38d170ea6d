package policy

import (
	"fmt"
	"slices"
	"strings"
)

// acceptModules holds the module lists to the operator's and the profile's.
// What the operator allows or blocks is the operator's affair: only what was
// asked for is judged.
func acceptModules(p *Policy, def Policy, added []string, asked func(string) bool) error {
	allowed := withAdded(added)
	for _, m := range p.BlockedModules {
		if asked("blocked_modules") && !isModule(m) {
			return &FieldError{
				"blocked_modules",
				fmt.Sprintf("%q is not the name of a module, as in scipy.stats", m),
				WhyInvalid,
			}
		}
	}
	if asked("allowed_modules") {
		for _, m := range p.AllowedModules {
			if !isModule(m) {
				return &FieldError{
					"allowed_modules",
					fmt.Sprintf("%q is not the name of a module, as in scipy.stats", m),
					WhyInvalid,
				}
			}
			_, blocked := blockedModules[m]
			byProfile := p.Profile == ProfileUnrestricted ||
				(!blocked || slices.Contains(allowed, m)) && covers(allowed, m)
			if !byProfile || len(def.AllowedModules) > 0 && !covers(def.AllowedModules, m) {
				return &FieldError{
					"allowed_modules",
					m + " is not among the modules that the profile and the operator allow",
					WhyForbidden,
				}
			}
		}
	}
	if len(p.AllowedModules) == 0 { // "those of the profile" must not mean more than the operator's
		p.AllowedModules = slices.Clone(def.AllowedModules)
	}
	for _, m := range def.BlockedModules {
		if !slices.Contains(p.BlockedModules, m) {
			p.BlockedModules = append(slices.Clip(p.BlockedModules), m)
		}
	}
	return nil
}

// isModule says whether a name can stand after import: words joined by dots.
// A name with a slip in it would be a rule that nothing ever meets.
func isModule(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' || strings.ContainsFunc(part, func(r rune) bool {
			return r < 0x80 && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			return false
		}
	}
	return true
}

// acceptHosts holds the network to the operator's, which is the ceiling's.
func acceptHosts(p *Policy, ceiling Policy, asked func(string) bool) error {
	hosts, err := ParseHosts(p.AllowedHosts)
	if err != nil {
		return err
	}
	p.AllowedHosts = hosts.List()
	if !ceiling.EnableNetworkAccess {
		const off = "the operator has the network off for all sandboxes"
		switch {
		case p.EnableNetworkAccess && asked("enable_network_access"):
			return &FieldError{"enable_network_access", off, WhyForbidden}
		case len(p.AllowedHosts) > 0 && asked("allowed_hosts"):
			return &FieldError{"allowed_hosts", off, WhyForbidden}
		}
		p.EnableNetworkAccess = false
		return nil
	}
	operators, err := ParseHosts(ceiling.AllowedHosts)
	if err != nil {
		return err
	}
	if beyond := operators.Lacks(hosts); beyond != "" {
		return &FieldError{"allowed_hosts", beyond + " is not within what the operator allows", WhyForbidden}
	}
	if p.EnableNetworkAccess && len(p.AllowedHosts) == 0 {
		return &FieldError{"allowed_hosts", "with enable_network_access, name the hosts that it is for", WhyInvalid}
	}
	return nil
}
