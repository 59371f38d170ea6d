package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

const (
	// keyCacheAge is how long a cached key is used without a query of history. A key that another process revokes works
	// for that much longer.
	keyCacheAge = time.Second
	// keyGracePeriod is how long a cached key is used if history is unavailable: as long as new runs are accepted then.
	// keyTimeout limits the query for such a key.
	keyGracePeriod = 5 * time.Second
	keyTimeout     = time.Second
	// maxCachedKeys bounds the memory of the cache; a full cache is emptied.
	maxCachedKeys = 10_000
)

type cachedKey struct {
	key    sandbox.Key
	readAt time.Time
}

// HashKey returns the hash under which a secret is stored. A secret has 256 random bits, so it cannot be guessed from a
// plain SHA-256.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// NewSecret returns a new secret.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return "gh_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Authenticate returns the key of a secret. If there is an identity provider, the secret may be one of its tokens; the
// key is then that of its person. Authenticate returns FaultUnauthorized if the key or the token is unknown, revoked or
// expired.
func (s *Service) Authenticate(ctx context.Context, secret string) (sandbox.Key, error) {
	if s.Provider == nil || !signin.IsToken(secret) {
		return s.authenticateHash(ctx, HashKey(secret))
	}
	person, err := s.Provider.Person(ctx, secret)
	if err != nil {
		return sandbox.Key{}, err
	}
	return KeyOfPerson(person)
}

// keyCheckInterval is the time between two checks of the key of a request that takes long.
const keyCheckInterval = 2 * time.Second

// WhileValid returns a context that also ends when the key of a secret, which was valid, is revoked or expires. Its
// cause is then FaultUnauthorized. A secret that is empty is valid: it is that of a request whose person a proxy named.
// The caller calls stop to release the context.
func (s *Service) WhileValid(ctx context.Context, secret string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if secret == "" {
		return ctx, func() { cancel(nil) }
	}
	timer := time.AfterFunc(keyCheckInterval, func() { // most requests have ended by then
		ticker := time.NewTicker(keyCheckInterval)
		defer ticker.Stop()
		for {
			if err := s.KeyLost(ctx, secret); err != nil {
				cancel(err)
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// KeyLost returns FaultUnauthorized if the key of a secret is not valid any more. If history or the identity provider
// cannot tell, the key stays valid for what has begun.
func (s *Service) KeyLost(ctx context.Context, secret string) error {
	_, err := s.Authenticate(ctx, secret)
	if sandbox.FaultOf(err) == sandbox.FaultUnauthorized {
		return err
	}
	return nil
}

func (s *Service) authenticateHash(ctx context.Context, hash [32]byte) (sandbox.Key, error) {
	now := s.Clock()
	key, err := s.keyOf(ctx, hash, now)
	switch {
	case err != nil:
		return key, err
	case key.RevokedAt != nil:
		return key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key was revoked")
	case key.ExpiresAt != nil && now.After(*key.ExpiresAt):
		return key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key has expired")
	}
	return key, nil
}

// keyOf returns the key with this hash, from the cache or from history.
func (s *Service) keyOf(ctx context.Context, hash [32]byte, now time.Time) (sandbox.Key, error) {
	s.keysMu.Lock()
	cached, isCached := s.keys[hash]
	revocations := s.revocations
	s.keysMu.Unlock()
	age := now.Sub(cached.readAt)
	if isCached && age <= keyCacheAge {
		return cached.key, nil
	}
	mayUseCached := isCached && age <= keyGracePeriod
	if mayUseCached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, keyTimeout)
		defer cancel()
	}
	ctx = limit.WithUser(ctx, "") // a revoked key ends, however much its user reads
	key, err := s.History.KeyByHash(ctx, hash[:])
	switch fault := sandbox.FaultOf(err); {
	case err == nil:
		s.keysMu.Lock()
		defer s.keysMu.Unlock()
		if len(s.keys) > maxCachedKeys {
			clear(s.keys)
		}
		if s.revocations == revocations { // otherwise the key may be revoked by now
			s.keys[hash] = cachedKey{key, now}
		}
		return key, nil
	case fault == sandbox.FaultNotFound:
		return key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key is unknown")
	case mayUseCached && fault == sandbox.FaultUnavailable:
		return cached.key, nil
	}
	return key, err
}

// CreateKey creates a key like want and returns it with its secret, which is not stored. An agent may create no keys, a
// developer only keys for themselves with no more rights than their own, an admin any key. A key expires no later than
// the key that created it, and may use no more databases. A user of the service itself gets keys from its own only.
func (s *Service) CreateKey(ctx context.Context, caller, want sandbox.Key) (sandbox.Key, string, error) {
	if want.User == "" {
		want.User = caller.User
	}
	if err := errors.Join(sandbox.CheckName("name", want.Name), sandbox.CheckName("user_id", want.User)); err != nil {
		return want, "", err
	}
	if want.User != caller.User {
		if err := sandbox.CheckNotReserved("user_id", want.User); err != nil {
			return want, "", err
		}
	}
	switch {
	case caller.Role == sandbox.RoleAdmin:
	case caller.Role != sandbox.RoleDeveloper:
		return want, "", sandbox.Errorf(sandbox.FaultForbidden,
			"an agent's key may not create keys; use a developer's or an admin's key")
	case want.User != caller.User:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "user_id", Detail: "a developer may create keys only for themselves",
		}
	case want.Limits != sandbox.KeyLimits{}:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "limits",
			Detail: "only an admin may set the limits of a key; keys that you create share your limits",
		}
	case len(want.AllowedModules)+len(want.BlockedModules) > 0:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "allowed_modules",
			Detail: "only an admin may set the modules of a key; keys that you create have yours",
		}
	case want.Role == sandbox.RoleAdmin:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "role", Detail: "only an admin may create an admin's key",
		}
	}
	if want.ExpiresAt != nil {
		want.ExpiresAt = new(want.ExpiresAt.UTC()) // a year after 9999 in UTC has no form in JSON
		if want.ExpiresAt.Before(s.Clock()) || want.ExpiresAt.Year() > 9999 {
			return want, "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_at",
				Detail: "it must be in the future, and not after the year 9999 in UTC"}
		}
	}
	if end := caller.ExpiresAt; end != nil && (want.ExpiresAt == nil || want.ExpiresAt.After(*end)) {
		want.ExpiresAt = end // otherwise a key could outlive its end through another key
	}
	var err error
	if want.Databases, err = s.databasesOfKey(caller, want.Databases); err != nil {
		return want, "", err
	}
	if caller.Role != sandbox.RoleAdmin {
		want.Account, want.Limits = caller.Account, caller.Limits
		want.AllowedModules, want.BlockedModules = caller.AllowedModules, caller.BlockedModules
	} else if err := policy.CheckModules(
		want.AllowedModules, want.BlockedModules, s.Default, sandbox.ModulesOf(s.Environments.Environments()),
	); err != nil {
		return want, "", sandbox.PolicyFault(err)
	}
	secret := NewSecret()
	hash := HashKey(secret)
	want.ID, want.CreatedAt, want.CreatedBy, want.CreatedWith = s.NewID(), s.Clock(), caller.User, caller.ID
	most := maxValidKeys
	if caller.Role == sandbox.RoleAdmin {
		most = 0
	}
	if err := s.History.CreateKey(ctx, want, hash[:], most); err != nil {
		return want, "", err
	}
	return want, secret, s.Audit(ctx, caller, sandbox.AuditCreated, "key/"+want.ID, want.User)
}

