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

// keyAge is how long a key is believed without asking history again: a key that
// another process revokes still works so long.
const keyAge = time.Second

// While history does not answer, within keyPatience, a key that it knew is believed for
// keyGrace: as long as runs may begin then.
const (
	keyGrace    = 5 * time.Second
	keyPatience = time.Second
)

type seenKey struct {
	key sandbox.Key
	at  time.Time
}

// HashKey is what is kept of a secret. The secret has 256 random bits, so a plain
// SHA-256 cannot be turned back by guessing.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

// NewSecret makes the secret of a key.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return "gh_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Authenticate returns the key that a secret stands for. FaultUnauthorized where
// there is none, or it was revoked or has expired.
func (s *Service) Authenticate(ctx context.Context, secret string) (sandbox.Key, error) {
	hash := HashKey(secret)
	now := s.Clock()
	s.keysMu.Lock()
	seen, ok := s.keys[hash]
	s.keysMu.Unlock()
	if age := now.Sub(seen.at); !ok || age > keyAge {
		grace := ok && age <= keyGrace
		if grace {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, keyPatience)
			defer cancel()
		}
		key, err := s.History.KeyByHash(ctx, hash[:])
		var known *sandbox.Error
		switch {
		case err == nil:
			seen = seenKey{key, now}
			s.keysMu.Lock()
			if len(s.keys) > 10_000 {
				clear(s.keys)
			}
			s.keys[hash] = seen
			s.keysMu.Unlock()
		case !errors.As(err, &known):
			return key, err
		case known.Fault == sandbox.FaultNotFound:
			return key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key is not known")
		case !grace || known.Fault != sandbox.FaultUnavailable:
			return key, err
		}
	}
	switch {
	case seen.key.RevokedAt != nil:
		return seen.key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key was revoked")
	case seen.key.ExpiresAt != nil && now.After(*seen.key.ExpiresAt):
		return seen.key, sandbox.Errorf(sandbox.FaultUnauthorized, "this key has expired")
	}
	return seen.key, nil
}

// CreateKey makes a key and returns it with its secret, which is shown only now.
// An agent makes none; a developer makes keys of its own that may do no more than
// it may; an admin any. None outlives its maker.
func (s *Service) CreateKey(ctx context.Context, caller, want sandbox.Key) (sandbox.Key, string, error) {
	if want.User == "" {
		want.User = caller.User
	}
	switch {
	case caller.Role == sandbox.RoleAdmin:
	case caller.Role != sandbox.RoleDeveloper:
		return want, "", sandbox.Errorf(sandbox.FaultForbidden, "an agent's key cannot make keys; a developer or an admin can")
	case want.User != caller.User:
		return want, "", &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "user_id", Detail: "a developer makes keys of its own only"}
	case want.Limits != sandbox.KeyLimits{}:
		return want, "", &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "limits", Detail: "only an admin sets the limits of a key; yours hold for the keys that you make, together"}
	case want.Role == sandbox.RoleAdmin:
		return want, "", &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "role", Detail: "only an admin makes an admin's key"}
	}
	if want.ExpiresAt != nil && want.ExpiresAt.Before(s.Clock()) {
		return want, "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "expires_at", Detail: "this time is past"}
	}
	if end := caller.ExpiresAt; end != nil && (want.ExpiresAt == nil || want.ExpiresAt.After(*end)) {
		want.ExpiresAt = end // or a key that is to end could go on as another, for ever
	}
	if caller.Role != sandbox.RoleAdmin {
		want.Account, want.Limits = caller.Account, caller.Limits
	}
	secret := NewSecret()
	hash := HashKey(secret)
	want.ID, want.CreatedAt = s.NewID(), s.Clock()
	return want, secret, s.History.CreateKey(ctx, want, hash[:])
}

// Keys lists the caller's keys; an admin's view has everybody's.
func (s *Service) ListKeys(ctx context.Context, caller sandbox.Key) ([]sandbox.Key, error) {
	return s.History.Keys(ctx, scope(caller))
}

// RevokeKey ends a key, at once in this process.
func (s *Service) RevokeKey(ctx context.Context, caller sandbox.Key, id string) error {
	if caller.Role == sandbox.RoleAgent {
		return sandbox.Errorf(sandbox.FaultForbidden, "an agent's key cannot revoke keys; a developer or an admin can")
	}
	err := s.History.RevokeKey(ctx, id, scope(caller))
	s.keysMu.Lock()
	clear(s.keys)
	s.keysMu.Unlock()
	return err
}

func scope(caller sandbox.Key) string {
	if caller.Role == sandbox.RoleAdmin {
		return ""
	}
	return caller.User
}
