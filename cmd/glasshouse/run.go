package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
)

// app is every part, joined.
type app struct {
	service  *service.Service
	isolator *isolate.Isolator
	host     *supervisor.Supervisor
	store    *history.Store
	reader   *dbaccess.Reader
	postgres *embedded.Server // nil where databases were given
	vault    *blob.Store
	lock     *os.File
	log      *logrus.Logger
	secret   string // the admin key's
}

// sessions hands out host's sessions as service wants them.
type sessions struct{ *supervisor.Supervisor }

func (s sessions) Open(ctx context.Context, box sandbox.Sandbox, code string) (service.Session, error) {
	session, err := s.Supervisor.Open(ctx, box, code)
	if err != nil {
		return nil, err
	}
	return session, nil
}

// workshop hands out sessions that share a folder, likewise.
type workshop struct{ *supervisor.CompatRunner }

func (w workshop) Open(ctx context.Context, box sandbox.Sandbox) (service.Session, error) {
	session, err := w.CompatRunner.Open(ctx, box)
	if err != nil {
		return nil, err
	}
	return session, nil
}

func (a *app) workshop() workshop { return workshop{a.host.NewCompatRunner()} }

func newLog(c config) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(os.Stderr)
	if c.logJSON {
		log.SetFormatter(&logrus.JSONFormatter{})
	} else {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05"})
	}
	return log
}

// coldStart is how long a command waits for its sandbox: Python imports its packages
// first, which takes a slow machine longer than a request should wait.
const coldStart = time.Minute

// forOne builds what one command needs, which is the only one that asks, for this code.
func forOne(ctx context.Context, c config, code string) (*app, error) {
	c.queue, c.sets = max(c.queue, coldStart), isolate.WarmSetsFor(code)
	return build(ctx, c, func(string) {})
}

// build starts every part; the wall and the databases come up side by side. say
// is told each step. What was started is stopped again where a part fails.
func build(ctx context.Context, c config, say func(string)) (a *app, err error) {
	a = &app{log: newLog(c)}
	defer func() {
		if err != nil {
			a.close(context.WithoutCancel(ctx), c)
			a = nil
		}
	}()
	ceiling := policy.Policy{MaxMemoryMB: c.maxMemoryMB, CPUPercent: c.maxCPUPercent}
	if ceiling.EnableNetworkAccess, ceiling.AllowedHosts, err = c.network(); err != nil {
		return a, err
	}
	if err = os.MkdirAll(c.dataDir, 0o755); err != nil {
		return a, fmt.Errorf("make the data folder: %w; choose another with --data-dir", err)
	}
	if a.lock, err = lockFolder(c.dataDir); err != nil {
		return a, err
	}
	if c.facadeFolder != "" {
		if err = os.MkdirAll(c.facadeFolder, 0o755); err != nil {
			return a, fmt.Errorf("make the facade's folder: %w; choose another with --facade-folder", err)
		}
	}
	var wall sync.WaitGroup
	var wallErr error
	wall.Add(1)
	go func() {
		defer wall.Done()
		a.isolator, wallErr = isolate.Open(c.wall(a.log.Warnf))
	}()
	say("raising the wall and warming Python")
	err = a.databases(ctx, c, say)
	wall.Wait()
	if err = errors.Join(err, wallErr); err != nil {
		return a, err
	}
	if a.vault, err = blob.Open(c.dataDir); err != nil {
		return a, err
	}
	signing, err := signingKey(c.dataDir)
	if err != nil {
		return a, err
	}
	a.host = supervisor.New(a.isolator, c.queue)
	a.host.Uploads.All, a.host.Uploads.User = c.uploadsMB<<20, c.uploadsUserMB<<20
	a.service = service.New(service.Config{
		Supervisor: sessions{a.host}, Environments: a.isolator, Reader: a.reader, Writer: a.reader, History: a.store, Blobs: a.vault, Default: policy.Default(), Ceiling: ceiling,
		PerUser: c.perUser, InAll: c.inAll, Parallel: c.parallel, Mask: strings.FieldsFunc(c.maskParameters, func(r rune) bool { return r == ',' || r == ' ' }), Log: a.log,
		RecordingRetention: service.RecordingRetention{Age: c.keepAge, Bytes: int64(c.keepMB) << 20},
		SigningKey:         signing, KeyLimits: c.keyLimits, ArtifactAge: c.artifactAge, ArtifactBytes: c.artifactMB << 20,
	})
	a.secret, err = a.adminKey(ctx, c)
	return a, err
}

