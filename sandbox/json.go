package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	fastjson "github.com/segmentio/encoding/json"
)

// AppendJSON appends v as JSON without HTML escapes: "<" takes one byte and not six. Each run waits for two records and
// an answer. encoding/json would take two to three times as long for them. Raw JSON keeps its spaces, fields with
// omitzero are there, and v must embed no pointer.
func AppendJSON(b []byte, v any) ([]byte, error) { return fastjson.Append(b, v, fastjson.SortMapKeys) }

// JSONDepth returns the number of nested lists and objects in valid JSON.
func JSONDepth(text []byte) int {
	depth, deepest := 0, 0
	forEachOutsideStrings(text, func(c byte) {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	})
	return deepest
}

// JSONValueCount returns an upper bound of the number of values inside valid JSON.
func JSONValueCount(text []byte) int {
	n := 0
	forEachOutsideStrings(text, func(c byte) {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	})
	return n
}

// JSONMemberCount returns an upper bound of the number of values directly in a list or an
// object of valid JSON: 1 for an empty one.
func JSONMemberCount(text []byte) int {
	n, depth := 1, 0
	forEachOutsideStrings(text, func(c byte) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				n++
			}
		}
	})
	return n
}

// forEachOutsideStrings calls visit with each byte of valid JSON that is not in a string.
func forEachOutsideStrings(text []byte, visit func(c byte)) {
	inString := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString:
			visit(c)
		}
	}
}

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

// MaxIntegerDigits is the number of digits of the largest integer that Python's JSON reader accepts.
const MaxIntegerDigits = 4300

// CheckJSON returns why a strict reader refuses a text, or nil if every reader accepts it. Such a text is JSON in
// UTF-8 in which no object has a key twice, no surrogate is alone, no integer has more than MaxIntegerDigits, and no
// other number is beyond the range of a float64. encoding/json itself accepts and returns raw values that have these
// faults.
func CheckJSON(text []byte) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("byte %d is not UTF-8", invalidByte(text))
	}
	if !json.Valid(text) {
		return errors.New("it is not JSON")
	}
	return checkMembers(text)
}

// invalidByte returns the index of the first byte that is not UTF-8.
func invalidByte(text []byte) int {
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// checkMembers checks the strings and the numbers of valid JSON.
func checkMembers(text []byte) error {
	keys := keySets.Get().(*keySet)
	defer keys.release()
	isKey := false // the next string is a key
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end, isEscaped := stringEnd(text, i)
			literal := text[i:end]
			if isEscaped && hasLoneSurrogate(literal) {
				return fmt.Errorf("the string at byte %d has a lone surrogate", i)
			}
			if isKey && !keys.add(literal, isEscaped) {
				return fmt.Errorf("an object has the key at byte %d twice", i)
			}
			i = end
			continue
		case c == '{' || c == '[':
			isKey = c == '{'
			keys.push(isKey)
		case c == '}' || c == ']':
			isKey = false
			keys.pop()
		case c == ',':
			isKey = keys.inObject()
		case c == ':':
			isKey = false
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && isNumberByte(text[end]) {
				end++
			}
			if err := checkNumber(text[i:end]); err != nil {
				return fmt.Errorf("the number at byte %d %w", i, err)
			}
			i = end
			continue
		}
		i++
	}
	return nil
}

// stringEnd returns the index after the string literal that starts at start, and whether the literal has escapes. It
// looks at each byte at most twice: a search for the quote after every escape would take a guest's 30 MB for hours.
func stringEnd(text []byte, start int) (end int, isEscaped bool) {
	quote := start
	for i := start + 1; ; {
		if quote < i {
			quote = i + bytes.IndexByte(text[i:], '"')
		}
		escape := bytes.IndexByte(text[i:quote], '\\')
		if escape < 0 {
			return quote + 1, isEscaped
		}
		isEscaped = true
		i += escape + 2
	}
}

