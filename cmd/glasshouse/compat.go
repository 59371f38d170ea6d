package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"

	"glasshouse/policy/limit"
	"glasshouse/service/compat"
	"glasshouse/service/compat/e2b"
	"glasshouse/service/compat/jupyter"
	"glasshouse/service/compat/librechat"
	"glasshouse/service/compat/nemo"
)

// compatAPIs makes the compatibility APIs whose clients send a key, by their names in --compat. To add one, add a line.
var compatAPIs = map[string]func(compat.Config) http.Handler{
	"e2b":       e2b.New,
	"jupyter":   jupyter.New,
	"librechat": librechat.New,
}

// nemoAPI is the compatibility API whose clients send no key, so that it is served on loopback addresses only.
const nemoAPI = "nemo"

// onMainListener is the address of an API that the main listener serves below a folder of the API's name.
const onMainListener = "main"

// compatAddresses is the value of --compat: the address of each API, by its name.
type compatAddresses map[string]string

// Type returns the placeholder for the flag's value in the help.
func (a *compatAddresses) Type() string { return "NAME=ADDRESS" }

func (a *compatAddresses) String() string { return formatMap(*a) }

// Set adds the APIs of a comma-separated list. An API that is named again gets the new address.
func (a *compatAddresses) Set(text string) error {
	if *a == nil {
		*a = compatAddresses{}
	}
	for item := range strings.SplitSeq(text, ",") {
		name, address, hasAddress := strings.Cut(strings.TrimSpace(item), "=")
		if !hasAddress && name != nemoAPI {
			address = onMainListener
		}
		_, _, err := net.SplitHostPort(address)
		switch known := slices.Sorted(maps.Keys(compatAPIs)); {
		case name != nemoAPI && compatAPIs[name] == nil:
			return fmt.Errorf("there is no compatibility API %q in this build; it has %s and %s", name,
				strings.Join(known, ", "), nemoAPI)
		case name == nemoAPI && (err != nil || address == onMainListener):
			return fmt.Errorf("%q must be %s=ADDRESS with a loopback address such as 127.0.0.1:6000: its clients send "+
				"no key", item, nemoAPI)
		case address != onMainListener && err != nil:
			return fmt.Errorf("%q must be %s=ADDRESS with an address such as 127.0.0.1:8888, or just %s for "+
				"the folder /%s of the main listener", item, name, name, name)
		}
		(*a)[name] = address
	}
	return nil
}

// compatSettings are the settings of the compatibility APIs.
type compatSettings struct {
	apis     compatAddresses
	folder   string   // of nemo
	maxChars int      // of nemo
	memoryMB int      // of nemo
	notes    []string // a line for the log about each variable of another server that is used
}

func (s *compatSettings) register(f *pflag.FlagSet) {
	f.Var(&s.apis, "compat",
		"serve the API NAME for its existing clients at an address of its own, as `NAME=ADDRESS`, or as /NAME of the "+
			"main listener, as NAME; separated by commas. jupyter=127.0.0.1:8888; nemo=127.0.0.1:6000, which asks for "+
			"no key, on loopback addresses only; SANDBOX_HOST and SANDBOX_PORT name it, too")
	f.StringVar(&s.folder, "nemo-folder", "",
		"`FOLDER` of this machine in which the code of clients of nemo works; OUTPUT_DATA_PATH names it, too; empty: "+
			"a folder in memory")
	f.IntVar(&s.maxChars, "nemo-max-output-chars", 1000,
		"maximum `NUMBER` of characters of output in an answer of nemo, unless the request names one")
	f.IntVar(&s.memoryMB, "nemo-memory-mb", 0,
		"memory of each request to nemo, in `MIB`, at most --max-memory-mb; 0: that of a sandbox without a config")
}

// resolve applies the environment variables that other servers of this kind read.
func (s *compatSettings) resolve() (err error) {
	host, port := os.Getenv("SANDBOX_HOST"), os.Getenv("SANDBOX_PORT")
	if s.apis[nemoAPI] == "" && host+port != "" {
		listen := net.JoinHostPort(cmp.Or(host, "127.0.0.1"), cmp.Or(port, "6000"))
		if err := s.apis.Set(nemoAPI + "=" + listen); err != nil {
			return fmt.Errorf("SANDBOX_HOST and SANDBOX_PORT: %w", err)
		}
		s.notes = append(s.notes, "SANDBOX_HOST and SANDBOX_PORT set --compat "+nemoAPI+"="+listen)
	}
	if output := os.Getenv("OUTPUT_DATA_PATH"); s.folder == "" && output != "" && s.apis[nemoAPI] != "" {
		s.folder = output
		s.notes = append(s.notes, "OUTPUT_DATA_PATH set --nemo-folder")
	}
	if s.folder != "" {
		s.folder, err = filepath.Abs(s.folder)
	}
	return err
}

