package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

type signInSettings struct {
	publicURL   string
	issuer      string
	clientID    string
	secretFile  string
	scopes      string
	audiences   string
	userClaim   string
	roleClaim   string
	sessionAge  time.Duration
	roles       roleMap
	defaultRole string
	databases   databaseMap
	userHeader  string
	roleHeader  string
	addresses   string
}

func (s *signInSettings) register(f *pflag.FlagSet) {
	f.StringVar(&s.publicURL, "public-url", "",
		"`URL` at which browsers reach the service, if a proxy is in front of it; empty: that of each request")
	f.StringVar(&s.issuer, "oidc-issuer", "",
		"`URL` of the OpenID Connect provider with which people sign in, and whose tokens the API accepts; empty: "+
			"keys only")
	f.StringVar(&s.clientID, "oidc-client-id", "", "`ID` of this service at the provider")
	f.StringVar(&s.secretFile, "oidc-client-secret-file", "",
		"`FILE` with the secret of this service at the provider; empty: it is a public client")
	f.StringVar(&s.scopes, "oidc-scopes", "profile,email",
		"comma-separated `SCOPES` that a sign-in asks for, in addition to openid")
	f.StringVar(&s.audiences, "oidc-audiences", "",
		"comma-separated `AUDIENCES` of tokens that the API accepts, in addition to the client ID")
	f.StringVar(&s.userClaim, "oidc-user-claim", "sub",
		"`CLAIM` that names the user; people must not be able to change it themselves")
	f.StringVar(&s.roleClaim, "oidc-role-claim", "",
		"`CLAIM` whose values --sign-in-roles gives a role, such as groups or realm_access.roles")
	f.DurationVar(&s.sessionAge, "oidc-session-age", 8*time.Hour,
		"`TIME` after which a person must sign in to the pages again, also with a sign-in link")
	f.Var(&s.roles, "sign-in-roles",
		"roles of the values of --oidc-role-claim or --proxy-role-header, as `VALUE=ROLE`; separated by commas, or "+
			"given repeatedly; ROLE is agent, developer or admin, and the one with the most rights counts")
	f.StringVar(&s.defaultRole, "sign-in-default-role", "none",
		"`ROLE` of people without such a value: agent, developer or admin; none: they are refused")
	f.Var(&s.databases, "sign-in-databases",
		"databases of the values of --oidc-role-claim or --proxy-role-header, as `VALUE=DATABASE`; separated by "+
			"commas, or given repeatedly; a person may use those of all their values, and is refused without one; "+
			"DATABASE is * for all; empty: everyone may use all")
	f.StringVar(&s.userHeader, "proxy-user-header", "",
		"`HEADER` in which a proxy in front of the service names the user, such as X-Forwarded-User; empty: none")
	f.StringVar(&s.roleHeader, "proxy-role-header", "",
		"`HEADER` in which the proxy lists values, separated by commas, to which --sign-in-roles gives a role")
	f.StringVar(&s.addresses, "proxy-addresses", "",
		"comma-separated `ADDRESSES` of the proxy, such as 10.0.0.7 or 10.0.1.0/28; the headers of others are ignored")
}

// roleMap is the value of --sign-in-roles.
type roleMap map[string]sandbox.Role

// Type returns the placeholder for the flag's value in the help.
func (m *roleMap) Type() string { return "VALUE=ROLE" }

func (m *roleMap) String() string { return formatMap(*m) }

// Set adds the roles of a comma-separated list.
func (m *roleMap) Set(text string) error {
	if *m == nil {
		*m = roleMap{}
	}
	for item := range strings.SplitSeq(text, ",") {
		last := strings.LastIndex(item, "=")
		role, err := parseRole(item[last+1:])
		if last < 1 || err != nil {
			return fmt.Errorf("%q must be VALUE=ROLE, and ROLE agent, developer or admin", item)
		}
		(*m)[strings.TrimSpace(item[:last])] = role
	}
	return nil
}

// databaseMap is the value of --sign-in-databases.
type databaseMap map[string][]string

// Type returns the placeholder for the flag's value in the help.
func (m *databaseMap) Type() string { return "VALUE=DATABASE" }

func (m *databaseMap) String() string {
	var all []string
	for _, value := range slices.Sorted(maps.Keys(*m)) {
		for _, database := range (*m)[value] {
			all = append(all, value+"="+database)
		}
	}
	return strings.Join(all, ",")
}

// Set adds the databases of a comma-separated list.
func (m *databaseMap) Set(text string) error {
	if *m == nil {
		*m = databaseMap{}
	}
	for item := range strings.SplitSeq(text, ",") {
		last := strings.LastIndex(item, "=")
		if last < 1 || last == len(item)-1 {
			return fmt.Errorf("%q must be VALUE=DATABASE", item)
		}
		value := strings.TrimSpace(item[:last])
		(*m)[value] = append((*m)[value], strings.TrimSpace(item[last+1:]))
	}
	return nil
}

// checkDatabases returns an error if --sign-in-databases names a database that the service does not have.
func (s *signInSettings) checkDatabases(names []string) error {
	for _, list := range s.databases {
		for _, name := range list {
			if name != signin.AllDatabases && !slices.Contains(names, name) {
				return fmt.Errorf("--sign-in-databases: there is no database %q; the databases are %s, and * for all",
					name, strings.Join(names, ", "))
			}
		}
	}
	return nil
}

func parseRole(text string) (sandbox.Role, error) {
	role := sandbox.Role(text)
	switch role {
	case sandbox.RoleAgent, sandbox.RoleDeveloper, sandbox.RoleAdmin:
		return role, nil
	}
	return "", fmt.Errorf("the role %q must be agent, developer or admin", text)
}

