package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// config is every setting; each has a flag, and the environment variable
// GLASSHOUSE_ with the flag's name in capitals, which the flag overrides.
type config struct {
	listen          string
	allowRemote     bool
	tlsCert, tlsKey string
	dapListen       string
	dataDir         string
	python          string
	databaseURL     string
	knowledgeURL    string
	writerURL       string
	synchronous     bool
	allowFunctions  string
	maskColumns     string
	maskParameters  string
	queries         int
	queriesPerUser  int
	queriesPerBox   int
	adminKey        string
	isolation       string
	minLevel        string
	zygotes         isolate.RecyclePolicy
	pool            int
	sets            []isolate.WarmSet // instead of all, with the pool; set by no flag
	parallel        int
	perUser, inAll  int
	maxMemoryMB     int
	maxCPUPercent   int
	allowedHosts    string
	caBundle        string
	queue           time.Duration
	drain           time.Duration
	keepAge         time.Duration
	keepMB          int
	data            dataSets
	artifactAge     time.Duration
	artifactMB      int64
	uploadsMB       int64
	uploadsUserMB   int64
	keyLimits       sandbox.KeyLimits
	accessLog       bool
	logJSON         bool
	facadeListen    string
	facadeFolder    string
	facadeMaxChars  int
}

// everywhere are settings that each command's help lists.
var everywhere = map[string]bool{"data-dir": true, "python": true}

