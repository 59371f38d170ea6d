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

// fakeInternet replaces the internet for sandboxes: a plain and a TLS server on this machine, and host names.
// Public addresses lead to the servers, by their port; all other addresses stay as they are.
type fakeInternet struct {
	plainServer, tlsServer *httptest.Server
	holding                chan struct{} // a value for each request that is held
	released               chan struct{} // a value for each held request whose client left

	mu      sync.Mutex
	answers map[string][]string // of the lookups of a name, in order; the last one stays
	dialled []string
}

var internet *fakeInternet

func newFakeInternet() *fakeInternet {
	o := &fakeInternet{holding: make(chan struct{}, 100), released: make(chan struct{}, 100),
		answers: map[string][]string{"data.example": {"44.1.1.1"}}}
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
		o.holding <- struct{}{}
		<-r.Context().Done()
		o.released <- struct{}{}
	})
	o.plainServer, o.tlsServer = httptest.NewServer(mux), httptest.NewTLSServer(mux)
	return o
}

func (o *fakeInternet) plain() string  { return o.plainServer.Listener.Addr().String() }
func (o *fakeInternet) secure() string { return o.tlsServer.Listener.Addr().String() }

func (o *fakeInternet) close() {
	o.plainServer.Close()
	o.tlsServer.Close()
}

// certificate writes the self-signed certificate of the TLS server.
func (o *fakeInternet) certificate(dir string) (string, error) {
	path := filepath.Join(dir, "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.tlsServer.Certificate().Raw})
	return path, os.WriteFile(path, text, 0o644)
}

// setAddresses sets the addresses that lookups of a name return, one after the other.
func (o *fakeInternet) setAddresses(name string, addresses ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers[name] = addresses
}

func (o *fakeInternet) resolve(_ context.Context, name string) ([]netip.Addr, error) {
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

func (o *fakeInternet) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
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

// wasDialled reports whether a connection to an address was opened.
func (o *fakeInternet) wasDialled(address string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, each := range o.dialled {
		if each == address {
			return true
		}
	}
	return false
}
