package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/service"
	"glasshouse/service/httpapi"
)

// garbagePercent is how much garbage may gather beside what lives, which is a few MB:
// Go's 100 has it collected several times a second, for a tenth of the service's CPU.
const garbagePercent = 400

func serve(ctx context.Context, args []string) error {
	c, rest, err := parse("serve", args, nil)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("serve takes no argument, and there is %q", rest[0])
	}
	if err := c.exposed(); err != nil {
		return err
	}
	began := time.Now()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	// First: a port that is taken should be said before anything is started.
	sockets := sockets()
	listener, err := sockets.Listen(ctx, "tcp", c.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with --listen", err)
	}
	var facade net.Listener
	if c.facadeListen != "" {
		if facade, err = sockets.Listen(ctx, "tcp", c.facadeListen); err != nil {
			listener.Close()
			return fmt.Errorf("%w: choose another address with --facade-listen", err)
		}
		defer facade.Close()
	}
	a, err := build(ctx, c, func(step string) { fmt.Fprintf(os.Stderr, "glasshouse: %s\n", step) })
	if err != nil {
		listener.Close()
		return err
	}
	defer a.close(context.WithoutCancel(ctx), c)
	scheme := "http"
	if c.tlsCert != "" {
		scheme = "https"
	}
	address := scheme + "://" + listener.Addr().String()
	if err := os.WriteFile(filepath.Join(c.dataDir, "address"), []byte(address+"\n"), 0o644); err != nil {
		return err
	}
	defer os.Remove(filepath.Join(c.dataDir, "address"))
	server := serving(httpapi.New(httpapi.Config{Service: a.service, Log: a.log, Version: version, Access: c.accessLog}), connections())
	ended := make(chan error, 2)
	if facade != nil {
		workshop := a.workshop()
		defer func() { _ = workshop.Close() }()
		local := serving(limit.StallTimeout(httpapi.Facade(&service.CompatService{Service: a.service, Runner: workshop, MaxChars: c.facadeMaxChars}, a.log), limit.DefaultStallTimeout), connections())
		go func() { ended <- local.Serve(facade) }()
		defer local.Close()
	}
	go func() {
		if c.tlsCert != "" {
			ended <- server.ServeTLS(listener, c.tlsCert, c.tlsKey)
		} else {
			ended <- server.Serve(listener)
		}
	}()
	var dapAt net.Addr
	editors := func() {}
	if c.dapListen != "" {
		if dapAt, editors, err = serveDAP(ctx, c.dapListen, a.service.AttachDAP, a.log.Debugf); err != nil {
			_ = server.Close()
			return err
		}
	}
	if err := remember(c, a.log.Warnf); err != nil {
		return err
	}
	// Whoever changed an environment before the address was there has told nobody.
	if err := a.isolator.Refresh(ctx); err != nil {
		a.log.Warn(err)
	}
	greet(a, c, address, time.Since(began))
	if dapAt != nil {
		fmt.Printf("Editors attach by the Debug Adapter Protocol at %s\n", dapAt)
	}
	if facade != nil {
		fmt.Printf("The facade for clients of a local code-execution server is at http://%s\n", facade.Addr())
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	fmt.Fprintf(os.Stderr, "glasshouse: stopping; what runs has %s to end\n", c.drain)
	editors() // their sessions end with ctx
	// The service drains first: then the answers of cut-off runs still go out.
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.drain)
	defer cancel()
	a.service.Drain(drain)
	a.service = nil
	shut, cancelShut := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancelShut()
	return server.Shutdown(shut)
}

func greet(a *app, c config, address string, took time.Duration) {
	level, why := a.isolator.Level()
	fmt.Printf("Listening on %s (started in %.1f s)\n", address, took.Seconds())
	fmt.Printf("Wall: %s", level)
	if why != "" {
		fmt.Printf(", which loses: %s\n  (%s; `glasshouse doctor` says what helps)", a.isolator.MissingProtection(), why)
	}
	if !c.synchronous {
		fmt.Print("\nHistory: a run is answered up to 10 ms before its record is on disk (--synchronous-commit=false); if the machine crashes, those may be lost")
	}
	fmt.Printf("\nAdmin key: %s (kept in %s)\n", a.secret, filepath.Join(c.dataDir, "admin.key"))
	fmt.Printf(`
Try next:
  curl -s -H "Authorization: Bearer %[2]s" -d '{"code": "1 + 1"}' -H 'Content-Type: application/json' %[1]s/sandbox/agent/quick-execute
  curl -s -H "Authorization: Bearer %[2]s" -X POST '%[1]s/sandbox/agent/analyze-data?table_name=users&analysis_type=summary&limit=3'
  curl -s -H "Authorization: Bearer %[2]s" %[1]s/executions
The documentation of the API is at %[1]s/docs
`, address, a.secret)
}
