package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"glasshouse/sandbox"
)

// decodeStrict reads a JSON object with no unknown keys, for the routes that are
// not huma's. The error says where it is malformed, or names the field.
func decodeStrict(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: kind.Field, Detail: "it must be of another type than " + kind.Value}
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`), Detail: "there is no such key"}
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "the body is not JSON: %s", err)
}