// databases starts the embedded server where one is needed and opens both doors.
func (a *app) databases(ctx context.Context, c config, say func(string)) (err error) {
	historyURL, knowledgeURL, writerURL := c.databaseURL, c.knowledgeURL, c.writerURL
	if historyURL == "" || knowledgeURL == "" {
		say("starting the private PostgreSQL in " + filepath.Join(c.dataDir, "postgres"))
		if a.postgres, err = embedded.Start(ctx, embedded.Config{Dir: c.dataDir, Log: a.log}); err != nil {
			return err
		}
		if historyURL == "" {
			historyURL = a.postgres.URL(embedded.RoleHistory, embedded.DatabaseHistory)
		}
		if knowledgeURL == "" {
			say("loading the demo data, up to today")
			if err = a.postgres.LoadDemo(ctx); err != nil {
				return err
			}
			knowledgeURL = a.postgres.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
			writerURL = a.postgres.URL(embedded.RoleWriter, embedded.DatabaseKnowledge)
		}
	}
	if a.store, err = history.Open(ctx, history.Config{URL: historyURL, Dir: filepath.Join(c.dataDir, "history"), AsynchronousCommit: !c.synchronous}, a.log); err != nil {
		return err
	}
	left, err := a.store.Recover(ctx)
	if err != nil {
		return err
	}
	if left > 0 {
		a.log.Warnf("%d executions were open when the service last ended; they are recorded as cancelled", left)
	}
	if a.reader, err = dbaccess.Open(ctx, dbaccess.Config{
		URL: knowledgeURL, WriterURL: writerURL, AllowFunctions: c.functions(), MaskColumns: c.hiddenColumns(), MaxConns: int32(c.queries), PerUser: c.queriesPerUser, PerSandbox: c.queriesPerBox,
	}); err != nil {
		return err
	}
	return because(a.reader.AuditLogin(ctx))
}

// close ends every part, the service first.
func (a *app) close(ctx context.Context, c config) {
	if a.service != nil {
		drain, cancel := context.WithTimeout(ctx, c.drain)
		a.service.Drain(drain)
		cancel()
	}
	if a.isolator != nil {
		a.isolator.Close()
	}
	if a.vault != nil {
		_ = a.vault.Close()
	}
	if a.reader != nil {
		a.reader.Close()
	}
	if a.store != nil {
		if err := a.store.Close(); err != nil {
			a.log.Warn(err)
		}
	}
	if a.postgres != nil {
		if err := a.postgres.Close(); err != nil {
			a.log.Warn(err)
		}
	}
	if a.lock != nil {
		_ = a.lock.Close()
	}
}

// lockFolder sees that one service at a time uses the folder.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, errInUse{dir}
	}
	return f, nil
}

// signingKey returns what URLs are signed with, making it where it is missing: they
// work after a restart, too.
func signingKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "signing.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) >= 32 {
		return key, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key = []byte(rand.Text() + rand.Text())
	return key, os.WriteFile(path, key, 0o600)
}

type errInUse struct{ dir string }

func (e errInUse) Error() string {
	return "another glasshouse uses " + e.dir + ": stop it, or choose another --data-dir"
}

// adminKey returns the secret of the first admin key, making it where it is
// missing, and sees that history knows it.
func (a *app) adminKey(ctx context.Context, c config) (string, error) {
	path := filepath.Join(c.dataDir, "admin.key")
	secret := c.adminKey
	if secret == "" {
		if body, err := os.ReadFile(path); err == nil {
			secret = strings.TrimSpace(string(body))
		}
	}
	if secret == "" {
		secret = service.NewSecret()
	}
	if len(secret) < 16 {
		return "", errors.New("the admin key is shorter than 16 characters: choose a longer --admin-key")
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return "", err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return "", err
	}
	hash := service.HashKey(secret)
	_, err := a.store.KeyByHash(ctx, hash[:])
	var known *sandbox.Error
	if errors.As(err, &known) && known.Fault == sandbox.FaultNotFound {
		key := sandbox.Key{ID: "admin-" + fmt.Sprintf("%x", hash[:4]), Name: "first admin key", User: "admin", Role: sandbox.RoleAdmin, CreatedAt: a.service.Clock()}
		err = a.store.CreateKey(ctx, key, hash[:])
	}
	return secret, err
}
