package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/sandbox"
)

// checkBody returns an error if a strict JSON reader refuses a body. Parts of it go into history and into answers as
// they are.
func checkBody(text []byte) error {
	if err := sandbox.CheckJSON(text); err != nil && (!utf8.Valid(text) || json.Valid(text)) {
		return fmt.Errorf("the body is not strict JSON in UTF-8: %w", err)
	}
	return nil // or encoding/json says where it is not JSON
}

// decodeStrict decodes a JSON object without unknown fields, for routes that huma does not decode. Its error
// names the field, or the place where the JSON is malformed.
func decodeStrict(raw []byte, v any) error {
	if err := checkBody(raw); err != nil {
		return sandbox.Errorf(sandbox.FaultMalformed, "%s", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	const unknown = "json: unknown field "
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		detail := "a JSON " + mismatch.Value + " is of the wrong type; GET /openapi.json has the right one"
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: mismatch.Field, Detail: detail}
	case strings.HasPrefix(err.Error(), unknown):
		field := strings.Trim(strings.TrimPrefix(err.Error(), unknown), `"`)
		return &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: field, Detail: "this field does not exist; GET /openapi.json lists the fields",
		}
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "the body is not valid JSON: %s", err)
}

// object is a JSON object as the client sent it, so that its numbers keep all digits. It is nil if the
// client sent null or nothing.
type object json.RawMessage

// UnmarshalJSON keeps a copy of the text, and rejects other JSON types.
func (o *object) UnmarshalJSON(text []byte) error {
	other := map[byte]string{'[': "array", '"': "string", 't': "bool", 'f': "bool"}
	switch text[0] {
	case '{':
		*o = bytes.Clone(text)
		return nil
	case 'n':
		*o = nil
		return nil
	}
	value := other[text[0]]
	if value == "" {
		value = "number"
	}
	return &json.UnmarshalTypeError{Value: value, Type: reflect.TypeFor[object]()}
}

// Schema implements huma.SchemaProvider.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

const (
	smallBody = 64 << 10 // bytes; validating such a body is cheap for any content
	maxValues = 100_000  // of a larger body, without its context
)

// decode decodes a body for huma with bounded cost. huma decodes a body into Go values, which take many times the
// body's size, and may report an error for each value. Therefore decode limits the number of values. It leaves the
// context of a large body out of validation, because any object is valid there.
func decode(text []byte, v any) error {
	if err := checkBody(text); err != nil {
		return err
	}
	if len(text) <= smallBody {
		return json.Unmarshal(text, v)
	}
	var body map[string]json.RawMessage
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(text, &body); errors.As(err, &mismatch) {
		return errors.New("the body must be a JSON object")
	} else if err != nil {
		return err
	}
	if bytes.HasPrefix(body["context"], []byte("{")) {
		body["context"] = []byte("{}")
	}
	values := 0
	for _, raw := range body {
		if values += 1 + sandbox.JSONValueCount(raw); values > maxValues {
			return fmt.Errorf("the body has more than %d values outside of context; pass data as context, or as a file",
				maxValues)
		}
	}
	toValidate, ok := v.(*any)
	if !ok {
		return json.Unmarshal(text, v)
	}
	decoded := make(map[string]any, len(body))
	for name, raw := range body {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		decoded[name] = value
	}
	*toValidate = decoded
	return nil
}