// checkAddresses refuses an address of nemo beyond loopback, which asks for no key, and one of another API where keys
// would cross the network in clear text.
func (s *compatSettings) checkAddresses(server serverSettings) error {
	for name, address := range s.apis {
		switch {
		case address == onMainListener || isLoopback(address):
		case name == nemoAPI:
			return fmt.Errorf("--compat %s=%s is beyond loopback, and this API asks for no key: name an address such "+
				"as 127.0.0.1:6000 with --compat, or with SANDBOX_HOST and SANDBOX_PORT", name, address)
		case server.tlsCert == "" && !server.allowRemote:
			return fmt.Errorf("--compat %s=%s is beyond loopback, and keys would cross the network in clear text: "+
				"set --tls-cert and --tls-key, or --allow-remote-plaintext behind a proxy that terminates TLS",
				name, address)
		}
	}
	return nil
}

// compatListeners are the listeners of the APIs that do not use the main one.
type compatListeners map[string]net.Listener

// listen opens a listener for each API that has an address of its own.
func (s *compatSettings) listen(ctx context.Context, sockets net.ListenConfig) (compatListeners, error) {
	listeners := compatListeners{}
	for name, address := range s.apis {
		if address == onMainListener {
			continue
		}
		l, err := sockets.Listen(ctx, "tcp", address)
		if err != nil {
			listeners.close()
			return nil, fmt.Errorf("%w: choose another address with --compat %s=ADDRESS", err, name)
		}
		listeners[name] = l
	}
	return listeners, nil
}

func (l compatListeners) close() {
	for _, each := range l {
		_ = each.Close()
	}
}

// compatHandlers are the handlers of the APIs, by name.
type compatHandlers struct {
	byName map[string]http.Handler
	close  func() // ends the sessions of nemo, once nothing is served any more
}

// newCompatHandlers returns the handlers of the APIs that the settings name. publicURL is the address of the main
// listener behind a proxy, or "".
func (a *app) newCompatHandlers(s compatSettings, publicURL string) compatHandlers {
	handlers := compatHandlers{map[string]http.Handler{}, func() {}}
	config := compat.Config{
		Live: a.live, Runs: a.runs, Records: a.records, Access: a.access, Log: a.log, Version: version, CPU: a.cpu,
	}
	for name, address := range s.apis {
		config := config
		if address == onMainListener {
			config.PublicURL = publicURL
		}
		var handler http.Handler
		if name == nemoAPI {
			runner := a.supervisor.NewCompatRunner()
			handlers.close = runner.Close
			handler = &nemo.Server{
				Config: config, Open: runner.Open, MaxOutputChars: s.maxChars, MemoryMB: s.memoryMB,
				LogRequests: os.Getenv("DEBUG") == "1",
			}
		} else {
			handler = compatAPIs[name](config)
		}
		handlers.byName[name] = limit.StallTimeout(handler, limit.DefaultStallTimeout)
	}
	return handlers
}

// below returns a handler that serves the APIs that have no listener of their own below a folder of their name, and
// everything else by next.
func (h compatHandlers) below(next http.Handler, listeners compatListeners) http.Handler {
	folders := map[string]http.Handler{}
	for name, handler := range h.byName {
		if listeners[name] == nil {
			folders[name] = http.StripPrefix("/"+name, handler)
		}
	}
	if len(folders) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		folder, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		handler, ok := folders[folder]
		if !ok {
			handler = next
		}
		handler.ServeHTTP(w, r)
	})
}

// serve starts a server for each listener and sends its error to ended when it ends. The caller calls close to end the
// servers. tlsConfig is nil without TLS.
func (h compatHandlers) serve(
	listeners compatListeners, tlsConfig *tls.Config, connections *limit.Connections, log *logrus.Logger,
	ended chan<- error,
) (closeAll func()) {
	var servers []*http.Server
	for name, l := range listeners {
		each := newServer(h.byName[name], connections, log)
		each.TLSConfig = tlsConfig
		servers = append(servers, each)
		go func() {
			if tlsConfig != nil && !isLoopback(l.Addr().String()) {
				ended <- each.ServeTLS(l, "", "")
			} else {
				ended <- each.Serve(l)
			}
		}()
	}
	return func() {
		for _, each := range servers {
			_ = each.Close()
		}
	}
}

// greetCompat prints where the APIs are.
func greetCompat(s settings, address string, listeners compatListeners) {
	for _, name := range slices.Sorted(maps.Keys(s.compat.apis)) {
		url := address + "/" + name
		if l := listeners[name]; l != nil {
			scheme := "http"
			if s.server.tlsCert != "" && !isLoopback(l.Addr().String()) {
				scheme = "https"
			}
			url = localAddress(scheme, l.Addr())
		}
		fmt.Printf("The compatibility API %s is at %s\n", name, url)
	}
}
