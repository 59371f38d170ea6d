package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/service/chat"
	"glasshouse/service/compat"
	"glasshouse/service/httpapi"
)

// garbagePercent replaces the 100 of GOGC. The live heap is a few MB, so with 100 Go would collect
// garbage several times a second, for a tenth of the service's CPU time.
const garbagePercent = 400

// After the service has drained, it sends answers to clients for shutdownTimeout, and for answerTimeout after the time
// to drain has ended. Streams and uploads that have not ended then are cut.
const (
	shutdownTimeout = 5 * time.Second
	answerTimeout   = 750 * time.Millisecond
)

func newServeCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use: "serve", Short: "Start the service", Args: arguments(0, 0),
		Long: "Start the service. Without databases it starts a PostgreSQL of its own in the data folder, with demo data.",
		Example: `  glasshouse serve
  glasshouse serve --listen 127.0.0.1:9000 --data-dir ~/glasshouse
  GLASSHOUSE_KNOWLEDGE_URL=postgres://reader@db/shop glasshouse serve --tls-cert cert.pem --tls-key key.pem --listen :8443`,
	}, serve)
}

func serve(ctx context.Context, s settings, _ []string) error {
	if err := s.checkAddresses(); err != nil {
		return err
	}
	if err := s.signIn.check(s.databases.names()); err != nil {
		return err
	}
	model, warnings, err := s.model.model()
	if err != nil {
		return err
	}
	begun := time.Now()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	// Listen first, so that an address in use is reported before anything is started.
	sockets := listenConfig()
	listener, err := sockets.Listen(ctx, "tcp", s.server.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	defer listener.Close()
	compatListeners, err := s.compat.listen(ctx, sockets)
	if err != nil {
		return err
	}
	defer compatListeners.close()
	var metricsListener net.Listener
	if s.server.metricsListen != "" {
		if metricsListener, err = sockets.Listen(ctx, "tcp", s.server.metricsListen); err != nil {
			return fmt.Errorf("%w: choose another address with --metrics-listen", err)
		}
		defer metricsListener.Close()
	}
	manager := findServiceManager()
	a, err := build(ctx, s, nil, func(step string) {
		fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step)
		_ = manager.notify(notifyStatus + step)
	})
	if err != nil {
		return err
	}
	defer a.close(context.WithoutCancel(ctx), s)
	if err := a.openProvider(ctx, s); err != nil {
		return err
	}
	proxy, err := s.signIn.proxy()
	if err != nil {
		return err
	}
	scheme := "http"
	if s.server.tlsCert != "" {
		scheme = "https"
	}
	address, local := scheme+"://"+listener.Addr().String(), localAddress(scheme, listener.Addr())
	addressFile := filepath.Join(s.server.dataDir, "address") // where other commands find the service
	if err := os.WriteFile(addressFile, []byte(local+"\n"), 0o644); err != nil {
		return err
	}
	defer os.Remove(addressFile)
	for _, warning := range slices.Concat(warnings, s.compat.notes, s.notes) {
		a.log.Warn(warning)
	}
	tools := a.newMCP()
	conversations := chat.New(chat.Config{
		Live: a.live, Records: a.records, History: a.history, Access: a.access, Tools: tools, Model: model,
		Log: a.log,
	})
	defer conversations.Drain() // before the service closes
	publicURL := strings.TrimSuffix(s.signIn.publicURL, "/")
	compatAPIs := a.newCompatHandlers(s.compat, publicURL)
	defer compatAPIs.close()
	config := a.apiConfig()
	config.MCP, config.Chat, config.Metrics, config.Proxy = tools, conversations, a.metrics, proxy
	config.PublicURL, config.LogRequests = publicURL, s.server.accessLog
	api := httpapi.New(config)
	var tlsConfig *tls.Config // nil: without TLS
	if s.server.tlsCert != "" {
		certificate, err := newCertificate(s.server.tlsCert, s.server.tlsKey, a.log)
		if err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
		tlsConfig = certificate.config()
	}
	handler := proxy.CloseUnclear(a.tracer.Handler(compatAPIs.below(api, compatListeners)))
	server := newServer(handler, a.clients, a.log)
	server.TLSConfig = tlsConfig
	ended := make(chan error, 2+len(compatListeners))
	defer compatAPIs.serve(compatListeners, tlsConfig, a.clients, a.log, ended)()
	if metricsListener != nil {
		defer a.serveMetrics(metricsListener, ended).Close()
	}
	go func() {
		if tlsConfig != nil {
			ended <- server.ServeTLS(listener, "", "")
		} else {
			ended <- server.Serve(listener)
		}
	}()
	var dapAddress net.Addr
	waitForEditors := func() {}
	if s.server.dapListen != "" {
		if dapAddress, waitForEditors, err = serveDAP(ctx, s.server.dapListen, a.debug.Attach, a.log.Debugf); err != nil {
			_ = server.Close()
			return err
		}
	}
	if err := rememberInterpreter(s, a.log.Warnf); err != nil {
		return err
	}
	// A `glasshouse env` command that ran before the address file was written could not tell the service.
	if err := a.isolator.Refresh(ctx); err != nil {
		a.log.Warn(err)
	}
	a.greet(s, address, time.Since(begun))
	showsSecrets := isTerminal(os.Stdout) && !manager.isPresent()
	if manager.isPresent() {
		fmt.Printf("The admin key is in %s\n", filepath.Join(s.server.dataDir, "admin.key"))
	} else {
		a.showFirstSteps(s, address, showsSecrets)
	}
	if err := a.showSignIn(ctx, s, cmp.Or(publicURL, local), showsSecrets); err != nil {
		return err
	}
	if s.databases.knowledgeURL == "" {
		samplesDone := make(chan struct{})
		go func() {
			defer close(samplesDone)
			a.runSamples(ctx, s.server.dataDir)
		}()
		defer func() { <-samplesDone }()
	}
	if metricsListener != nil {
		fmt.Printf("Metrics without a key are at http://%s/metrics\n", metricsListener.Addr())
	}
	if dapAddress != nil {
		fmt.Printf("Editors attach by the Debug Adapter Protocol at %s\n", dapAddress)
	}
	greetCompat(s, local, compatListeners)
	if err := manager.notify(notifyReady + "\n" + notifyStatus + "Listening on " + address); err != nil {
		a.log.Warnf("the service manager cannot be told that the service is ready: %v", err)
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = manager.notify(notifyStopping + "\n" + notifyStatus + "Running executions have " + s.server.drain.String() +
		" to end")
	fmt.Fprintf(os.Stderr, "glasshouse: stopping; running executions have %s to end\n", s.server.drain)
	waitForEditors() // their sessions end with ctx
	// The service drains before the server shuts down, so that interrupted runs are answered.
	drained := time.Now().Add(s.server.drain)
	drain, cancel := context.WithDeadline(context.WithoutCancel(ctx), drained)
	defer cancel()
	conversations.Drain() // an answer would go on asking the model for as long as the service drains
	a.drain(drain)
	timeout := min(shutdownTimeout, time.Until(drained)+answerTimeout)
	shutdown, cancelShutdown := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancelShutdown()
	if server.Shutdown(shutdown) != nil {
		_ = server.Close()
	}
	return nil
}

// maxScrapeConnections bounds the connections to --metrics-listen.
const maxScrapeConnections = 16

// serveMetrics serves the metrics, without a key, to the clients of a listener. It sends the server's end to ended.
func (a *app) serveMetrics(listener net.Listener, ended chan<- error) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	var handler http.Handler = mux
	if isLoopback(listener.Addr().String()) {
		handler = forLocalHost(mux)
	} else {
		a.log.Warnf("--metrics-listen %s is beyond loopback: everyone who reaches it can read the metrics",
			listener.Addr())
	}
	server := newServer(limit.StallTimeout(handler, limit.DefaultStallTimeout),
		limit.NewConnections(maxScrapeConnections, nil), a.log)
	go func() { ended <- server.Serve(listener) }()
	return server
}

