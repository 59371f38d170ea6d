package access_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
)

func TestKeyExpiresNoLaterThanItsCreator(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := t.Context()
	in := func(d time.Duration) *time.Time { return new(s.Clock().Add(d).UTC()) }
	minute, hour, twoHours := in(time.Minute), in(time.Hour), in(2*time.Hour)
	for _, role := range []sandbox.Role{sandbox.RoleDeveloper, sandbox.RoleAdmin} {
		for _, c := range []struct{ maker, asked, want *time.Time }{
			{hour, nil, hour}, {hour, twoHours, hour}, {hour, minute, minute}, {nil, nil, nil}, {nil, twoHours, twoHours},
		} {
			maker := sandbox.Key{User: "ada", Role: role, ExpiresAt: c.maker}
			key, secret, err := s.CreateKey(
				ctx,
				maker,
				sandbox.Key{Name: "k", Role: sandbox.RoleAgent, ExpiresAt: c.asked},
			)
			if err != nil {
				t.Fatal(err)
			}
			stored, err := s.Authenticate(ctx, secret)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []*time.Time{key.ExpiresAt, stored.ExpiresAt} {
				if (got == nil) != (c.want == nil) || got != nil && got.Sub(*c.want).Abs() > time.Millisecond {
					t.Errorf("creator %s until %v, requested until %v: got %v, want %v",
						role, c.maker, c.asked, got, c.want)
				}
			}
		}
	}
	maker := sandbox.Key{User: "ada", Role: sandbox.RoleDeveloper, ExpiresAt: hour}
	_, secret, err := s.CreateKey(ctx, maker, sandbox.Key{Name: "k", Role: sandbox.RoleAgent})
	if err != nil {
		t.Fatal(err)
	}
	s.clock.move(2 * time.Hour)
	_, err = s.Authenticate(ctx, secret)
	isFault(t, err, sandbox.FaultUnauthorized)
}
