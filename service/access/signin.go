package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
)

// KeyOfPerson returns the key of a person whom an identity provider or a proxy has named. History does not have this
// key. Its ID and its account are always the same for a person, so all tokens and sign-ins of one share the limits. It
// returns FaultForbidden for a user whose name lists and logs could not show, or belongs to the service itself.
func KeyOfPerson(p signin.Person) (sandbox.Key, error) {
	err := cmp.Or(sandbox.CheckName("user_id", p.User), sandbox.CheckNotReserved("user_id", p.User))
	if err != nil {
		return sandbox.Key{}, sandbox.Errorf(sandbox.FaultForbidden, "the name of the user from the identity provider "+
			"or the proxy cannot be used: %s", err)
	}
	id := p.Source + ":" + p.User
	return sandbox.Key{
		ID: id, Name: "identity provider", User: p.User, Role: p.Role, ExpiresAt: p.ExpiresAt, Account: id,
		Databases: p.Databases,
	}, nil
}

// sessionPrefix begins the ids of the keys of sign-ins.
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
	person.ExpiresAt = nil // a token lasts for minutes, the sign-in for SessionAge
	return s.createSession(ctx, person)
}

// SignInWithKey returns the key of a secret, and the secret for the browser in which a person entered it. For the key
// that the service was started with, which does not expire, both are those of a new sign-in.
func (s *Service) SignInWithKey(ctx context.Context, secret string) (sandbox.Key, string, error) {
	key, err := s.Authenticate(ctx, secret)
	if err != nil || key.ID != s.AdminKeyID {
		return key, secret, err
	}
	return s.createSession(ctx, key)
}

// createSession makes the key of a sign-in, which has the rights of the key of the caller and expires no later.
func (s *Service) createSession(ctx context.Context, caller sandbox.Key) (sandbox.Key, string, error) {
	key, now := caller, s.Clock()
	key.ID, key.Name, key.CreatedAt = sessionPrefix+s.NewID(), "sign-in to the pages", now
	key.ExpiresAt = new(earlier(now.Add(s.SessionAge), caller.ExpiresAt).UTC())
	key.CreatedBy, key.CreatedWith = caller.User, caller.ID
	if err := s.History.ForgetKeys(ctx, caller.Account, now.Add(-keepSessions)); err != nil {
		return sandbox.Key{}, "", err
	}
	secret := NewSecret()
	hash := HashKey(secret)
	if err := s.History.CreateKey(ctx, key, hash[:], 0); err != nil {
		return sandbox.Key{}, "", err
	}
	return key, secret, s.Audit(ctx, caller, sandbox.AuditCreated, "key/"+key.ID, key.User)
}

// earlier returns the earlier one of two times. end may be nil, which means never.
func earlier(t time.Time, end *time.Time) time.Time {
	if end != nil && end.Before(t) {
		return *end
	}
	return t
}

const (
	// signInLinkAge is how long a link works.
	signInLinkAge = 10 * time.Minute
	// maxSignInLinks bounds the memory of links that nobody opens. A further link replaces the oldest.
	maxSignInLinks = 100
)

// SignInLink signs the admin who made it in to the pages, once and without a key to type.
type SignInLink struct {
	Token     string
	ExpiresAt time.Time
	maker     sandbox.Key
}

// NewSignInLink returns a link for the caller, who must be an admin. It does not survive the process.
func (s *Service) NewSignInLink(caller sandbox.Key) (SignInLink, error) {
	if caller.Role != sandbox.RoleAdmin {
		return SignInLink{}, sandbox.Errorf(sandbox.FaultForbidden,
			"only an admin may make a sign-in link; enter your key on the sign-in page")
	}
	now := s.Clock()
	link := SignInLink{rand.Text(), earlier(now.Add(signInLinkAge), caller.ExpiresAt).UTC(), caller}
	s.linksMu.Lock()
	defer s.linksMu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(l SignInLink) bool { return now.After(l.ExpiresAt) })
	s.links = append(s.links[max(0, len(s.links)+1-maxSignInLinks):], link)
	return link, nil
}

// errLinkInvalid is the error for the token of a link that does not work, or not any more.
var errLinkInvalid = sandbox.Errorf(sandbox.FaultForbidden, "this sign-in link was used or has expired: run "+
	"`glasshouse login-link` on the machine of the service to get another link, or sign in with a key")

// SignInWithLink makes the key of a sign-in with the token of a link, and returns it with its secret. The link does not
// work again. SignInWithLink returns FaultForbidden if the link was used or has expired, or if its maker's key was
// revoked.
func (s *Service) SignInWithLink(ctx context.Context, token string) (sandbox.Key, string, error) {
	s.linksMu.Lock()
	at := slices.IndexFunc(s.links, func(l SignInLink) bool {
		return subtle.ConstantTimeCompare([]byte(l.Token), []byte(token)) == 1
	})
	var link SignInLink
	if at >= 0 {
		link = s.links[at]
		s.links = slices.Delete(s.links, at, at+1)
	}
	s.linksMu.Unlock()
	if at < 0 || s.Clock().After(link.ExpiresAt) {
		return sandbox.Key{}, "", errLinkInvalid
	}
	key, secret, err := s.createSession(ctx, link.maker)
	if sandbox.FaultOf(err) == sandbox.FaultUnauthorized { // the maker's key was revoked
		err = errLinkInvalid
	}
	return key, secret, err
}

// SignOut revokes the key of a secret if a sign-in made it. The keys that the person made with it stay until they
// expire.
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
	return s.Audit(ctx, key, sandbox.AuditRevoked, "key/"+key.ID, "")
}
