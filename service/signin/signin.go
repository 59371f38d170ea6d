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
	"net/http"
	"slices"
	"strings"
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
	Databases []string   // that the person may use; nil: all
	ExpiresAt *time.Time // of the token; nil: with the request
}

// AllDatabases stands for all databases in Rights.
const AllDatabases = "*"

// Rights gives the values of a claim or a header a role, and databases.
type Rights struct {
	Roles   map[string]sandbox.Role // a person with several values gets the role with the most rights
	Default sandbox.Role            // of a person without any of these values; "" refuses the person
	// Databases are those of a value; a person may use those of all values, and is refused without any. If it is empty,
	// everyone may use all.
	Databases map[string][]string
}

// IsHTTPS reports whether a browser reaches the service by HTTPS, so that it keeps a cookie for HTTPS only. A proxy at
// publicURL may terminate TLS; publicURL is "" if there is none.
func IsHTTPS(r *http.Request, publicURL string) bool {
	return r.TLS != nil || strings.HasPrefix(publicURL, "https://")
}

// ranks orders the roles by their rights.
var ranks = map[sandbox.Role]int{sandbox.RoleAgent: 1, sandbox.RoleDeveloper: 2, sandbox.RoleAdmin: 3}

// person returns a person with the rights of some values. It returns FaultForbidden if none of them has a role and
// there is no default, or if none of them has a database.
func (r Rights) person(source, user, where string, values []string) (Person, error) {
	p := Person{Source: source, User: user, Role: r.Default}
	for _, value := range values {
		if role := r.Roles[value]; ranks[role] > ranks[p.Role] {
			p.Role = role
		}
		p.Databases = append(p.Databases, r.Databases[value]...)
	}
	if p.Role == "" {
		return Person{}, sandbox.Errorf(sandbox.FaultForbidden, "%s has no role here: none of the values of %s is in "+
			"--sign-in-roles of the service, and --sign-in-default-role is none", user, where)
	}
	if len(r.Databases) > 0 && len(p.Databases) == 0 {
		return Person{}, sandbox.Errorf(sandbox.FaultForbidden, "%s may use no database here: none of the values of "+
			"%s is in --sign-in-databases of the service", user, where)
	}
	if slices.Contains(p.Databases, AllDatabases) {
		p.Databases = nil
	}
	return p, nil
}
