package signin

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"
)

// errUnknownKey is the error for a token that no key of the provider has signed.
var errUnknownKey = errors.New("no key of the identity provider has signed it")

// algorithms are those with which a provider may sign. All are asymmetric: the public key is not a secret.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512,
	oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// discovery is what a provider says of itself: its endpoints and its keys. The set of keys of go-oidc is not used,
// because it keeps keys that the provider has withdrawn, and asks the provider for each token with an unknown key.
type discovery struct {
	provider          *oidc.Provider
	keys              oidc.StaticKeySet
	wantsSecretInBody bool // of the request for a token, instead of the header Authorization
}

// discover reads the configuration and the keys of the provider. ctx has the client.
func discover(ctx context.Context, issuer string) (*discovery, error) {
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, err
	}
	var document struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, err
	}
	keys, err := readKeys(ctx, document.Keys)
	if err != nil {
		return nil, fmt.Errorf("the keys at %s: %w", document.Keys, err)
	}
	return &discovery{
		provider: provider, keys: oidc.StaticKeySet{PublicKeys: keys},
		wantsSecretInBody: slices.Contains(document.Methods, "client_secret_post") &&
			!slices.Contains(document.Methods, "client_secret_basic"),
	}, nil
}

// readKeys returns the keys for signatures of a JSON Web Key Set. It ignores keys of unknown kinds, as RFC 7517 says.
func readKeys(ctx context.Context, address string) ([]crypto.PublicKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := ctx.Value(oauth2.HTTPClient).(*http.Client).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, err
	}
	var keys []crypto.PublicKey
	for _, item := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(item) != nil || !key.Valid() || key.Use == "enc" {
			continue
		}
		switch key.Key.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
			keys = append(keys, key.Key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("none of them can be used to verify a signature")
	}
	return keys, nil
}

// verify checks the signature, the issuer and the times of a token. The caller checks the audience. verify returns
// errUnknownKey if no key has signed the token.
func (d *discovery) verify(ctx context.Context, c Config, token string) (*oidc.IDToken, error) {
	keys := &keySet{StaticKeySet: d.keys}
	verified, err := oidc.NewVerifier(c.Issuer, keys, &oidc.Config{
		SkipClientIDCheck: true, SupportedSigningAlgs: algorithms, Now: c.Clock,
	}).Verify(ctx, token)
	if keys.isUnknown { // go-oidc does not wrap the error of a key set
		return nil, errUnknownKey
	}
	return verified, err
}

// keySet is the key set of one verification.
type keySet struct {
	oidc.StaticKeySet
	isUnknown bool // no key has signed the token
}

// VerifySignature implements oidc.KeySet.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.StaticKeySet.VerifySignature(ctx, token)
	k.isUnknown = err != nil
	return payload, err
}