// forLocalHost returns a handler that answers next for requests whose Host names this machine, and 403 for others: a
// page of another site could read the answers by DNS rebinding.
func forLocalHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !compat.IsLocalHost(r.Host) {
			http.Error(w, fmt.Sprintf("the Host %.200q does not name this machine: use localhost or a loopback address",
				r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localAddress returns the address at which programs on this machine reach a listener.
func localAddress(scheme string, listener net.Addr) string {
	if tcp, ok := listener.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("%s://127.0.0.1:%d", scheme, tcp.Port)
	}
	return scheme + "://" + listener.String()
}

// greet prints where the service listens, its isolation level, the identity provider, and whether its Python has no
// pandas.
func (a *app) greet(s settings, address string, took time.Duration) {
	level, reason := a.isolator.Level()
	fmt.Printf("Listening on %s (started in %.1f s)\n", address, took.Seconds())
	fmt.Printf("Isolation: %s", level)
	if reason != "" {
		fmt.Printf(
			"\n  It lacks: %s\n  `%s doctor` says why, and what helps",
			a.isolator.MissingProtection(),
			ownCommand(),
		)
	}
	if s.signIn.issuer != "" {
		fmt.Printf("\nSign-in: %s", s.signIn.issuer)
		if !a.access.Provider.IsReachable() {
			fmt.Print(", WHICH CANNOT BE REACHED: only keys work until it can (the log has the error)")
		}
	}
	if !s.databases.synchronousCommit {
		fmt.Print(
			"\nHistory: an answer may be sent up to 10 ms before its record is on disk (--synchronous-commit=false); " +
				"a crash of the machine can lose these records",
		)
	}
	fmt.Println()
	packages, err := a.isolator.Packages(environment.Default)
	hasPandas := slices.ContainsFunc(packages, func(p sandbox.Package) bool { return p.Name == "pandas" })
	if err == nil && !hasPandas {
		fmt.Printf(
			"Python: %s has no pandas, so code cannot use data frames and figures\n"+
				"  (./scripts/run makes an environment that has the packages; --python names another interpreter)\n",
			s.python.interpreter,
		)
	}
}

// isTerminal reports whether a file is a terminal. Anything else, such as a file, a pipe or a socket, may be kept and
// have more readers than the data folder.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// showFirstSteps prints the first commands to try, and the admin key only if showsSecrets is set.
func (a *app) showFirstSteps(s settings, address string, showsSecrets bool) {
	file := filepath.Join(s.server.dataDir, "admin.key")
	if showsSecrets {
		fmt.Printf("Admin key: %s (kept in %s)\n", a.adminKey, file)
	} else {
		fmt.Printf("The admin key is in %s\n", file)
	}
	fmt.Printf(`
Try next:
  curl -s -H "Authorization: Bearer %[2]s" -d '{"code": "1 + 1"}' -H 'Content-Type: application/json' %[1]s/sandbox/agent/quick-execute
  curl -s -H "Authorization: Bearer %[2]s" -X POST '%[1]s/sandbox/agent/analyze-data?analysis_type=tables'
  curl -s -H "Authorization: Bearer %[2]s" %[1]s/executions
The documentation of the API is at %[1]s/docs

`, address, fmt.Sprintf("$(cat '%s')", file))
}

// ownCommand returns how a person who reads this program's output starts it again.
func ownCommand() string {
	if !strings.Contains(os.Args[0], "/") {
		return os.Args[0]
	}
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		return os.Args[0]
	}
	if dir, err := os.Getwd(); err == nil {
		if relative, isBelow := strings.CutPrefix(path, dir+"/"); isBelow {
			return relative
		}
	}
	return path
}

// showSignIn prints a link that signs an admin in to the pages at an address. Unless showsSecrets is set, it prints the
// command that makes one.
func (a *app) showSignIn(ctx context.Context, s settings, address string, showsSecrets bool) error {
	command := fmt.Sprintf("%s login-link --data-dir '%s'", ownCommand(), s.server.dataDir)
	if !showsSecrets {
		fmt.Printf("To sign in to the pages, run `%s` and open the link that it prints\n", command)
		return nil
	}
	caller, err := a.access.Authenticate(ctx, a.adminKey)
	if err != nil {
		return err
	}
	link, err := a.access.NewSignInLink(caller)
	if err != nil {
		return err
	}
	fmt.Printf("Open this link in a browser; it signs you in once, until %s:\n  %s\n`%s` prints another link\n",
		link.ExpiresAt.Local().Format(time.TimeOnly), httpapi.LinkURL(address, link), command)
	return nil
}
