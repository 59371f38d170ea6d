package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

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

// object is a JSON object as it was sent, so that no number loses digits on the way; nil
// for null, or where there was none.
type object json.RawMessage

// UnmarshalJSON keeps a copy of the text.
func (o *object) UnmarshalJSON(text []byte) error {
	switch text[0] {
	case '{':
		*o = bytes.Clone(text)
	case 'n':
		*o = nil
	case '[':
		return &json.UnmarshalTypeError{Value: "array", Type: reflect.TypeFor[object]()}
	case '"':
		return &json.UnmarshalTypeError{Value: "string", Type: reflect.TypeFor[object]()}
	case 't', 'f':
		return &json.UnmarshalTypeError{Value: "bool", Type: reflect.TypeFor[object]()}
	default:
		return &json.UnmarshalTypeError{Value: "number", Type: reflect.TypeFor[object]()}
	}
	return nil
}

// Schema says so.
func (object) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

const (
	smallBody = 64 << 10 // bytes, of which no check takes much
	maxValues = 100_000  // of a larger body, beside its context
)

// decode is json.Unmarshal, within bounds: huma wants all of a body as Go values, which are
// many times as large, and says of each what is wrong with it. The context of a large one,
// which is the code's to read, is not looked into.
func decode(text []byte, v any) error {
	if len(text) <= smallBody {
		return json.Unmarshal(text, v)
	}
	var body map[string]json.RawMessage
	var kind *json.UnmarshalTypeError
	if err := json.Unmarshal(text, &body); errors.As(err, &kind) {
		return errors.New("it must be an object")
	} else if err != nil {
		return err
	}
	if bytes.HasPrefix(body["context"], []byte("{")) {
		body["context"] = []byte("{}")
	}
	values := 0
	for _, raw := range body {
		if values += 1 + sandbox.JSONValueCount(raw); values > maxValues {
			return fmt.Errorf("it has more than %d values beside its context; give data as context, or as a file", maxValues)
		}
	}
	all, ok := v.(*any)
	if !ok {
		return json.Unmarshal(text, v)
	}
	checked := make(map[string]any, len(body))
	for name, raw := range body {
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		checked[name] = value
	}
	*all = checked
	return nil
}
