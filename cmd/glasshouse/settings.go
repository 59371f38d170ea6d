package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/isolate"
)

// isolationLevels are the levels that --isolation and --min-level accept, strongest first.
var isolationLevels = []string{
	isolate.LevelFull,
	isolate.LevelWithoutCgroups,
	isolate.LevelLandlock,
	isolate.LevelRLimits,
}

// settings has the value of every flag that serve has, by the section under which its help lists the flag.
type settings struct {
	server    serverSettings
	signIn    signInSettings
	limits    limitSettings
	sandboxes sandboxSettings
	isolation isolationSettings
	python    pythonSettings
	databases databaseSettings
	retention retentionSettings
	model     modelSettings
	compat    compatSettings

	notes    []string      // about settings that variables of other servers have set
	defaults policy.Policy // of a sandbox without a config; resolve sets it
	ceiling  policy.Policy // the limits of a config, without the network; resolve sets it
}

// section is a group of flags in the help.
type section struct {
	title    string
	register func(*pflag.FlagSet)
}

func (s *settings) sections() []section {
	return []section{
		{"Server", s.server.register},
		{"Sign-in", s.signIn.register},
		{"Limits", s.limits.register},
		{"Sandboxes", s.sandboxes.register},
		{"Isolation", s.isolation.register},
		{"Python", s.python.register},
		{"Databases", s.databases.register},
		{"Retention", s.retention.register},
		{"Chat", s.model.register},
		{"Compatibility APIs", s.compat.register},
	}
}

type serverSettings struct {
	listen          string
	allowRemote     bool
	tlsCert, tlsKey string
	dapListen       string
	metricsListen   string
	dataDir         string
	adminKey        string
	drain           time.Duration
	accessLog       bool
	logJSON         bool
}

func (s *serverSettings) register(f *pflag.FlagSet) {
	f.StringVar(&s.listen, "listen", "127.0.0.1:8080", "`ADDRESS` of the HTTP API and the pages")
	f.StringVar(&s.dataDir, "data-dir", defaultDataDir(),
		"`FOLDER` of the keys, artifacts, environments and the embedded database; one service at a time uses it")
	f.StringVar(
		&s.adminKey,
		"admin-key",
		"",
		"`SECRET` of the first admin key, at least 16 characters; empty: generated at the first start and kept in admin.key in the data folder",
	)
	f.StringVar(&s.tlsCert, "tls-cert", "", "`FILE` of the TLS certificate; needs --tls-key")
	f.StringVar(&s.tlsKey, "tls-key", "", "`FILE` of the TLS certificate's private key")
	f.BoolVar(&s.allowRemote, "allow-remote-plaintext", false,
		"allow a --listen address beyond loopback without TLS; keys then cross the network in clear text")
	f.StringVar(&s.dapListen, "dap-listen", "",
		"loopback `ADDRESS` at which editors attach by the Debug Adapter Protocol, such as 127.0.0.1:8081; empty: none")
	f.StringVar(&s.metricsListen, "metrics-listen", "",
		"`ADDRESS` that serves /metrics to Prometheus without a key, on loopback or a private network, such as "+
			"127.0.0.1:9464; empty: /metrics of --listen, with an admin's key")
	f.DurationVar(
		&s.drain,
		"drain",
		10*time.Second,
		"maximum `TIME` that running executions may continue after SIGTERM",
	)
	f.BoolVar(&s.accessLog, "access-log", false, "log every request")
	f.BoolVar(&s.logJSON, "log-json", false, "write the log as JSON")
}

type limitSettings struct {
	parallel         int
	sandboxesPerUser int
	sandboxes        int
	keys             sandbox.KeyLimits
	uploadsMB        int64
	queries          queryLimit
	queriesPerUser   queryLimit
}

