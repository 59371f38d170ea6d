package history

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// serveExpired answers as PostgreSQL does until its TLS handshake, with a certificate that has expired. It returns a
// URL that trusts the certificate.
func serveExpired(t *testing.T) (url string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour),
		NotAfter: time.Now().Add(-time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	if err := os.WriteFile(roots, text, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var request [8]byte // SSLRequest
			if _, err := io.ReadFull(conn, request[:]); err == nil {
				_, _ = conn.Write([]byte("S"))
				_ = tls.Server(conn, config).Handshake()
			}
			_ = conn.Close()
		}
	}()
	return "postgres://u@" + listener.Addr().String() + "/d?sslmode=verify-full&sslrootcert=" + roots
}

// A certificate of PostgreSQL that has expired is named at the start. Later it is an outage: new connections fail, and
// their callers wait or get 503.
func TestExpiredCertificateOfPostgreSQLIsNamed(t *testing.T) {
	t.Parallel()
	url := serveExpired(t)
	_, logger := newTestLog()
	_, err := open(context.Background(), Config{URL: url, Dir: t.TempDir()}, logger, time.Now, patient)
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("at the start: got %v, want that the certificate has expired", err)
	}
	if _, err := pgx.Connect(context.Background(), url); !hasFault(unavailable(err), sandbox.FaultUnavailable) {
		t.Errorf("a connection of a service that runs: got %v, want %s", unavailable(err), sandbox.FaultUnavailable)
	}
}
