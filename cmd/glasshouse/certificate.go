package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// renewalNotice is how long before its end the log warns of a certificate.
const renewalNotice = 14 * 24 * time.Hour

// certificate is the TLS certificate of the service. It reads its files again when they have changed, so a renewal
// needs no restart. If they cannot be read, the last certificate stays in use.
type certificate struct {
	certFile, keyFile string
	log               logrus.FieldLogger
	now               func() time.Time

	mu     sync.Mutex
	loaded *tls.Certificate
	files  [2]os.FileInfo // of loaded
	noted  string         // what the log says about the end of loaded
}

// newCertificate reads a certificate and its private key.
func newCertificate(certFile, keyFile string, log logrus.FieldLogger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	_, err := c.get(nil)
	return c, err
}

// config returns the configuration of a server with the certificate.
func (c *certificate) config() *tls.Config { return &tls.Config{GetCertificate: c.get} }

// get is the GetCertificate of a tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		if c.loaded == nil {
			return nil, err
		}
		c.log.WithError(err).Warn("the renewed TLS certificate cannot be read; the last one stays in use")
	}
	c.noteEnd()
	return c.loaded, nil
}

// load reads the files if they have changed. The caller holds mu.
func (c *certificate) load() error {
	var files [2]os.FileInfo
	hasChanged := c.loaded == nil
	for n, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		last := c.files[n]
		hasChanged = hasChanged || !os.SameFile(info, last) || info.Size() != last.Size() ||
			!info.ModTime().Equal(last.ModTime())
		files[n] = info
	}
	if !hasChanged {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.loaded, c.files, c.noted = &pair, files, ""
	return nil
}

// noteEnd logs once that the certificate ends soon, and once that it has ended. Clients decide whether they take it.
// The caller holds mu.
func (c *certificate) noteEnd() {
	end, note := c.loaded.Leaf.NotAfter, ""
	switch left := end.Sub(c.now()); {
	case left <= 0:
		note = fmt.Sprintf("the TLS certificate %s expired at %s and clients refuse it", c.certFile, end.UTC())
	case left < renewalNotice:
		note = fmt.Sprintf("the TLS certificate %s expires at %s", c.certFile, end.UTC())
	}
	if note != "" && note != c.noted {
		c.log.Warn(note + ": renew it; the service reads the new files without a restart")
	}
	c.noted = note
}
