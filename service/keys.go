package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"glasshouse/sandbox"
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

// Authenticate returns the key of a secret. It returns FaultUnauthorized if the key is unknown, revoked or expired.
func (s *Service) Authenticate(ctx context.Context, secret string) (sandbox.Key, error) {
	now := s.Clock()
	key, err := s.keyOf(ctx, HashKey(secret), now)
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
	key, err := s.History.KeyByHash(ctx, hash[:])
	switch fault := sandbox.FaultOf(err); {
	case err == nil:
		s.keysMu.Lock()
		defer s.keysMu.Unlock()
		if len(s.keys) > maxCachedKeys {
			clear(s.keys)
		}
		s.keys[hash] = cachedKey{key, now}
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
// the key that created it.
func (s *Service) CreateKey(ctx context.Context, caller, want sandbox.Key) (sandbox.Key, string, error) {
	if want.User == "" {
		want.User = caller.User
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
	case want.Role == sandbox.RoleAdmin:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "role", Detail: "only an admin may create an admin's key",
		}
	}
	if want.ExpiresAt != nil && want.ExpiresAt.Before(s.Clock()) {
		return want, "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_at", Detail: "it is in the past"}
	}
	if end := caller.ExpiresAt; end != nil && (want.ExpiresAt == nil || want.ExpiresAt.After(*end)) {
		want.ExpiresAt = end // otherwise a key could outlive its end through another key
	}
	if caller.Role != sandbox.RoleAdmin {
		want.Account, want.Limits = caller.Account, caller.Limits
	}
	secret := NewSecret()
	hash := HashKey(secret)
	want.ID, want.CreatedAt = s.NewID(), s.Clock()
	return want, secret, s.History.CreateKey(ctx, want, hash[:])
}

// ListKeys lists the caller's keys; for an admin, those of all users.
func (s *Service) ListKeys(ctx context.Context, caller sandbox.Key) ([]sandbox.Key, error) {
	return s.History.Keys(ctx, visibleUser(caller))
}

// RevokeKey revokes a key. In this process it takes effect immediately.
func (s *Service) RevokeKey(ctx context.Context, caller sandbox.Key, id string) error {
	if caller.Role == sandbox.RoleAgent {
		return sandbox.Errorf(sandbox.FaultForbidden,
			"an agent's key may not revoke keys; use a developer's or an admin's key")
	}
	err := s.History.RevokeKey(ctx, id, visibleUser(caller))
	s.keysMu.Lock()
	clear(s.keys)
	s.keysMu.Unlock()
	return err
}

// visibleUser returns the user whose records the caller may see; "" means all users.
func visibleUser(caller sandbox.Key) string {
	if caller.Role == sandbox.RoleAdmin {
		return ""
	}
	return caller.User
}