func (s *limitSettings) register(f *pflag.FlagSet) {
	f.IntVar(
		&s.parallel,
		"parallel",
		20*runtime.NumCPU(),
		"maximum `NUMBER` of concurrent executions, of one user four fifths; others wait up to 10 s",
	)
	f.IntVar(&s.sandboxes, "max-sandboxes", 200, "maximum `NUMBER` of live sandboxes")
	f.IntVar(&s.sandboxesPerUser, "max-sandboxes-per-user", 50, "maximum `NUMBER` of live sandboxes of one user")
	f.IntVar(
		&s.keys.Requests,
		"key-requests",
		6000,
		"maximum `NUMBER` of requests per minute of a key without a limit of its own; admin keys are exempt; 0: no limit",
	)
	f.IntVar(
		&s.keys.Concurrent,
		"key-concurrent",
		0,
		"maximum `NUMBER` of concurrent executions of a key without a limit of its own; admin keys are exempt; 0: no limit",
	)
	f.IntVar(
		&s.keys.CPUSeconds,
		"key-cpu-seconds",
		0,
		"maximum CPU time per day, in `SECONDS`, of a key without a limit of its own; admin keys are exempt; 0: no limit",
	)
	f.Int64Var(
		&s.uploadsMB,
		"max-uploads-mb",
		1024,
		"maximum memory that the uploads of all sandboxes use, those of one user half of it, in `MIB`; 0: no limit",
	)
	s.queries.each, s.queriesPerUser.each = 16, 8
	f.Var(
		&s.queries,
		"max-queries",
		"maximum `NUMBER` of concurrent SQL statements on a database, each on its own connection; others wait; "+
			"NAME:NUMBER after a comma: for one database",
	)
	f.Var(
		&s.queriesPerUser,
		"max-queries-per-user",
		"maximum `NUMBER` of concurrent SQL statements of one user on a database, likewise",
	)
}

type isolationSettings struct {
	level, minLevel string
	allowedHosts    string
	caBundle        string
}

func (s *isolationSettings) register(f *pflag.FlagSet) {
	f.StringVar(
		&s.level,
		"isolation",
		"",
		"isolation `LEVEL` to use: full, full-without-cgroups, landlock or rlimits; empty: the strongest that this machine supports",
	)
	f.StringVar(
		&s.minLevel,
		"min-level",
		isolate.LevelLandlock,
		"weakest isolation `LEVEL` with which the service starts; rlimits is used only if it is named here or as --isolation",
	)
	f.StringVar(
		&s.allowedHosts,
		"allowed-hosts",
		"*",
		"comma-separated `HOSTS` that a sandbox with a network may request as allowed_hosts; *: every public name, on ports 80 and 443; "+
			"a private address must be listed; none: no sandbox has a network",
	)
	f.StringVar(
		&s.caBundle,
		"ca-bundle",
		"",
		"PEM `FILE` of the certificates that code in sandboxes trusts; empty: those of this machine",
	)
}

type pythonSettings struct {
	interpreter string
	pool        int
	data        dataSets
}

func (s *pythonSettings) register(f *pflag.FlagSet) {
	f.StringVar(
		&s.interpreter,
		"python",
		"",
		"Python `INTERPRETER` of the default environment, whose packages code may import; empty: the one that scripts/setup made "+
			"in the data folder, else that of the package glasshouse-python, else python3",
	)
	f.IntVar(
		&s.pool,
		"pool",
		8,
		"`NUMBER` of guests kept ready without imported packages; also a quarter of it with numpy, and half of it with pandas and with plotting",
	)
	f.Var(
		&s.data,
		"data",
		"file or folder that every sandbox can read as /data/NAME, as `NAME=PATH`; separated by commas, or given repeatedly",
	)
}

type databaseSettings struct {
	historyURL, knowledgeURL    string
	named                       databaseURLs
	writers                     writerURLs
	synchronousCommit           bool
	allowFunctions, allowViews  string
	serverCheck                 string
	maskColumns, maskParameters string
}

func (s *databaseSettings) register(f *pflag.FlagSet) {
	f.StringVar(
		&s.historyURL,
		"database-url",
		"",
		"`URL` of the history database, with its owner's login; empty: the embedded database",
	)
	f.StringVar(&s.knowledgeURL, "knowledge-url", "",
		"`URL` of the database that agents query, named "+sandbox.DefaultDatabase+", with a login that has only "+
			"SELECT; empty: the embedded demo")
	f.Var(
		&s.named,
		"database",
		"another database that agents query by its name, with a login that has only SELECT, as `NAME=URL`; given "+
			"repeatedly, or separated by spaces",
	)
	f.Var(
		&s.writers,
		"writer-url",
		"`URL` of the database of --knowledge-url, or NAME=URL of another one, with a login that may write, for "+
			"statements that an admin applies; given repeatedly, or separated by spaces; none: the embedded demo's only",
	)
	f.BoolVar(
		&s.synchronousCommit,
		"synchronous-commit",
		true,
		"flush the record of a run to disk before its answer is sent; false: up to 10 ms after the answer, which is faster. In both cases "+
			"killing the service loses nothing; with false, a crash of the machine can lose these 10 ms",
	)
	f.StringVar(
		&s.allowFunctions,
		"allow-functions",
		"",
		"comma-separated user-defined SQL `FUNCTIONS` that statements may call; NAME:FUNCTION of another database",
	)
	f.StringVar(&s.serverCheck, "server-check", "",
		"comma-separated `NAMES` of databases whose PostgreSQL analyses each query before it runs, which costs a "+
			"round trip and needs the login of `glasshouse role-sql --server-check`; the embedded demo always does")
	f.StringVar(&s.maskColumns, "mask-columns", "",
		"comma-separated `COLUMNS` whose values agents never see, each schema.table.column or table.column; "+
			"NAME:COLUMN of another database")
	f.StringVar(&s.allowViews, "allow-views", "",
		"comma-separated `VIEWS` that may filter, sort, group or compute with a masked column, and tables that may be "+
			"partitioned by one, each schema.view or view; NAME:VIEW of another database")
	f.StringVar(&s.maskParameters, "mask-parameters", "",
		"comma-separated names of SQL `PARAMETERS` whose values history does not keep; *: all")
}

