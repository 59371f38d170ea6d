package service

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"glasshouse/sandbox"
)

const (
	// keyCacheAge is how long a key is used without asking history: a key that another
	// process revokes works so much longer.
	keyCacheAge = time.Second
	// While history is unavailable, a cached key is used for keyGracePeriod, which is as long
	// as new runs are accepted then. keyTimeout is how long history may take for such a key.
	keyGracePeriod = 5 * time.Second
	keyTimeout     = time.Second
	// maxCachedKeys bounds the memory of the cache; a full cache is emptied.
	maxCachedKeys = 10_000
)

type cachedKey struct {
	key    sandbox.Key
	readAt time.Time
}

// HashKey returns what is stored of a secret. The secret has 256 random bits, so nobody
// can find it from a plain SHA-256 by guessing.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// NewSecret returns a new secret.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return "gh_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Authenticate returns the key of a secret. FaultUnauthorized means that there is none, or
// that it was revoked or has expired.
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
	var known *sandbox.Error
	switch {
	case err == nil:
		s.keysMu.Lock()
		defer s.keysMu.Unlock()
		if len(s.keys) > maxCachedKeys {
			clear(s.keys)
		}
		s.keys[hash] = cachedKey{key, now}
		return key, nil
	case !errors.As(err, &known):
		return key, err
	case known.Fault == sandbox.FaultNotFound:
		return key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key is not known")
	case mayUseCached && known.Fault == sandbox.FaultUnavailable:
		return cached.key, nil
	}
	return key, err
}

// CreateKey makes a key like want, and returns it with its secret, which is shown only
// once. An agent makes no keys. A developer makes keys of their own that may do no more
// than the developer. An admin makes any key. No key outlives the key that made it.
func (s *Service) CreateKey(ctx context.Context, caller, want sandbox.Key) (sandbox.Key, string, error) {
	if want.User == "" {
		want.User = caller.User
	}
	switch {
	case caller.Role == sandbox.RoleAdmin:
	case caller.Role != sandbox.RoleDeveloper:
		return want, "", sandbox.Errorf(sandbox.FaultForbidden,
			"an agent's key cannot make keys; a developer or an admin can")
	case want.User != caller.User:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "user_id", Detail: "a developer makes keys of their own only",
		}
	case want.Limits != sandbox.KeyLimits{}:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "limits",
			Detail: "only an admin sets the limits of a key; yours hold for the keys that you make, together",
		}
	case want.Role == sandbox.RoleAdmin:
		return want, "", &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "role", Detail: "only an admin makes an admin's key",
		}
	}
	if want.ExpiresAt != nil && want.ExpiresAt.Before(s.Clock()) {
		return want, "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_at", Detail: "this time is past"}
	}
	if end := caller.ExpiresAt; end != nil && (want.ExpiresAt == nil || want.ExpiresAt.After(*end)) {
		want.ExpiresAt = end // else a key could outlast its end by making another
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

// RevokeKey ends a key, at once in this process.
func (s *Service) RevokeKey(ctx context.Context, caller sandbox.Key, id string) error {
	if caller.Role == sandbox.RoleAgent {
		return sandbox.Errorf(sandbox.FaultForbidden, "an agent's key cannot revoke keys; a developer or an admin can")
	}
	err := s.History.RevokeKey(ctx, id, visibleUser(caller))
	s.keysMu.Lock()
	clear(s.keys)
	s.keysMu.Unlock()
	return err
}

// visibleUser returns the user whose records the caller sees; "" means all users.
func visibleUser(caller sandbox.Key) string {
	if caller.Role == sandbox.RoleAdmin {
		return ""
	}
	return caller.User
}
