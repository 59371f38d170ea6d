// Package dbtest gives tests a real PostgreSQL of their own.
package dbtest

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
)

// Start starts a private server in a fresh folder; both go with the test.
func Start(t testing.TB) *embedded.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	// The server's account, where the test is root's, must be able to enter.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Connect opens a plain connection, with no check between: for proving that the
// server itself refuses.
func Connect(ctx context.Context, url string) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
