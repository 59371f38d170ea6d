package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
)

// writeCertificate replaces the files of a certificate for 127.0.0.1, as a renewal does, and returns the certificate.
func writeCertificate(t *testing.T, certFile, keyFile string, end time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(end.Unix()), NotBefore: end.Add(-30 * 24 * time.Hour),
		NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		keyFile: {Type: "PRIVATE KEY", Bytes: secret}, certFile: {Type: "CERTIFICATE", Bytes: raw},
	} {
		err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600)
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// The log warns before a certificate ends and when it has ended. A renewal is used without a restart, and one that
// cannot be read does not end the service.
func TestCertificateIsRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writeCertificate(t, certFile, keyFile, time.Now().Add(time.Hour))
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	c, err := newCertificate(certFile, keyFile, log)
	if err != nil {
		t.Fatal(err)
	}
	logged := func(want string) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := strings.Count(out.String(), want); n != 1 {
			t.Errorf("got %d lines with %q, want 1: %s", n, want, out.String())
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	server := newServer(http.NotFoundHandler(), limit.NewConnections(10, nil), quiet)
	server.TLSConfig = c.config()
	go server.ServeTLS(listener, "", "")
	defer server.Close()
	now := time.Now()
	request := func(trusted *x509.Certificate) error {
		roots := x509.NewCertPool()
		roots.AddCert(trusted)
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: roots,
			Time: func() time.Time { return now }})
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := request(first); err != nil {
		t.Errorf("a valid certificate: %v", err)
	}
	logged("cert.pem expires at ")
	now = now.Add(2 * time.Hour)
	c.mu.Lock()
	c.now = func() time.Time { return now }
	c.mu.Unlock()
	for range 2 {
		if err := request(first); err == nil || !strings.Contains(err.Error(), "expired") {
			t.Errorf("an expired certificate: got %v, want that it is expired", err)
		}
	}
	logged("cert.pem expired at ")
	second := writeCertificate(t, certFile, keyFile, now.Add(20*24*time.Hour))
	if err := request(second); err != nil {
		t.Errorf("the renewed certificate: %v", err)
	}
	if err := os.WriteFile(certFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := request(second); err != nil {
		t.Errorf("with a certificate that cannot be read: got %v, want the last one in use", err)
	}
	logged("cannot be read")
}
