package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
	"glasshouse/policy"
	"glasshouse/policy/polltest"
)

// serviceDir is an environment variable. If it is set, this binary runs as a service in that folder, for a test that
// kills the service.
const serviceDir = "GLASSHOUSE_TEST_SERVICE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serviceDir); dir != "" {
		s, err := start(dir)
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test kills it or closes the pipe
		_ = s.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func quiet() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

func start(dir string) (*embedded.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return embedded.Start(ctx, embedded.Config{Dir: dir, Log: quiet()})
}

// newFolder returns a data folder that does not exist yet. Every account may pass through its parents.
func newFolder(t testing.TB) string {
	t.Helper()
	base, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(base, "data")
}

// startServer starts a server in dir and closes it at the end of the test.
func startServer(t testing.TB, dir string) *embedded.Server {
	t.Helper()
	s, err := start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func execute(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func queryValue(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()
	var v string
	if err := conn.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func postmasterPID(t testing.TB, dir string) int {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// eventually polls for a state that has no event.
var eventually = polltest.Eventually

func TestSecondStartKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := startServer(t, dir)
	conn := connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	execute(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmasterPID(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("the server still runs after Close")
	}
	s = startServer(t, dir)
	conn = connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if got := queryValue(t, conn, "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept: got %s, want 42", got)
	}
	for setting, want := range map[string]string{
		"server_encoding": "UTF8", "lc_collate": "C.UTF-8", "TimeZone": "UTC", "fsync": "on", "listen_addresses": "",
		"data_checksums": "on",
	} {
		if got := queryValue(t, conn, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s: got %q, want %q", setting, got, want)
		}
	}
}

func TestServerIsPrivateAndNotRoot(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := startServer(t, dir)
	var st syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d", postmasterPID(t, dir)), &st); err != nil {
		t.Fatal(err)
	}
	if st.Uid == 0 {
		t.Error("PostgreSQL runs as root")
	}
	config, err := pgx.ParseConfig(s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	postgresDir := filepath.Join(dir, "postgres")
	for _, dir := range []string{config.Host, postgresDir, filepath.Join(postgresDir, "data")} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("mode of %s: got %v, want 0700", dir, info.Mode())
		}
	}
}

func TestLongPathsGetAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newFolder(t), strings.Repeat("long/", 30))
	s := startServer(t, dir)
	connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
}

func TestKilledServerIsRestarted(t *testing.T) {
	t.Parallel()
	for name, victim := range map[string]func(t *testing.T, dir string, conn *pgx.Conn) int{
		"postmaster": func(t *testing.T, dir string, _ *pgx.Conn) int { return postmasterPID(t, dir) },
		"backend":    func(_ *testing.T, _ string, conn *pgx.Conn) int { return int(conn.PgConn().PID()) },
		"postmaster while it makes its lock files": func(t *testing.T, dir string, conn *pgx.Conn) int {
			pid := postmasterPID(t, dir)
			socket := filepath.Join(conn.Config().Host, ".s.PGSQL.5432.lock")
			for _, lock := range []string{filepath.Join(dir, "postgres", "data", "postmaster.pid"), socket} {
				if err := os.Truncate(lock, 0); err != nil {
					t.Fatal(err)
				}
			}
			return pid
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newFolder(t)
			s := startServer(t, dir)
			url := s.URL(embedded.RoleHistory, embedded.DatabaseHistory)
			conn := connect(t, url)
			execute(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
			if err := syscall.Kill(victim(t, dir, conn), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the table is readable again", func() bool {
				again, err := pgx.Connect(context.Background(), url)
				if err != nil {
					return false
				}
				defer again.Close(context.Background())
				var n int
				return again.QueryRow(context.Background(), "SELECT n FROM kept").Scan(&n) == nil && n == 42
			})
		})
	}
}

// startService runs a process with a server in dir. It returns the process and a URL of the server, which answers.
func startService(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	line := startServiceAs(t, dir, cmd)
	if strings.HasPrefix(line, "error") {
		t.Fatalf("start the service: %s", line)
	}
	return cmd, line
}

// startServiceAs runs cmd, this binary, with a server in dir. It returns the URL of the server, or an error.
func startServiceAs(t *testing.T, dir string, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Env = append(os.Environ(), serviceDir+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	answer, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("start the service: %s %v", answer, err)
	}
	if strings.HasPrefix(answer, "error") {
		rest, _ := io.ReadAll(lines)
		answer += string(rest)
	}
	return strings.TrimSpace(answer)
}

// A container may run with a uid that has no name, which initdb does not accept.
func TestServerOfAnAccountWithoutName(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root may start a process as another account
	}
	const uid = 1_234_567
	dir := newFolder(t)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe") // another account may not enter the folder of the binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	answer := startServiceAs(t, dir, cmd)
	library, _ := filepath.Glob("/usr/lib/*/libnss_wrapper.so")
	if len(library) == 0 {
		if !strings.Contains(answer, "apt-get install libnss-wrapper") {
			t.Errorf("without the library: got %q, want an error that names its package", answer)
		}
		return
	}
	if strings.HasPrefix(answer, "error") {
		t.Fatal(answer)
	}
	conn := connect(t, answer)
	if got := queryValue(t, conn, "SELECT 6 * 7 || ''"); got != "42" {
		t.Errorf("got %s, want 42", got)
	}
}