type retentionSettings struct {
	historyAge   time.Duration
	historyMB    int64
	recordingAge time.Duration
	recordingsMB int
	inputLog     string
	inputLogMB   int64
	artifactAge  time.Duration
	artifactMB   int64
}

func (s *retentionSettings) register(f *pflag.FlagSet) {
	f.DurationVar(
		&s.historyAge,
		"history-max-age",
		0,
		"maximum `AGE` of executions with everything that belongs to them, such as 2160h; 0: no limit",
	)
	f.Int64Var(
		&s.historyMB,
		"history-max-mb",
		0,
		"maximum size of the records and recordings of all executions, in `MIB`; the oldest executions are deleted "+
			"first; 0: no limit",
	)
	f.DurationVar(
		&s.recordingAge,
		"recordings-max-age",
		30*24*time.Hour,
		"maximum `AGE` of the recordings of debugged executions; 0: no limit",
	)
	f.IntVar(
		&s.recordingsMB,
		"recordings-max-mb",
		4096,
		"maximum size of all recordings in history, in `MIB`; the oldest are deleted first; 0: no limit",
	)
	f.StringVar(&s.inputLog, "input-log", string(inputlog.Rows),
		"what history keeps of what executions read, so that they can be replayed: `rows`, hashes (a replay asks the "+
			"databases again) or off")
	f.Int64Var(&s.inputLogMB, "input-log-max-mb", 4096,
		"maximum size of all input logs in history, in `MIB`; the oldest are deleted first; 0: no limit")
	f.DurationVar(&s.artifactAge, "artifact-age", 30*24*time.Hour, "maximum `AGE` of the artifacts of executions")
	f.Int64Var(
		&s.artifactMB,
		"artifact-mb",
		1024,
		"maximum size of the artifacts of one user, in `MIB`; the oldest are deleted first",
	)
}

// resolve makes the folders absolute and fills in settings that depend on others.
func (s *settings) resolve() (err error) {
	if err = errors.Join(s.checkBounds(), s.checkNames()); err != nil {
		return err
	}
	switch inputlog.Mode(s.retention.inputLog) {
	case inputlog.Rows, inputlog.Hashes, inputlog.Off:
	default:
		return fmt.Errorf("--input-log must be rows, hashes or off, not %q", s.retention.inputLog)
	}
	if s.defaults, s.ceiling, err = s.sandboxes.policies(); err != nil {
		return err
	}
	if m, most := s.compat.memoryMB, s.ceiling.MaxMemoryMB; m > 0 && (m < 64 || m > most) {
		return fmt.Errorf("--nemo-memory-mb %d must be from 64 to --max-memory-mb, which is %d: change one of them",
			m, most)
	}
	s.ceiling.CPUPercent = 100 * runtime.NumCPU() // 100 is one CPU, and no sandbox can use more than there are
	if s.server.dataDir, err = filepath.Abs(s.server.dataDir); err != nil {
		return err
	}
	if s.python.interpreter == "" {
		s.python.interpreter = defaultInterpreter(s.server.dataDir)
	}
	// A Python that is started by its name without a folder looks for itself in /bin first, and then finds no packages.
	if path, err := findProgram(s.python.interpreter); err == nil {
		s.python.interpreter = path
	}
	return s.compat.resolve()
}

// packagedFolder is the folder of the Debian package glasshouse-python: python/bin/python with the packages that code
// may import, and bin/uv.
const packagedFolder = "/usr/lib/glasshouse"

// defaultInterpreter returns the interpreter of the environment that scripts/setup last made in a data
// folder, else that of the package glasshouse-python, else the system's.
func defaultInterpreter(dataDir string) string {
	if environment, err := filepath.EvalSymlinks(filepath.Join(dataDir, "env", "current")); err == nil {
		return filepath.Join(environment, "bin", "python")
	}
	packaged := filepath.Join(packagedFolder, "python", "bin", "python")
	if _, err := os.Stat(packaged); err == nil {
		return packaged
	}
	return "python3"
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

// splitList returns the items of a list that is separated by commas or spaces.
func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// formatMap returns the entries of a map as a flag takes them: NAME=VALUE, sorted by name and separated by commas.
func formatMap[V ~string](m map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+"="+string(m[name]))
	}
	return strings.Join(all, ",")
}

