package embedded

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// dumpStopTimeout is how long a program has to end after its context has ended.
const dumpStopTimeout = 5 * time.Second

// Dump writes a database of the server that runs on a data folder to w, as pg_dump does in its custom format. The
// server may belong to another process. A dump has one snapshot of the database and blocks no one.
func Dump(ctx context.Context, dir, database string, w io.Writer) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	bin, err := FindPrograms(dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pg_dump"), "--format=custom", "--no-password",
		"--host="+socketDir(filepath.Join(dir, "postgres")), "--username="+RoleAdmin, database)
	cmd.Env = environ
	cmd.Stdout, cmd.WaitDelay = w, dumpStopTimeout
	return runDumpProgram(cmd)
}

// Restore fills a database, which must be empty, from a dump that Dump has written.
func (s *Server) Restore(ctx context.Context, database string, dump io.Reader) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_restore"), "--exit-on-error", "--single-transaction",
		"--no-password", "--host="+s.socket, "--username="+RoleAdmin, "--dbname="+database)
	cmd.Env, cmd.Dir = environ, "/"
	cmd.Stdin, cmd.WaitDelay = dump, dumpStopTimeout
	return runDumpProgram(cmd)
}

// runDumpProgram runs a program and adds what it has printed to its error.
func runDumpProgram(cmd *exec.Cmd) error {
	var message bytes.Buffer
	cmd.Stderr = &message
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(message.String()))
	}
	return nil
}