// parse reads args over the environment over the defaults. flag.ErrHelp where help
// was asked for and printed.
func parse(name string, args []string, more func(*flag.FlagSet)) (config, []string, error) {
	var c config
	f := flag.NewFlagSet("glasshouse "+name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address to listen on")
	f.BoolVar(&c.allowRemote, "allow-remote-plaintext", false, "listen beyond loopback without TLS: keys cross the network readable")
	f.StringVar(&c.tlsCert, "tls-cert", "", "certificate file, for TLS")
	f.StringVar(&c.tlsKey, "tls-key", "", "key file, for TLS")
	f.StringVar(&c.dapListen, "dap-listen", "", "loopback address on which editors attach by the Debug Adapter Protocol, such as 127.0.0.1:8081; empty: none")
	f.StringVar(&c.dataDir, "data-dir", defaultDataDir(), "folder of the keys, of artifacts and of the embedded database")
	f.StringVar(&c.python, "python", "", "interpreter that the default environment is, or was made from; its packages are what code may import; empty: the one that scripts/setup made in the data folder, else python3")
	f.StringVar(&c.databaseURL, "database-url", "", "history database (its owner's login); empty: the embedded one")
	f.StringVar(&c.knowledgeURL, "knowledge-url", "", "database that agents read (a login with SELECT only); empty: the embedded demo")
	f.StringVar(&c.writerURL, "writer-url", "", "the same with a login that may write, for statements that an admin applies; empty: the embedded demo's, or none")
	f.BoolVar(&c.synchronous, "synchronous-commit", true, "have the record of each run on disk before its answer is sent; false: within 10 ms after it, which is faster. A service that is killed loses nothing either way; a crash of the machine may then lose those 10 ms")
	f.StringVar(&c.allowFunctions, "allow-functions", "", "user-defined SQL functions that statements may call, by commas")
	f.StringVar(&c.maskColumns, "mask-columns", "", "columns whose values agents never see, by commas: schema.table.column or table.column")
	f.StringVar(&c.maskParameters, "mask-parameters", "", "SQL parameters whose values history does not keep, by commas; * is all")
	f.IntVar(&c.queries, "max-queries", 16, "SQL statements that run at a time, each on a connection of its own; more wait")
	f.IntVar(&c.queriesPerUser, "max-queries-per-user", 8, "SQL statements of one user that run at a time; more wait")
	f.IntVar(&c.queriesPerBox, "max-queries-per-sandbox", 4, "SQL statements of one sandbox that run at a time; more wait")
	f.StringVar(&c.adminKey, "admin-key", "", "secret of the first admin key; empty: made once and kept in DATA_DIR/admin.key")
	f.StringVar(&c.isolation, "isolation", "", "force a level of the wall: full, full-without-cgroups, landlock or rlimits; empty: the strongest that this machine has")
	f.StringVar(&c.minLevel, "min-level", isolate.LevelLandlock, "refuse to start behind a weaker wall than this level; rlimits is taken only where it is named, here or as --isolation")
	f.DurationVar(&c.zygotes.MaxAge, "zygote-age", time.Hour, "how long a warm interpreter is forked before another takes its place")
	f.IntVar(&c.zygotes.MaxForks, "zygote-forks", 10_000, "how often, likewise")
	f.IntVar(&c.pool, "pool", 8, "sandboxes that wait ready with no packages imported; half as many wait with pandas, and with plotting")
	f.IntVar(&c.parallel, "parallel", 16*runtime.NumCPU(), "runs at a time; more wait up to 10 s")
	f.IntVar(&c.perUser, "max-sandboxes-per-user", 50, "live sandboxes of one user")
	f.IntVar(&c.inAll, "max-sandboxes", 200, "live sandboxes in all")
	f.IntVar(&c.maxMemoryMB, "max-memory-mb", 1024, "the most that a sandbox may ask for as max_memory_mb")
	f.IntVar(&c.maxCPUPercent, "max-cpu-percent", 100*runtime.NumCPU(), "the most that a sandbox may ask for as cpu_percent")
	f.StringVar(&c.allowedHosts, "allowed-hosts", "*", "what sandboxes with a network may ask for as allowed_hosts, by commas: * is every name, on ports 80 and 443; an inner address must be named; none: no sandbox has a network")
	f.StringVar(&c.caBundle, "ca-bundle", "", "PEM file of the certificates that code in sandboxes trusts; empty: the machine's")
	f.DurationVar(&c.queue, "queue", 10*time.Second, "how long a start waits for a free sandbox before 503")
	f.DurationVar(&c.drain, "drain", 10*time.Second, "how long running executions may go on after SIGTERM")
	f.DurationVar(&c.keepAge, "recordings-max-age", 30*24*time.Hour, "how long the recordings of debugged runs are kept; 0: for ever")
	f.IntVar(&c.keepMB, "recordings-max-mb", 4096, "what all recordings together may take in history, the oldest go first; 0: no bound")
	f.Var(&c.data, "data", "NAME=PATH: a file or folder that every sandbox reads as /data/NAME; by commas, or given more than once")
	f.IntVar(&c.keyLimits.Requests, "key-requests", 6000, "requests a minute of one key, an admin's excepted, where it has no limit of its own; 0: no limit")
	f.IntVar(&c.keyLimits.Concurrent, "key-concurrent", 0, "executions at once of one key, likewise")
	f.IntVar(&c.keyLimits.CPUSeconds, "key-cpu-seconds", 0, "seconds of CPU time a day of one key, likewise")
	f.DurationVar(&c.artifactAge, "artifact-age", 30*24*time.Hour, "how long the files that executions left are kept")
	f.Int64Var(&c.artifactMB, "artifact-mb", 1024, "how much of each user's is kept, in MiB; the oldest go first")
	f.Int64Var(&c.uploadsMB, "max-uploads-mb", 1024, "what the uploads of all sandboxes may take of the machine's memory, in MiB; 0: no bound")
	f.Int64Var(&c.uploadsUserMB, "max-uploads-mb-per-user", 512, "what those of one user's may, likewise")
	f.BoolVar(&c.accessLog, "access-log", false, "log every request")
	f.BoolVar(&c.logJSON, "log-json", false, "log in JSON")
	f.StringVar(&c.facadeListen, "facade-listen", "", "loopback address for clients of a local code-execution server, which send no key; empty: SANDBOX_HOST and SANDBOX_PORT where one is set, else off. 127.0.0.1:6000 is what they try")
	f.StringVar(&c.facadeFolder, "facade-folder", "", "folder of this machine that their code works in; empty: OUTPUT_DATA_PATH, else one in memory")
	f.IntVar(&c.facadeMaxChars, "facade-max-output-chars", 1000, "characters of output that they get where they do not say")
	settings := map[string]bool{}
	f.VisitAll(func(g *flag.Flag) { settings[g.Name] = true })
	if more != nil {
		more(f)
	}
	var bad error
	f.VisitAll(func(g *flag.Flag) {
		key := "GLASSHOUSE_" + strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_"))
		if v, ok := os.LookupEnv(key); ok && v != "" {
			if err := f.Set(g.Name, v); err != nil && bad == nil {
				bad = fmt.Errorf("%s=%q: %w", key, v, err)
			}
		}
	})
	if bad != nil {
		return c, nil, bad
	}
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Printf("glasshouse %s takes these settings, each also as an environment variable:\n\n", name)
		f.VisitAll(func(g *flag.Flag) {
			if name == "serve" || !settings[g.Name] || everywhere[g.Name] {
				fmt.Printf("  --%s  (GLASSHOUSE_%s, default %q)\n        %s\n", g.Name, strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_")), g.DefValue, g.Usage)
			}
		})
		if name != "serve" {
			fmt.Println("\nand those of `glasshouse serve --help`, where they matter to it.")
		}
		return c, nil, err
	} else if err != nil {
		return c, nil, fmt.Errorf("%w; `glasshouse %s --help` lists the settings", err, name)
	}
	var err error
	if c.dataDir, err = filepath.Abs(c.dataDir); err != nil {
		return c, nil, err
	}
	if c.python == "" {
		c.python = madePython(c.dataDir)
	}
	return c, f.Args(), c.facade()
}

// madePython is the interpreter of the environment that scripts/setup made last in a data
// folder, or where there is none the system's.
func madePython(dataDir string) string {
	made, err := filepath.EvalSymlinks(filepath.Join(dataDir, "env", "current"))
	if err != nil {
		return "python3"
	}
	return filepath.Join(made, "bin", "python")
}

// facade settles where the facade listens, and in which folder its code works.
func (c *config) facade() (err error) {
	if c.facadeListen == "" {
		if host, port := os.Getenv("SANDBOX_HOST"), os.Getenv("SANDBOX_PORT"); host != "" || port != "" {
			c.facadeListen = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), cmp.Or(port, "6000"))
		}
	}
	if c.facadeFolder == "" && c.facadeListen != "" {
		c.facadeFolder = os.Getenv("OUTPUT_DATA_PATH")
	}
	if c.facadeFolder != "" {
		c.facadeFolder, err = filepath.Abs(c.facadeFolder)
	}
	return err
}