// rights returns the rights of people. source is the flag of what has the values, and its value.
func (s *signInSettings) rights(flag, source string) (signin.Rights, error) {
	out := signin.Rights{Roles: s.roles, Databases: s.databases}
	if s.defaultRole != "none" {
		role, err := parseRole(s.defaultRole)
		if err != nil {
			return out, fmt.Errorf("--sign-in-default-role: %w, or none", err)
		}
		out.Default = role
	}
	switch {
	case source == "" && out.Default == "":
		return out, fmt.Errorf("nobody could sign in: set %s and --sign-in-roles, or --sign-in-default-role", flag)
	case source == "" && len(s.databases) > 0:
		return out, fmt.Errorf("--sign-in-databases needs %s, which has the values", flag)
	case source != "" && len(s.roles) == 0:
		return out, fmt.Errorf("%s needs --sign-in-roles, such as --sign-in-roles data-team=developer", flag)
	}
	return out, nil
}

// provider returns the identity provider, without a log, or nil. It reads the secret.
func (s *signInSettings) provider() (*signin.Config, error) {
	if s.issuer == "" {
		if s.clientID != "" || s.secretFile != "" || s.roleClaim != "" {
			return nil, errors.New("--oidc-client-id, --oidc-client-secret-file and --oidc-role-claim need " +
				"--oidc-issuer")
		}
		return nil, nil
	}
	if s.clientID == "" {
		return nil, errors.New("--oidc-issuer needs --oidc-client-id: register this service at the provider")
	}
	if s.userClaim == "" {
		return nil, errors.New("--oidc-user-claim must name a claim")
	}
	rights, err := s.rights("--oidc-role-claim", s.roleClaim)
	if err != nil {
		return nil, err
	}
	secret := ""
	if s.secretFile != "" {
		raw, err := os.ReadFile(s.secretFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-client-secret-file: %w", err)
		}
		if secret = strings.TrimSpace(string(raw)); secret == "" {
			return nil, fmt.Errorf("--oidc-client-secret-file: %s is empty", s.secretFile)
		}
	}
	return &signin.Config{
		Issuer: s.issuer, ClientID: s.clientID, ClientSecret: secret, Scopes: splitList(s.scopes),
		Audiences: splitList(s.audiences), UserClaim: s.userClaim, RoleClaim: s.roleClaim, Rights: rights,
	}, nil
}

// proxy returns the trusted proxy, or nil.
func (s *signInSettings) proxy() (*signin.Proxy, error) {
	if s.userHeader == "" {
		if s.roleHeader != "" || s.addresses != "" {
			return nil, errors.New("--proxy-role-header and --proxy-addresses need --proxy-user-header")
		}
		return nil, nil
	}
	rights, err := s.rights("--proxy-role-header", s.roleHeader)
	if err != nil {
		return nil, err
	}
	out := &signin.Proxy{UserHeader: s.userHeader, RoleHeader: s.roleHeader, Rights: rights}
	for _, text := range splitList(s.addresses) {
		prefix, err := netip.ParsePrefix(text)
		if address, isAddress := netip.ParseAddr(text); isAddress == nil {
			address = address.Unmap()
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || prefix.Bits() == 0 || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("--proxy-addresses: %q must be an address such as 10.0.0.7, or a range such as "+
				"10.0.1.0/28 that does not have all addresses", text)
		}
		out.Addresses = append(out.Addresses, prefix)
	}
	if len(out.Addresses) == 0 {
		return nil, errors.New("--proxy-user-header needs --proxy-addresses: everyone else could name any user")
	}
	return out, nil
}

// check returns an error if the settings contradict each other. databases are the names of those of the service.
func (s *signInSettings) check(databases []string) error {
	if u, err := url.Parse(s.publicURL); s.publicURL != "" && (err != nil || u.Host == "" || u.RawQuery != "" ||
		strings.Trim(u.Path, "/") != "" || u.Scheme != "https" && u.Scheme != "http") {
		return fmt.Errorf("--public-url %q must be a URL without a path, such as https://glasshouse.example.com",
			s.publicURL)
	}
	if s.sessionAge <= 0 {
		return fmt.Errorf("--oidc-session-age is %s: it must be positive", s.sessionAge)
	}
	_, err := s.proxy()
	err = errors.Join(err, s.checkDatabases(databases))
	if config, configError := s.provider(); configError != nil {
		err = errors.Join(err, configError)
	} else if config != nil {
		_, issuerError := signin.NewProvider(*config)
		err = errors.Join(err, issuerError)
	}
	return err
}

// startTimeout is how long the start of the service waits for the identity provider.
const startTimeout = 5 * time.Second

// openProvider gives the service the identity provider of the settings, if there is one. If the provider cannot be
// reached, the service starts without it, says so, and tries again.
func (a *app) openProvider(ctx context.Context, s settings) error {
	config, err := s.signIn.provider()
	if err != nil || config == nil {
		return err
	}
	config.Log = func(err error) {
		if err == nil {
			a.log.Infof("the identity provider %s can be reached", config.Issuer)
			return
		}
		a.log.Errorf("the identity provider %s cannot be reached: %v; keys work, and the service tries again every %s",
			config.Issuer, err, signin.RetryInterval)
	}
	provider, err := signin.NewProvider(*config)
	if err != nil {
		return err
	}
	first, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_ = provider.Refresh(first) // Log is told
	a.access.Provider = provider
	go provider.Run(ctx)
	return nil
}