// functions returns the items of --allow-functions. A comma in a signature separates no items.
func (s *databaseSettings) functions() []string {
	depth := 0
	return strings.FieldsFunc(s.allowFunctions, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth == 0 && (r == ',' || r == ' ')
	})
}

// environments returns the folder of the environments.
func (s *settings) environments() string { return filepath.Join(s.server.dataDir, "environments") }

// isolateConfig returns the configuration of the isolation. The warm interpreters have the imports of
// sets; nil: those of --pool.
func (s *settings) isolateConfig(sets []isolate.WarmSet, log func(string, ...any)) isolate.Config {
	if sets == nil {
		sets = isolate.WarmSets(s.python.pool)
	}
	return isolate.Config{
		Python: s.python.interpreter, EnvironmentsDir: s.environments(), WarmSets: sets, DefaultPolicy: s.defaults,
		Level: s.isolation.level, MinLevel: s.isolation.minLevel, CABundle: s.isolation.caBundle,
		WorkDir: filepath.Join(s.server.dataDir, "homes"), SharedDir: s.compat.folder, DataSets: s.python.data,
		Log: log,
	}
}

// isLoopback reports whether an address can be reached from this machine only.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkBounds refuses a number that is smaller than its setting allows.
func (s *settings) checkBounds() error {
	for _, setting := range []struct {
		flag         string
		value, least int64
	}{
		{"drain", int64(s.server.drain), 0},
		{"parallel", int64(s.limits.parallel), 1},
		{"max-sandboxes", int64(s.limits.sandboxes), 1},
		{"max-sandboxes-per-user", int64(s.limits.sandboxesPerUser), 1},
		{"max-uploads-mb", s.limits.uploadsMB, 0},
		{"max-queries", int64(s.limits.queries.least()), 1},
		{"max-queries-per-user", int64(s.limits.queriesPerUser.least()), 0},
		{"pool", int64(s.python.pool), 1},
		{"nemo-max-output-chars", int64(s.compat.maxChars), 1},
		{"nemo-memory-mb", int64(s.compat.memoryMB), 0},
		{"history-max-age", int64(s.retention.historyAge), 0},
		{"history-max-mb", s.retention.historyMB, 0},
		{"recordings-max-age", int64(s.retention.recordingAge), 0},
		{"recordings-max-mb", int64(s.retention.recordingsMB), 0},
		{"input-log-max-mb", s.retention.inputLogMB, 0},
		{"artifact-age", int64(s.retention.artifactAge), 0},
		{"artifact-mb", s.retention.artifactMB, 0},
	} {
		if setting.value < setting.least {
			return fmt.Errorf("--%s (%s) is too small: it must be at least %d", setting.flag,
				environmentName(setting.flag), setting.least)
		}
	}
	return nil
}

// checkAddresses refuses an address beyond loopback without TLS.
func (s *settings) checkAddresses() error {
	listen := s.server.listen
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return fmt.Errorf("--listen %q: %w", listen, err)
	}
	if (s.server.tlsCert == "") != (s.server.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key need each other: set both or none")
	}
	if s.server.tlsCert != "" {
		if _, err := tls.LoadX509KeyPair(s.server.tlsCert, s.server.tlsKey); err != nil {
			return fmt.Errorf("--tls-cert and --tls-key must name a certificate and its private key in PEM: %w", err)
		}
	}
	if err := s.compat.checkAddresses(s.server); err != nil {
		return err
	}
	if isLoopback(listen) || s.server.tlsCert != "" || s.server.allowRemote {
		return nil
	}
	return fmt.Errorf(
		"--listen %s is beyond loopback, and keys would cross the network in clear text: set --tls-cert and --tls-key, "+
			"or --allow-remote-plaintext behind a proxy that terminates TLS",
		listen,
	)
}

// network returns whether sandboxes may have a network, and the hosts that they may request.
func (s *isolationSettings) network() (enabled bool, hosts []string, err error) {
	if s.allowedHosts == "none" {
		return false, []string{}, nil
	}
	parsed, err := policy.ParseHosts(splitList(s.allowedHosts))
	if err != nil {
		return false, nil, fmt.Errorf("--allowed-hosts: %w", err)
	}
	return true, parsed.List(), nil
}
