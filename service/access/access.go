// Package access decides who may use the service, and how much of it.
//
//	a := access.New(access.Config{...})
//	ctx, caller, end, err := a.Admit(ctx, secret) // a request
//	defer end()
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Admit requests: find the key of the caller, and hold its user to the limits of connections, unread responses,
//     requests and large bodies (admit.go). Every transport calls it.
//  2. Create, list and revoke keys (key.go), and sign persons in (signin.go).
//  3. Hold the executions of a key to its limits, and count their CPU time (quota.go); and let only so many inspections
//     happen at the same time (slots.go).
//  4. Decide whose records a caller sees, and note in the audit log who has seen the records of others (audit.go).
//
// New starts one goroutine, which saves the CPU time of keys. Close ends it.
package access

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

// History stores keys, the CPU time that they used, and the audit log.
type History interface {
	// Keys. ForgetKeys deletes those of an account that expired before a time.
	CreateKey(ctx context.Context, k sandbox.Key, hash []byte, most int) error
	KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error)
	Keys(ctx context.Context, user string) ([]sandbox.Key, error)
	RevokeKeys(ctx context.Context, id string, at time.Time, choose func([]sandbox.Key) (ids []string, err error)) error
	ForgetKeys(ctx context.Context, account string, before time.Time) error

	// The CPU time that accounts have used, by day.
	CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error)
	AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error

	// Who did what to the records of others.
	AddAudit(context.Context, sandbox.AuditEntry) error
}

// Environments are the sets of packages that code may run with.
type Environments interface {
	Environments() []sandbox.Environment
}

// Config configures a Service.
type Config struct {
	History      History
	Databases    []string           // the names of those that keys may use; the first is the default
	Default      policy.Policy      // of sandboxes; it has the modules that a key may restrict
	Environments Environments       // they have further modules
	KeyLimits    sandbox.KeyLimits  // of keys without limits of their own
	Inspections  int                // maximum number of concurrent ones, shared by users; at least minInspections
	AdminKeyID   string             // the key that the service was started with, which cannot be revoked; "" means none
	Provider     *signin.Provider   // of identities; nil: only keys authenticate
	SessionAge   time.Duration      // maximum age of a sign-in to the pages with Provider or a link
	Users        *limit.Users       // are told who sends requests; nil: nobody asks
	Connections  *limit.Connections // are held by the requests of callers; nil: without a bound
	Unread       *limit.Responses   // of users; nil: those of this Service only
	Log          logrus.FieldLogger

	Clock func() time.Time // nil: the machine's clock, in UTC
	NewID func() string    // nil: random bits as hex
}

// Service admits requests. New returns one; Close ends it.
type Service struct {
	Config
	bodies limit.Bodies
	quotas quotas
	views  recentViews

	inspections *limit.Shared // work that runs no user code

	keysMu      sync.Mutex
	keys        map[[32]byte]cachedKey
	revocations int // so far; a key that was read before one is not cached after it

	linksMu sync.Mutex
	links   []SignInLink // that nobody has opened; the oldest first

	stop     chan struct{} // closed to end runSaver
	stopOnce sync.Once
	saver    sync.WaitGroup
}

// New starts a Service.
func New(config Config) *Service {
	if config.Clock == nil {
		config.Clock = func() time.Time { return time.Now().UTC() }
	}
	if config.NewID == nil {
		config.NewID = NewID
	}
	if config.Unread == nil {
		config.Unread = limit.NewResponses(limit.MaxUnreadBytes)
	}
	s := &Service{
		Config: config, bodies: limit.NewBodies(), keys: map[[32]byte]cachedKey{}, stop: make(chan struct{}),
		inspections: limit.NewShared(max(config.Inspections, minInspections), config.Users),
	}
	s.saver.Go(s.runSaver)
	return s
}

// Close saves the CPU time that keys have used since the last time. It is called when no execution runs any more, and
// may be called again.
func (s *Service) Close() {
	s.stopOnce.Do(func() { close(s.stop) })
	s.saver.Wait()
	s.logSaveUsage()
}

// NewID returns 126 random bits and two zeros as hex, so that 21 characters of base64 can name the same object: clients
// of some compatibility APIs accept only such IDs.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	b[15] &^= 3
	return hex.EncodeToString(b[:])
}
