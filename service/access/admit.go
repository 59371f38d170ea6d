package access

import (
	"context"
	"fmt"
	"io"
	"math"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Caller is who sends a request.
type Caller struct {
	Key    sandbox.Key
	Secret string          // of the key, or "" for a person whom a proxy names
	Rate   limit.RateState // the requests that the key has left; set by Admit
}

// Identify returns the caller who has a secret. Its errors are those of Authenticate; the caller then has no key.
func (s *Service) Identify(ctx context.Context, secret string) (Caller, error) {
	key, err := s.Authenticate(ctx, secret)
	return Caller{Key: key, Secret: secret}, err
}

// Admit admits a request with a secret. The returned context is that of the request, and ends when the key is revoked
// or expires: its cause is then FaultUnauthorized. A large body that BodyReader reads counts until end is called, or
// limit.BodyDone. The caller calls end when the request was handled.
//
// Admit returns FaultUnauthorized for a secret that is not valid, and FaultLimit if the user's requests hold too many
// connections, if the user leaves too many responses unread, or if the key has no requests left.
func (s *Service) Admit(ctx context.Context, secret string) (_ context.Context, _ Caller, end func(), err error) {
	caller, err := s.Identify(ctx, secret)
	if err != nil {
		return nil, caller, nil, err
	}
	return s.AdmitCaller(ctx, caller)
}

// AdmitCaller is Admit for a caller who is known. The caller that it returns has a Rate even if there are no requests
// left.
func (s *Service) AdmitCaller(
	ctx context.Context, caller Caller,
) (_ context.Context, _ Caller, end func(), err error) {
	if caller.Rate, err = s.takeRequest(caller.Key); err != nil {
		return nil, caller, nil, err
	}
	ctx, release, err := s.AdmitUser(ctx, caller.Key.User)
	if err != nil {
		return nil, caller, nil, err
	}
	ctx, stop := s.WhileValid(ctx, caller.Secret)
	return ctx, caller, func() { stop(); release() }, nil
}

// AdmitUser is Admit for a request that has no key, and counts for a user: its connection, its response and its body.
func (s *Service) AdmitUser(ctx context.Context, user string) (_ context.Context, end func(), err error) {
	if err := s.Unread.Begin(ctx, user, errUnread); err != nil {
		return nil, nil, err
	}
	release, err := s.Connections.Hold(ctx, user)
	if err != nil {
		return nil, nil, errConnections
	}
	ctx, endBody := s.BeginBody(ctx, user)
	return limit.WithUser(ctx, user), func() { endBody(); release() }, nil
}

// AdmitClient admits a client that sends its secret in a message, on a connection that has a bound of its own. Its
// errors are those of Admit.
func (s *Service) AdmitClient(ctx context.Context, secret string) (sandbox.Key, error) {
	key, err := s.Authenticate(ctx, secret)
	if err != nil {
		return key, err
	}
	return key, s.Count(key)
}

// Count counts one more request of a key, which came with a request or on a connection that was admitted. It returns
// FaultLimit if the key has no requests left.
func (s *Service) Count(key sandbox.Key) error {
	_, err := s.takeRequest(key)
	return err
}

func (s *Service) takeRequest(key sandbox.Key) (limit.RateState, error) {
	s.Users.Seen(key.User, key.Limits.Weight)
	state, ok := s.quotas.requests.Take(key.Account, s.keyLimits(key).Requests, s.Clock())
	if ok {
		return state, nil
	}
	wait := int(math.Ceil(state.RetryAfter.Seconds()))
	return state, &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: wait,
		Detail: fmt.Sprintf("this key may make %d requests per minute; retry in %d s", state.Limit, wait),
	}
}

// BeginBody returns the context of another body that a user sends on a connection that was admitted, such as a message
// of a WebSocket. The caller calls end when the body was handled.
func (s *Service) BeginBody(ctx context.Context, user string) (_ context.Context, end func()) {
	return s.bodies.Begin(ctx, user)
}

// BodyReader returns a reader of the body of an admitted request. Read returns FaultLimit if the body is large and too
// many large bodies of the user arrive or wait until their code can begin.
func BodyReader(ctx context.Context, body io.Reader) io.Reader {
	return limit.BodyReader(ctx, body, errLargeBodies)
}

// HoldLarge takes one of the user's slots for responses with records until the response is read: a record takes several
// times its size while it is encoded. It returns FaultLimit if none becomes free in time.
func (s *Service) HoldLarge(ctx context.Context, user string) error {
	return s.Unread.HoldLarge(ctx, user, errLargeResponses)
}

// LostKey returns FaultUnauthorized if the key of a request was revoked or expired since the request was admitted. ctx
// is the context of Admit.
func LostKey(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if cause := context.Cause(ctx); sandbox.FaultOf(cause) == sandbox.FaultUnauthorized {
		return cause
	}
	return nil
}

var (
	errConnections error = &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 2,
		Detail: "your requests hold all connections of the service that one user may have while others are active; " +
			"close streams and WebSockets that you need no more, or wait for answers",
	}
	errUnread error = &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 2,
		Detail: fmt.Sprintf("more than %d MiB of your responses are unread; read them and retry",
			limit.MaxUnreadBytes>>20),
	}
	errLargeResponses error = &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 2,
		Detail: fmt.Sprintf("%d of your large responses are unread; read them and retry", limit.MaxLargeResponses),
	}
	errLargeBodies error = &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 2,
		Detail: "too many of your large requests are still being received, or wait until their code can begin; " +
			"send fewer at the same time",
	}
)
