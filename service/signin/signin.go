// Package signin finds the person behind a request that has no key: whom an OpenID Connect provider names in a token,
// or a trusted proxy in a header.
//
//	p, err := signin.NewProvider(signin.Config{Issuer: "https://login.example.com", ClientID: "glasshouse", ...})
//	go p.Run(ctx)                                            // reads the provider's keys now and again
//	person, err := p.Person(ctx, token)                      // of the header Authorization
//	address, err := p.AuthCodeURL(ctx, flow, callback)       // where a browser signs in ...
//	person, err = p.Exchange(ctx, flow, code, callback)      // ... and what it comes back with
//
// The package keeps no state about persons. Package service makes the sandbox.Key of a Person, so that limits,
// ownership, history and the audit log treat persons as they treat keys.
package signin

import (
	"time"

	"glasshouse/sandbox"
)

// The sources of a Person.
const (
	SourceOIDC  = "oidc"
	SourceProxy = "proxy"
)

// Person is a user whom somebody else than the service has authenticated.
type Person struct {
	Source    string // SourceOIDC or SourceProxy
	User      string
	Role      sandbox.Role
	ExpiresAt *time.Time // of the token; nil: with the request
}

// Roles gives the values of a claim or a header a role.
type Roles struct {
	ByValue map[string]sandbox.Role // a person with several values gets the role with the most rights
	Default sandbox.Role            // of a person without any of these values; "" refuses the person
}

// ranks orders the roles by their rights.
var ranks = map[sandbox.Role]int{sandbox.RoleAgent: 1, sandbox.RoleDeveloper: 2, sandbox.RoleAdmin: 3}

// of returns the role for some values. It returns FaultForbidden if none of them has one and there is no default.
func (r Roles) of(user, where string, values []string) (sandbox.Role, error) {
	best := r.Default
	for _, value := range values {
		if role := r.ByValue[value]; ranks[role] > ranks[best] {
			best = role
		}
	}
	if best == "" {
		return "", sandbox.Errorf(sandbox.FaultForbidden, "%s has no role here: none of the values of %s is in "+
			"--sign-in-roles of the service, and --sign-in-default-role is none", user, where)
	}
	return best, nil
}