// functions are those of --allow-functions, by commas that are not in a signature.
func (c config) functions() []string {
	depth := 0
	return strings.FieldsFunc(c.allowFunctions, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

// hiddenColumns are those of --mask-columns.
func (c config) hiddenColumns() []string {
	return strings.FieldsFunc(c.maskColumns, func(r rune) bool { return r == ',' || r == ' ' })
}

func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/glasshouse"
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "glasshouse")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "glasshouse-data"
	}
	return filepath.Join(home, ".local", "share", "glasshouse")
}

// shelf is the folder of the environments.
func (c config) shelf() string { return filepath.Join(c.dataDir, "environments") }

// wall is how the wall is to be raised.
func (c config) wall(log func(string, ...any)) isolate.Config {
	sets := c.sets
	if sets == nil {
		sets = isolate.WarmSets(c.pool)
	}
	return isolate.Config{
		Python: c.python, EnvironmentsDir: c.shelf(), WarmSets: sets, DefaultPolicy: policy.Default(), Level: c.isolation, MinLevel: c.minLevel,
		WorkDir: filepath.Join(c.dataDir, "homes"), SharedDir: c.facadeFolder, DataSets: c.data, CABundle: c.caBundle, Recycle: c.zygotes, Log: log,
	}
}

// loopback says whether an address is this machine's own.
func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exposed refuses an address beyond loopback without TLS, and for the facade, which
// asks for no key, any.
func (c config) exposed() error {
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return fmt.Errorf("--listen %q: %w", c.listen, err)
	}
	if c.facadeListen != "" && !loopback(c.facadeListen) {
		return fmt.Errorf("the facade asks for no key, so it listens on loopback only, and %s is beyond it: set --facade-listen, or SANDBOX_HOST and SANDBOX_PORT, to an address such as 127.0.0.1:6000", c.facadeListen)
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key go together")
	}
	if loopback(c.listen) || c.tlsCert != "" || c.allowRemote {
		return nil
	}
	return fmt.Errorf("--listen %s is beyond loopback, and keys would cross the network readable: set --tls-cert and --tls-key, or --allow-remote-plaintext behind a proxy that has TLS", c.listen)
}

// network is what the operator allows of it.
func (c config) network() (on bool, hosts []string, err error) {
	if c.allowedHosts == "none" {
		return false, []string{}, nil
	}
	list := strings.FieldsFunc(c.allowedHosts, func(r rune) bool { return r == ',' || r == ' ' })
	parsed, err := policy.ParseHosts(list)
	if err != nil {
		return false, nil, fmt.Errorf("--allowed-hosts: %w", err)
	}
	return true, parsed.List(), nil
}