// hasLoneSurrogate reports whether a string literal has an escaped surrogate that is not half of a pair.
func hasLoneSurrogate(literal []byte) bool {
	for i := 0; i+6 <= len(literal); i++ {
		if literal[i] != '\\' {
			continue
		}
		if i++; literal[i] != 'u' {
			continue
		}
		switch unit := codeUnit(literal[i+1:]); {
		case unit>>10 == 0xDC00>>10: // a low one without its high one
			return true
		case unit>>10 == 0xD800>>10:
			i += 5
			if !bytes.HasPrefix(literal[i:], []byte(`\u`)) || codeUnit(literal[i+2:])>>10 != 0xDC00>>10 {
				return true
			}
			i++
		}
		i += 4
	}
	return false
}

// codeUnit returns the value of the four hexadecimal digits after \u.
func codeUnit(digits []byte) uint64 {
	unit, _ := strconv.ParseUint(string(digits[:4]), 16, 16) // valid JSON has four digits
	return unit
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-'
}

func checkNumber(number []byte) error {
	if bytes.ContainsAny(number, ".eE") {
		if _, err := strconv.ParseFloat(string(number), 64); err != nil {
			return errors.New("is out of range")
		}
		return nil
	}
	if digits := len(bytes.TrimPrefix(number, []byte("-"))); digits > MaxIntegerDigits {
		return fmt.Errorf("has %d digits, at most %d are allowed", digits, MaxIntegerDigits)
	}
	return nil
}

// keySet has the keys of the objects that are open. It keeps their hashes only: a hostile text of many short keys
// must not take many times its size.
type keySet struct {
	levels []keyLevel
	hashes []uint64 // of the keys of all levels that have no map
	seed   maphash.Seed
}

type keyLevel struct {
	isObject bool
	first    int                 // in hashes
	many     map[uint64]struct{} // instead of hashes, for more than fewKeys
}

const fewKeys = 16

// keySets has empty sets with memory that was used before: each frame of a guest and each body is checked.
var keySets = sync.Pool{New: func() any { return &keySet{} }}

// maxKeptKeys bounds the memory of a set in keySets.
const maxKeptKeys = 1000

// release empties the set, and keeps it for another text unless it is large.
func (k *keySet) release() {
	if cap(k.levels) > maxKeptKeys || cap(k.hashes) > maxKeptKeys {
		return
	}
	clear(k.levels[:cap(k.levels)]) // they refer to maps
	k.levels, k.hashes = k.levels[:0], k.hashes[:0]
	keySets.Put(k)
}

func (k *keySet) inObject() bool { return len(k.levels) > 0 && k.levels[len(k.levels)-1].isObject }

func (k *keySet) push(isObject bool) {
	if len(k.levels) == 0 {
		k.seed = maphash.MakeSeed()
	}
	k.levels = append(k.levels, keyLevel{isObject: isObject, first: len(k.hashes)})
}

func (k *keySet) pop() {
	last := len(k.levels) - 1
	k.hashes, k.levels = k.hashes[:k.levels[last].first], k.levels[:last]
}

// add adds the key of a string literal to the innermost object, and reports whether it is new there.
func (k *keySet) add(literal []byte, isEscaped bool) (isNew bool) {
	key := literal[1 : len(literal)-1]
	if isEscaped {
		var text string
		_ = json.Unmarshal(literal, &text) // a valid string
		key = []byte(text)
	}
	hash := maphash.Bytes(k.seed, key)
	level := &k.levels[len(k.levels)-1]
	if level.many != nil {
		before := len(level.many)
		level.many[hash] = struct{}{}
		return len(level.many) > before
	}
	for _, other := range k.hashes[level.first:] {
		if other == hash {
			return false
		}
	}
	if k.hashes = append(k.hashes, hash); len(k.hashes)-level.first > fewKeys {
		level.many = make(map[uint64]struct{}, 2*fewKeys)
		for _, each := range k.hashes[level.first:] {
			level.many[each] = struct{}{}
		}
		k.hashes = k.hashes[:level.first]
	}
	return true
}
