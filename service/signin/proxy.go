package signin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// Proxy trusts the headers of a reverse proxy that has authenticated the person. Everyone can send such headers, so
// they count only in requests from the proxy's addresses.
type Proxy struct {
	UserHeader string
	RoleHeader string // "": everyone has the default role
	Addresses  []netip.Prefix
	Rights     Rights
}

// Person returns the person whom a request of the proxy names. ok is false if the request is not the proxy's or names
// nobody. Person returns FaultUnauthorized for a header that occurs twice, and FaultForbidden for a person without a
// role.
func (p *Proxy) Person(r *http.Request) (person Person, ok bool, err error) {
	if p == nil || !p.isProxy(r.RemoteAddr) {
		return Person{}, false, nil
	}
	users := r.Header.Values(p.UserHeader)
	if len(users) == 0 {
		return Person{}, false, nil
	}
	roles := []string{}
	if p.RoleHeader != "" {
		roles = r.Header.Values(p.RoleHeader)
	}
	if len(users) > 1 || len(roles) > 1 { // one of them may be the client's own
		return Person{}, false, sandbox.Errorf(sandbox.FaultUnauthorized, "the header %s or %s occurs twice: the "+
			"proxy must remove those that its clients send", p.UserHeader, p.RoleHeader)
	}
	var values []string
	for _, list := range roles {
		for value := range strings.SplitSeq(list, ",") {
			values = append(values, strings.TrimSpace(value))
		}
	}
	person, err = p.Rights.person(SourceProxy, users[0], "the header "+p.RoleHeader, values)
	return person, err == nil, err
}

// CloseUnclear returns a handler that closes the proxy's connection after a request whose end the proxy may see
// elsewhere than the service: one with chunks, which may have a Content-Length too, and one that asks for another
// protocol. What follows on the connection could be a part of a client's body, with headers of the client's choice.
func (p *Proxy) CloseUnclear(next http.Handler) http.Handler {
	if p == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (len(r.TransferEncoding) > 0 || r.Header.Get("Upgrade") != "") && p.isProxy(r.RemoteAddr) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Proxy) isProxy(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(p.Addresses, func(prefix netip.Prefix) bool {
		return prefix.Contains(address.Unmap().WithZone(""))
	})
}
