package service_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
)

// A key that expires can't go on as another that it has made; an admin's that doesn't
// expire makes any.
func TestNoKeyOutlivesItsMaker(t *testing.T) {
	s, _, _, now := start(t)
	ctx := t.Context()
	at := func(d time.Duration) *time.Time { end := s.Clock().Add(d).UTC(); return &end }
	soon, later, sooner := at(time.Hour), at(2*time.Hour), at(time.Minute)
	for _, role := range []sandbox.Role{sandbox.RoleDeveloper, sandbox.RoleAdmin} {
		for _, each := range []struct{ makers, asked, want *time.Time }{
			{soon, nil, soon}, {soon, later, soon}, {soon, sooner, sooner}, {nil, nil, nil}, {nil, later, later},
		} {
			key, secret, err := s.CreateKey(ctx, sandbox.Key{User: "ada", Role: role, ExpiresAt: each.makers}, sandbox.Key{Name: "k", Role: sandbox.RoleAgent, ExpiresAt: each.asked})
			if err != nil {
				t.Fatal(err)
			}
			kept, err := s.Authenticate(ctx, secret)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []*time.Time{key.ExpiresAt, kept.ExpiresAt} {
				if (got == nil) != (each.want == nil) || got != nil && got.Sub(*each.want).Abs() > time.Millisecond {
					t.Errorf("%s until %v, asked for %v: it lives until %v", role, each.makers, each.asked, got)
				}
			}
		}
	}
	_, secret, err := s.CreateKey(ctx, sandbox.Key{User: "ada", Role: sandbox.RoleDeveloper, ExpiresAt: soon}, sandbox.Key{Name: "k", Role: sandbox.RoleAgent})
	if err != nil {
		t.Fatal(err)
	}
	now.move(2 * time.Hour)
	_, err = s.Authenticate(ctx, secret)
	isFault(t, err, sandbox.FaultUnauthorized)
}