// maxValidKeys is how many valid keys a user may have and still create another. Whoever has stolen a key could create
// any number, which all must be revoked again.
const maxValidKeys = 1000

// databasesOfKey returns the databases of a key that a caller makes with a list of names; nil means all those of the
// caller, also those to come. It returns FaultInvalid for a name that the caller may not use.
func (s *Service) databasesOfKey(caller sandbox.Key, names []string) ([]string, error) {
	if names == nil {
		return caller.Databases, nil
	}
	known := slices.DeleteFunc(slices.Clone(s.Databases),
		func(name string) bool { return !MaySeeDatabase(caller, name) })
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "databases",
				Detail: fmt.Sprintf("there is no database %q that you may use; the databases are %s",
					sandbox.Shorten(name, sandbox.MaxDatabaseName), strings.Join(known, ", "))}
		}
	}
	// In the order of the service, in which the first is the default.
	return slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(names, name) }), nil
}

// ListKeys lists the caller's keys; for an admin, those of all users.
func (s *Service) ListKeys(ctx context.Context, caller sandbox.Key) ([]sandbox.Key, error) {
	return s.History.Keys(ctx, VisibleUser(caller))
}

// Revocation is the outcome of RevokeKey: the ids of keys.
type Revocation struct {
	Revoked []string `json:"revoked" doc:"The ids of the keys that this request revoked"`
	Kept    []string `json:"kept" doc:"The ids of the valid keys that were created with them, and stay"`
}

// RevokeKey revokes a key and, unless keepMade is set, the keys that were created with it, directly or not: whoever has
// stolen a key may have created others. In this process it takes effect immediately. Only an admin may revoke an
// admin's key or set keepMade. RevokeKey returns FaultBusy for the key that the service was started with.
func (s *Service) RevokeKey(ctx context.Context, caller sandbox.Key, id string, keepMade bool) (Revocation, error) {
	out := Revocation{Revoked: []string{}, Kept: []string{}}
	switch {
	case caller.Role == sandbox.RoleAgent:
		return out, sandbox.Errorf(sandbox.FaultForbidden,
			"an agent's key may not revoke keys; use a developer's or an admin's key")
	case keepMade && caller.Role != sandbox.RoleAdmin:
		return out, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "keep_made",
			Detail: "only an admin may keep the keys that a revoked key created"}
	}
	err := s.History.RevokeKeys(ctx, id, s.Clock(), func(keys []sandbox.Key) ([]string, error) {
		switch root := keys[0]; {
		case !MaySee(caller, root.User):
			return nil, sandbox.Errorf(sandbox.FaultNotFound, "there is no such key, or it is not yours")
		case root.Role == sandbox.RoleAdmin && caller.Role != sandbox.RoleAdmin:
			return nil, sandbox.Errorf(sandbox.FaultForbidden, "only an admin may revoke an admin's key")
		}
		for n, k := range keys {
			switch isRoot := n == 0; {
			case !isRoot && keepMade:
				if k.RevokedAt == nil {
					out.Kept = append(out.Kept, k.ID)
				}
			case k.ID == s.AdminKeyID:
				return nil, sandbox.Errorf(sandbox.FaultBusy, "the service was started with the key %s: start it "+
					"with another --admin-key, or remove admin.key from its data folder and restart it, then revoke "+
					"this key", k.ID)
			case k.RevokedAt == nil:
				out.Revoked = append(out.Revoked, k.ID)
			}
		}
		return out.Revoked, nil
	})
	s.forgetKeys()
	for _, revoked := range out.Revoked {
		if err == nil {
			err = s.Audit(ctx, caller, sandbox.AuditRevoked, "key/"+revoked, "")
		}
	}
	return out, err
}

// forgetKeys empties the cache after a revocation.
func (s *Service) forgetKeys() {
	s.keysMu.Lock()
	defer s.keysMu.Unlock()
	clear(s.keys)
	s.revocations++
}
