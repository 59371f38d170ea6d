package service

import (
	"context"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

// KeyOfPerson returns the key of a person whom an identity provider or a proxy has named. History does not have this
// key. Its ID and its account are always the same for a person, so all tokens and sign-ins of one share the limits. It
// returns FaultForbidden for a user whose name lists and logs could not show.
func KeyOfPerson(p signin.Person) (sandbox.Key, error) {
	if err := checkName("user_id", p.User); err != nil {
		return sandbox.Key{}, sandbox.Errorf(sandbox.FaultForbidden, "the name of the user from the identity provider "+
			"or the proxy cannot be used: %s", err)
	}
	id := p.Source + ":" + p.User
	return sandbox.Key{
		ID: id, Name: "identity provider", User: p.User, Role: p.Role, ExpiresAt: p.ExpiresAt, Account: id,
		Databases: p.Databases,
	}, nil
}

// sessionPrefix begins the ids of the keys that SignIn makes.
const sessionPrefix = "session-"

// keepSessions is how long the key of a sign-in is listed after it has expired.
const keepSessions = 30 * 24 * time.Hour

// SignIn makes the key of a person who has signed in to the pages, and returns it with its secret. It expires after
// SessionAge. Revoking it signs the person out.
func (s *Service) SignIn(ctx context.Context, p signin.Person) (sandbox.Key, string, error) {
	person, err := KeyOfPerson(p)
	if err != nil {
		return sandbox.Key{}, "", err
	}
	key, now := person, s.Clock()
	key.ID, key.Name, key.CreatedAt = sessionPrefix+s.NewID(), "sign-in to the pages", now
	key.ExpiresAt, key.CreatedBy, key.CreatedWith = new(now.Add(s.SessionAge).UTC()), person.User, person.ID
	if err := s.History.ForgetKeys(ctx, person.Account, now.Add(-keepSessions)); err != nil {
		return sandbox.Key{}, "", err
	}
	secret := NewSecret()
	hash := HashKey(secret)
	if err := s.History.CreateKey(ctx, key, hash[:], 0); err != nil {
		return sandbox.Key{}, "", err
	}
	return key, secret, s.audit(ctx, person, sandbox.AuditCreated, "key/"+key.ID, key.User)
}

// SignOut revokes the key of a secret if SignIn made it. The keys that the person made with it stay until they expire.
func (s *Service) SignOut(ctx context.Context, secret string) error {
	key, err := s.Authenticate(ctx, secret)
	switch {
	case sandbox.FaultOf(err) == sandbox.FaultUnauthorized: // it is not valid any more
		return nil
	case err != nil || !strings.HasPrefix(key.ID, sessionPrefix):
		return err
	}
	err = s.History.RevokeKeys(ctx, key.ID, s.Clock(), func([]sandbox.Key) ([]string, error) {
		return []string{key.ID}, nil
	})
	s.forgetKeys()
	if err != nil {
		return err
	}
	return s.audit(ctx, key, sandbox.AuditRevoked, "key/"+key.ID, "")
}