func TestServerDiesWithAKilledService(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	cmd, url := startService(t, dir)
	conn := connect(t, url)
	execute(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmasterPID(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the server ends", func() bool { return syscall.Kill(pid, 0) != nil })
	startServer(t, dir)
}

func TestStartStopsTheServerOfAKilledService(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	cmd, url := startService(t, dir)
	conn := connect(t, url)
	execute(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmasterPID(t, dir)
	// A stopped process does not handle the signal for the death of its parent, so the server continues.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	s := startServer(t, dir)
	if syscall.Kill(pid, 0) == nil && postmasterPID(t, dir) == pid {
		t.Error("the old server still runs")
	}
	conn = connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if got := queryValue(t, conn, "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept: got %s, want 42", got)
	}
}

func TestTwoServicesDoNotShareAFolder(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := startServer(t, dir)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if second, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: quiet()}); err == nil {
		_ = second.Close()
		t.Fatal("a second service started in the same folder")
	} else if !strings.Contains(err.Error(), "another service") {
		t.Errorf("second Start: got %v, want an error that another service uses the folder", err)
	}
	connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory)) // the first still answers
}

func TestStartErrorsNameTheRemedy(t *testing.T) {
	t.Parallel()
	t.Run("no programs", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		data := filepath.Join(dir, "postgres", "data")
		err := errors.Join(os.MkdirAll(data, 0o700),
			os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("9\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := start(dir); err == nil || !strings.Contains(err.Error(), "apt-get install postgresql-9") {
			t.Errorf("got %v, want an error that PostgreSQL 9 is not installed", err)
		}
	})
	t.Run("broken cluster", func(t *testing.T) {
		t.Parallel()
		dir := newFolder(t)
		s := startServer(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "postgres", "data", "global", "pg_control")); err != nil {
			t.Fatal(err)
		}
		if _, err := start(dir); err == nil || !strings.Contains(err.Error(), "pg_control") {
			t.Errorf("got %v, want an error with the server's log", err)
		}
	})
	t.Run("closed parent", func(t *testing.T) {
		t.Parallel()
		if os.Geteuid() != 0 {
			return // only a service that runs as root starts the server as another account
		}
		dir := newFolder(t)
		if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := start(dir); err == nil || !strings.Contains(err.Error(), "chmod o+x "+filepath.Dir(dir)) {
			t.Errorf("got %v, want an error that names chmod", err)
		}
	})
}

func isInsufficientPrivilege(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

func TestReaderMayOnlyRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t, newFolder(t))
	owner := connect(t, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	execute(t, owner, `CREATE TABLE facts AS SELECT 42 AS n;
		CREATE FUNCTION meddle() RETURNS int LANGUAGE sql AS 'SELECT 1'`)
	reader := connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if got := queryValue(t, reader, "SELECT n::text FROM facts"); got != "42" {
		t.Errorf("facts: got %s, want 42", got)
	}
	execute(t, reader, "SET default_transaction_read_only = off") // the privileges alone must refuse
	for _, sql := range []string{
		"INSERT INTO facts VALUES (1)", "UPDATE facts SET n = 1", "DELETE FROM facts", "TRUNCATE facts",
		"CREATE TABLE mine (n int)", "CREATE TEMP TABLE mine (n int)", "CREATE SCHEMA mine", "SELECT meddle()",
		"SELECT lo_create(0)", "SELECT lo_get(0)", "SELECT pg_advisory_lock(1)", "SELECT pg_sleep(0)",
		"SELECT ts_stat('SELECT 1')", "SELECT ts_rewrite('a', 'SELECT 1')",
		"SELECT query_to_xml('SELECT 1', true, true, '')",
		"SELECT pg_stat_get_activity(NULL)", "SELECT * FROM pg_stat_activity", "SELECT pg_cancel_backend(0)",
		"SELECT pg_read_file('/etc/passwd')", "COPY facts TO PROGRAM 'true'", "SET ROLE " + embedded.RoleOwner,
	} {
		if _, err := reader.Exec(ctx, sql); !isInsufficientPrivilege(err) {
			t.Errorf("%s: got %v, want insufficient privilege", sql, err)
		}
	}
	if rows, err := reader.Query(ctx, policy.SQLReachable); err != nil || rows.Next() {
		t.Errorf("functions with an effect that the reader may call: got %v and %v, want none", rows.RawValues(), err)
	} else {
		rows.Close()
	}
	for _, database := range []string{"history", "postgres", "template1"} {
		if conn, err := pgx.Connect(ctx, s.URL(embedded.RoleReader, database)); err == nil {
			_ = conn.Close(ctx)
			t.Errorf("the reader may connect to %s", database)
		}
	}
}

// The trees that the service has the server make of each statement of the reader stay out of the server's log.
func TestLogHasNoTrees(t *testing.T) {
	t.Parallel()
	dir := newFolder(t)
	s := startServer(t, dir)
	for _, role := range []string{embedded.RoleReader, embedded.RoleOwner} {
		conn := connect(t, s.URL(role, embedded.DatabaseKnowledge))
		execute(t, conn, "SET debug_print_rewritten = on")
		execute(t, conn, "SELECT 1 AS tree_of_"+role)
	}
	isLogged := func(role string) bool {
		text, err := os.ReadFile(filepath.Join(dir, "postgres.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "tree_of_"+role)
	}
	eventually(t, "the tree of another role in the log", func() bool { return isLogged(embedded.RoleOwner) })
	if isLogged(embedded.RoleReader) {
		t.Error("the log has a tree of the reader's statement")
	}
}
