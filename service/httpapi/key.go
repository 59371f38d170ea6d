package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

type createKeyInput struct {
	Body struct {
		Name           keyName           `json:"name"`
		User           keyName           `json:"user_id,omitempty" doc:"The key's user; by default the caller's own"`
		Role           sandbox.Role      `json:"role,omitempty" enum:"agent,developer,admin" default:"agent"`
		ExpiresAt      *time.Time        `json:"expires_at,omitempty"`
		Limits         sandbox.KeyLimits `json:"limits,omitempty" doc:"Only an admin may set them"`
		Databases      []string          `json:"databases,omitempty" minItems:"1" maxItems:"1000" doc:"The databases that the key may use; default: the caller's"`
		AllowedModules []string          `json:"allowed_modules,omitempty" nullable:"false" maxItems:"1000" maxLength:"255" doc:"Only these modules in the key's sandboxes, of those that the operator allows; only an admin may set it; none: those of the profile"`
		BlockedModules []string          `json:"blocked_modules,omitempty" nullable:"false" maxItems:"1000" maxLength:"255" doc:"Modules to block in the key's sandboxes; only an admin may set it"`
	}
}

// keyName is the name of a key or of its user: one line of visible characters.
type keyName string

// Schema implements huma.SchemaProvider.
func (keyName) Schema(huma.Registry) *huma.Schema {
	const visible = `[\p{L}\p{M}\p{N}\p{P}\p{S}]`
	s := &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(200),
		Pattern:            "^" + visible + `([\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}]*` + visible + ")?$",
		PatternDescription: "one line of visible characters, without white space at its ends"}
	s.PrecomputeMessages()
	return s
}

type createdKey struct {
	sandbox.Key
	Secret string `json:"key" doc:"The secret. It is shown only in this response"`
}

type keyList struct {
	Keys []sandbox.Key `json:"keys"`
}

type revokeKeyInput struct {
	ID       string `path:"id"`
	KeepMade bool   `query:"keep_made" doc:"Keep the keys that were created with it; only an admin may set it"`
}

type revokedKeys struct {
	Message string `json:"message"`
	access.Revocation
}

func (a *api) routeKeys(r *routes) {
	route(a, r, r.describe("POST", "/keys", "createKey", tagKeys, "Create a key", http.StatusForbidden), a.createKey)
	route(a, r, r.describe("GET", "/keys", "listKeys", tagKeys, "List the caller's keys, or all keys for an admin",
		http.StatusForbidden), a.listKeys)
	route(a, r, r.describe("DELETE", "/keys/{id}", "revokeKey", tagKeys,
		"Revoke a key, and all keys that were created with it", http.StatusForbidden, http.StatusConflict), a.revokeKey)
}

func (a *api) createKey(ctx context.Context, caller sandbox.Key, in *createKeyInput) (*createdKey, error) {
	b := in.Body
	key, secret, err := a.access.CreateKey(ctx, caller, sandbox.Key{Name: string(b.Name), User: string(b.User),
		Role: b.Role, ExpiresAt: b.ExpiresAt, Limits: b.Limits, Databases: b.Databases,
		AllowedModules: b.AllowedModules, BlockedModules: b.BlockedModules})
	return &createdKey{key, secret}, err
}

func (a *api) listKeys(ctx context.Context, caller sandbox.Key, _ *struct{}) (*keyList, error) {
	keys, err := a.access.ListKeys(ctx, caller)
	return &keyList{keys}, err
}

func (a *api) revokeKey(ctx context.Context, caller sandbox.Key, in *revokeKeyInput) (*revokedKeys, error) {
	revocation, err := a.access.RevokeKey(ctx, caller, in.ID, in.KeepMade)
	return &revokedKeys{fmt.Sprintf("keys revoked: %d", len(revocation.Revoked)), revocation}, err
}
