package limit

import "context"

type userKey struct{}

// WithUser returns a context whose operations count for a user.
func WithUser(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

// UserOf returns the user for whom operations of the context count; "" is the service itself.
func UserOf(ctx context.Context) string {
	user, _ := ctx.Value(userKey{}).(string)
	return user
}
