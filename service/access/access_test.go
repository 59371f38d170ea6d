package access_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// memory is a history in memory.
type memory struct {
	mu    sync.Mutex
	keys  map[string]sandbox.Key // by their hashes
	cpu   map[usageOfDay]time.Duration
	audit []sandbox.AuditEntry
	fails error // of every call
}

type usageOfDay struct {
	account string
	day     time.Time
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = err
}

func (m *memory) CreateKey(_ context.Context, k sandbox.Key, hash []byte, _ int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails == nil {
		m.keys[string(hash)] = k
	}
	return m.fails
}

func (m *memory) KeyByHash(_ context.Context, hash []byte) (sandbox.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[string(hash)]
	if m.fails == nil && !ok {
		return k, sandbox.Errorf(sandbox.FaultNotFound, "no key")
	}
	return k, m.fails
}

func (m *memory) Keys(context.Context, string) ([]sandbox.Key, error) { panic("not used") }

// RevokeKeys revokes the one key with the ID: those that it made are a matter of the store.
func (m *memory) RevokeKeys(
	_ context.Context, id string, at time.Time, choose func([]sandbox.Key) ([]string, error),
) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for hash, k := range m.keys {
		if k.ID != id {
			continue
		}
		ids, err := choose([]sandbox.Key{k})
		if err != nil {
			return err
		}
		if slices.Contains(ids, id) {
			k.RevokedAt = &at
			m.keys[hash] = k
		}
	}
	return m.fails
}

func (m *memory) ForgetKeys(context.Context, string, time.Time) error { return nil }

func (m *memory) CPUUsed(_ context.Context, account string, day time.Time) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cpu[usageOfDay{account, day}], m.fails
}

func (m *memory) AddCPU(_ context.Context, account string, day time.Time, used time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cpu[usageOfDay{account, day}] += used
	return m.fails
}

func (m *memory) AddAudit(_ context.Context, e sandbox.AuditEntry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.audit = append(m.audit, e)
	return m.fails
}

// Environments implements access.Environments: there is only the default environment.
func (m *memory) Environments() []sandbox.Environment {
	return []sandbox.Environment{{Name: "default"}}
}

// clock moves only when the test moves it.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) Now() time.Time { return *c.now.Load() }

func (c *clock) move(by time.Duration) { c.now.Store(new(c.Now().Add(by))) }

// fixture is a service with a history in memory and a clock that the test controls.
type fixture struct {
	*access.Service
	memory *memory
	clock  *clock
}

// start starts a service. change may change its configuration.
func start(t *testing.T, change ...func(*access.Config)) fixture {
	t.Helper()
	f := fixture{
		memory: &memory{keys: map[string]sandbox.Key{}, cpu: map[usageOfDay]time.Duration{}}, clock: &clock{},
	}
	f.clock.now.Store(new(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)))
	config := access.Config{
		History: f.memory, Databases: []string{"knowledge"}, Default: policy.Default(), Environments: f.memory,
		Log: logrus.New(), Clock: f.clock.Now,
	}
	for _, c := range change {
		c(&config)
	}
	f.Service = access.New(config)
	t.Cleanup(f.Close)
	return f
}

// newKey stores a key of a user, and returns its secret.
func (f fixture) newKey(t *testing.T, user string, limits sandbox.KeyLimits) string {
	t.Helper()
	admin := sandbox.Key{ID: "admin", User: "root", Role: sandbox.RoleAdmin}
	_, secret, err := f.CreateKey(t.Context(), admin,
		sandbox.Key{Name: "k", User: user, Role: sandbox.RoleAgent, Account: user, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func isFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	if err == nil || sandbox.FaultOf(err) != want {
		t.Errorf("got error %v, want fault %s", err, want)
	}
}
