package httpapi_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
)

// outside is what sandboxes with a network can ask for: a plain and a TLS server on
// this machine, and names. Public addresses lead to the servers, by their port; all
// other addresses are what they are.
type outside struct {
	web, tls *httptest.Server
	held     chan struct{} // one for each request that is held
	freed    chan struct{} // and for each of these whose client went away

	mu      sync.Mutex
	answers map[string][]string // of each lookup of a name; the last one stays
	dialled []string
}

var world *outside

func newOutside() *outside {
	o := &outside{held: make(chan struct{}, 100), freed: make(chan struct{}, 100), answers: map[string][]string{"data.example": {"44.1.1.1"}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/csv", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a,b\n1,2\n3,4\n") })
	mux.HandleFunc("/len", func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("/inner", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) {
		o.held <- struct{}{}
		<-r.Context().Done()
		o.freed <- struct{}{}
	})
	o.web, o.tls = httptest.NewServer(mux), httptest.NewTLSServer(mux)
	return o
}

func (o *outside) plain() string  { return o.web.Listener.Addr().String() }
func (o *outside) secure() string { return o.tls.Listener.Addr().String() }

func (o *outside) close() {
	o.web.Close()
	o.tls.Close()
}

// certificate writes the TLS server's, which vouches for itself.
func (o *outside) certificate(dir string) (string, error) {
	path := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.tls.Certificate().Raw})
	return path, os.WriteFile(path, text, 0o644)
}

// name gives a name the addresses that its lookups answer, one after the other.
func (o *outside) name(name string, addresses ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[name] = addresses
}

func (o *outside) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.answers[name]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	if len(list) > 1 {
		o.answers[name] = list[1:]
	}
	return []netip.Addr{netip.MustParseAddr(list[0])}, nil
}

func (o *outside) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	o.mu.Lock()
	o.dialled = append(o.dialled, to.String())
	o.mu.Unlock()
	at := to.String()
	if to.Addr().As4()[0] == 44 {
		at = o.plain()
		if to.Port() == 443 {
			at = o.secure()
		}
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", at)
}

// reached says whether an address was ever connected to.
func (o *outside) reached(address string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.dialled {
		if each == address {
			return true
		}
	}
	return false
}
