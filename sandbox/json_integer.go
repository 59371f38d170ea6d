package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxIntegers is how many integers with a fraction or an exponent UnmarshalIntegers takes. No body has more fields that
// are integers.
const maxIntegers = 16

// UnmarshalIntegers is json.Unmarshal that takes 1.0 and 1e2 for integers, as JSON Schema does. It returns FaultInvalid
// for an integer out of range.
func UnmarshalIntegers(text []byte, v any) error {
	for n := 0; ; n++ {
		err := json.Unmarshal(text, v)
		mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok || n == maxIntegers {
			return err
		}
		literal, isNumber := strings.CutPrefix(mismatch.Value, "number ")
		integer := integral(literal)
		if isNumber && integer == literal && isWhole(literal) && mismatch.Type.Kind() != reflect.Float64 {
			return &Error{Fault: FaultInvalid, Field: mismatch.Field,
				Detail: fmt.Sprintf("the number %.40s is out of range; an integer has at most 18 digits here", literal)}
		}
		at := bytes.LastIndex(text[:min(int(mismatch.Offset)+1, len(text))], []byte(literal))
		if !isNumber || integer == literal || at < 0 {
			return err
		}
		text = slices.Concat(text[:at], []byte(integer), text[at+len(literal):])
	}
}

// isWhole reports whether a JSON number has no fraction.
func isWhole(number string) bool {
	value, err := strconv.ParseFloat(number, 64)
	return err != nil || math.Trunc(value) == value // the error is that of a number out of the range of a float64
}

// integral returns a JSON number without its fraction if that is zero, and otherwise as it is.
func integral(number string) string {
	if value, err := strconv.ParseFloat(number, 64); err == nil && math.Trunc(value) == value &&
		math.Abs(value) < 1<<63 && strings.ContainsAny(number, ".eE") {
		return strconv.FormatInt(int64(value), 10)
	}
	return number
}

var numbers = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*`)

// WithIntegers returns a JSON text whose numbers are integers where UnmarshalIntegers takes them for such.
func WithIntegers(text []byte) []byte {
	return numbers.ReplaceAllFunc(text, func(token []byte) []byte {
		if token[0] == '"' {
			return token
		}
		return []byte(integral(string(token)))
	})
}
