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
)

// A test that kills the service runs this binary once more as that service.
const serviceDir = "GLASSHOUSE_TEST_SERVICE_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serviceDir); dir != "" {
		s, err := start(dir)
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or asked to go
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return embedded.Start(ctx, embedded.Config{Dir: dir, Log: quiet()})
}

// folder is a data folder that is not there yet; its parents let everyone through.
func folder(t testing.TB) string {
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

func begin(t testing.TB, dir string) *embedded.Server {
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

func exec1(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func value(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()
	var v string
	if err := conn.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func postmaster(t testing.TB, dir string) int {
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

// eventually waits for a state that has no event to wait for.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func TestSecondStartKeepsTheDataAndIsFast(t *testing.T) {
	dir := folder(t)
	s := begin(t, dir)
	conn := connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	exec1(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmaster(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Error("Close returned while the server was there")
	}
	began := time.Now()
	s = begin(t, dir)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("the second start took %s", d)
	} else {
		t.Logf("second start: %s", d)
	}
	conn = connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory))
	if got := value(t, conn, "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept = %s", got)
	}
	for setting, want := range map[string]string{"server_encoding": "UTF8", "lc_collate": "C.UTF-8", "TimeZone": "UTC", "fsync": "on", "listen_addresses": "", "data_checksums": "on"} {
		if got := value(t, conn, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s = %q, want %q", setting, got, want)
		}
	}
}

func TestServerRunsApartAndPrivately(t *testing.T) {
	dir := folder(t)
	s := begin(t, dir)
	var st syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d", postmaster(t, dir)), &st); err != nil {
		t.Fatal(err)
	}
	if st.Uid == 0 {
		t.Error("PostgreSQL runs as root")
	}
	config, err := pgx.ParseConfig(s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{config.Host, filepath.Join(dir, "postgres"), filepath.Join(dir, "postgres", "data")} {
		info, err := os.Stat(private)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", private, info.Mode())
		}
	}
}

func TestLongPathsGetAShortSocket(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long/", 30))
	s := begin(t, dir)
	connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
}

func TestKilledServerIsStartedAgain(t *testing.T) {
	for name, victim := range map[string]func(t *testing.T, dir string, conn *pgx.Conn) int{
		"postmaster": func(t *testing.T, dir string, _ *pgx.Conn) int { return postmaster(t, dir) },
		"backend":    func(_ *testing.T, _ string, conn *pgx.Conn) int { return int(conn.PgConn().PID()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			s := begin(t, dir)
			url := s.URL(embedded.RoleHistory, embedded.DatabaseHistory)
			conn := connect(t, url)
			exec1(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
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

// service runs a service of its own in dir; it has started when this returns.
func service(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "error") {
		t.Fatalf("%s %v", line, err)
	}
	return cmd, strings.TrimSpace(line)
}

func TestServerDiesWithAKilledService(t *testing.T) {
	dir := folder(t)
	cmd, url := service(t, dir)
	conn := connect(t, url)
	exec1(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmaster(t, dir)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the server is gone", func() bool { return syscall.Kill(pid, 0) != nil })
	begin(t, dir)
}

func TestStartEndsWhatAKilledServiceLeft(t *testing.T) {
	dir := folder(t)
	cmd, url := service(t, dir)
	conn := connect(t, url)
	exec1(t, conn, "CREATE TABLE kept AS SELECT 42 AS n")
	pid := postmaster(t, dir)
	// A stopped server does not hear its parent's death: it is what is left behind.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	s := begin(t, dir)
	if syscall.Kill(pid, 0) == nil && postmaster(t, dir) == pid {
		t.Error("the old server is still the one that runs")
	}
	if got := value(t, connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory)), "SELECT n::text FROM kept"); got != "42" {
		t.Errorf("kept = %s", got)
	}
}

func TestTwoServicesDoNotShareAFolder(t *testing.T) {
	dir := folder(t)
	s := begin(t, dir)
	if second, err := start(dir); err == nil {
		_ = second.Close()
		t.Fatal("a second service started in the same folder")
	} else if !strings.Contains(err.Error(), "another service") {
		t.Errorf("error = %v", err)
	}
	connect(t, s.URL(embedded.RoleHistory, embedded.DatabaseHistory)) // the first is unharmed
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Run("no programs", func(t *testing.T) {
		_, err := embedded.Start(context.Background(), embedded.Config{Dir: folder(t), BinDir: t.TempDir(), Log: quiet()})
		if err == nil || !strings.Contains(err.Error(), "no PostgreSQL server") {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("broken cluster", func(t *testing.T) {
		dir := folder(t)
		s := begin(t, dir)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "postgres", "data", "global", "pg_control")); err != nil {
			t.Fatal(err)
		}
		if _, err := start(dir); err == nil || !strings.Contains(err.Error(), "pg_control") {
			t.Errorf("error = %v; it does not have the server's own words", err)
		}
	})
	t.Run("closed parent", func(t *testing.T) {
		if os.Geteuid() != 0 {
			return // only root's server runs as another account
		}
		dir := folder(t)
		if err := os.Chmod(filepath.Dir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := start(dir); err == nil || !strings.Contains(err.Error(), "chmod o+x "+filepath.Dir(dir)) {
			t.Errorf("error = %v", err)
		}
	})
}

func refused(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

func TestReaderMayOnlyRead(t *testing.T) {
	ctx := context.Background()
	s := begin(t, folder(t))
	owner := connect(t, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	exec1(t, owner, "CREATE TABLE facts AS SELECT 42 AS n; CREATE FUNCTION meddle() RETURNS int LANGUAGE sql AS 'SELECT 1'")
	reader := connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	if got := value(t, reader, "SELECT n::text FROM facts"); got != "42" {
		t.Errorf("facts = %s", got)
	}
	exec1(t, reader, "SET default_transaction_read_only = off") // grants alone must do
	for _, sql := range []string{
		"INSERT INTO facts VALUES (1)", "UPDATE facts SET n = 1", "DELETE FROM facts", "TRUNCATE facts", "CREATE TABLE mine (n int)",
		"CREATE TEMP TABLE mine (n int)", "CREATE SCHEMA mine", "SELECT meddle()", "SELECT lo_create(0)", "SELECT pg_advisory_lock(1)",
		"SELECT pg_read_file('/etc/passwd')", "COPY facts TO PROGRAM 'true'", "SET ROLE " + embedded.RoleOwner,
	} {
		if _, err := reader.Exec(ctx, sql); !refused(err) {
			t.Errorf("%s: %v, want a refusal", sql, err)
		}
	}
	for _, database := range []string{"history", "postgres", "template1"} {
		if conn, err := pgx.Connect(ctx, s.URL(embedded.RoleReader, database)); err == nil {
			_ = conn.Close(ctx)
			t.Errorf("the reader can enter %s", database)
		}
	}
}
