package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"glasshouse/sandbox"
)

// repeatedKey begins the error of decode for a key that is given twice; the path of the key follows.
const repeatedKey = "this key is given twice: "

// checkBody returns an error if a strict JSON reader refuses a body. Parts of it go into history and into answers as
// they are. If an object has a key twice, the error is FaultInvalid and names the key: encoding/json would use the last
// value, and other readers use the first.
func checkBody(text []byte) error {
	err := sandbox.CheckJSON(text)
	if err == nil || utf8.Valid(text) && !json.Valid(text) {
		return nil // encoding/json says where it is not JSON
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true))
	if repeated := decoder.SkipValue(); errors.Is(repeated, jsontext.ErrDuplicateName) {
		return repeatedKeyError(jsonPath(repeated))
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "the body is not strict JSON in UTF-8: %s", err)
}

func repeatedKeyError(path string) *sandbox.Error {
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: path, Detail: "this key is given twice; give it once"}
}

// jsonPath returns the place in a JSON text to which an error belongs, such as files[0].path.
func jsonPath(err error) string {
	var pointer jsontext.Pointer
	var semantic *jsonv2.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic):
		pointer = syntactic.JSONPointer
	case errors.As(err, &semantic):
		pointer = semantic.JSONPointer
	}
	var path strings.Builder
	for token := range pointer.Tokens() {
		switch {
		case strings.Trim(token, "0123456789") == "" && token != "":
			path.WriteString("[" + token + "]")
		case path.Len() > 0:
			path.WriteString("." + token)
		default:
			path.WriteString(token)
		}
	}
	return path.String()
}

// unmarshalExact is json.Unmarshal for which the case of keys counts. It returns errors for repeated and for unknown
// keys.
func unmarshalExact(text []byte, v any) error {
	return jsonv2.Unmarshal(text, v, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false),
		jsonv2.MatchCaseInsensitiveNames(false), jsontext.AllowDuplicateNames(false), jsonv2.RejectUnknownMembers(true))
}

// decodeStrict decodes a JSON object without unknown fields, for routes that huma does not decode. Its error
// names the field, or the place where the JSON is malformed.
func decodeStrict(text []byte, v any) error {
	if err := checkBody(text); err != nil {
		return err
	}
	err := unmarshalExact(text, v)
	var mismatch *jsonv2.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonv2.ErrUnknownName):
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: jsonPath(err),
			Detail: "this field does not exist; GET /openapi.json lists the fields"}
	case errors.As(err, &mismatch):
		detail := "a JSON " + mismatch.JSONKind.String() + " is of the wrong type; GET /openapi.json has the right one"
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: jsonPath(err), Detail: detail}
	}
	return sandbox.Errorf(sandbox.FaultMalformed, "the body is not valid JSON: %s", err)
}

// object has the schema of sandbox.Object.
type object struct{}

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
// context and the parameters of a large body out of validation, because any object is valid there.
func decode(text []byte, v any) error {
	toValidate, isValidated := v.(*any) // otherwise v is the input, which huma decodes after the validation
	if isValidated {
		err := checkBody(text)
		if known, ok := errors.AsType[*sandbox.Error](err); ok && known.Fault == sandbox.FaultInvalid {
			return errors.New(repeatedKey + known.Field) // huma keeps only the text, where newProblem finds the key
		} else if err != nil {
			return err
		}
	}
	if len(text) <= smallBody {
		return sandbox.UnmarshalIntegers(text, v)
	}
	var body map[string]json.RawMessage
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(text, &body); errors.As(err, &mismatch) {
		return errors.New("the body must be a JSON object")
	} else if err != nil {
		return err
	}
	leaveOut := func(name string) {
		if bytes.HasPrefix(body[name], []byte("{")) {
			body[name] = []byte("{}")
		}
	}
	leaveOut("context")
	values := 0
	for _, raw := range body {
		if values += 1 + sandbox.JSONValueCount(raw); values > maxValues {
			return fmt.Errorf("the body has more than %d values outside of context; pass data as context, or as a file",
				maxValues)
		}
	}
	if !isValidated {
		return sandbox.UnmarshalIntegers(text, v)
	}
	leaveOut("parameters")
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
