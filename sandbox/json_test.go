package sandbox_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"glasshouse/sandbox"
)

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	manyKeys := func(last string) string {
		var b strings.Builder
		for n := range 1000 {
			fmt.Fprintf(&b, `"k%d":%d,`, n, n)
		}
		return "{" + b.String() + `"` + last + `":0}`
	}
	for text, want := range map[string]string{
		`null`: "", ` [1, -2.5e10, true, "a\"b\\"] `: "", `{"a":{"a":[{"a":1},{"a":2}]},"b":"a"}`: "",
		`"é 😀 \ud83d\ude00 \\ud800"`: "", `{"":1,"\u0000":2}`: "", manyKeys("last"): "",
		"[" + strings.Repeat("9", 4300) + "]": "", "-" + strings.Repeat("9", 4300): "", `1e308`: "", `1e-400`: "",
		"0." + strings.Repeat("1", 9000): "",

		"\"\xff\"": "byte 1 is not UTF-8", "\"\xed\xa0\x80\"": "not UTF-8", "\"é\xc3\"": "byte 3",
		"\xef\xbb\xbf1": "not JSON", "\"\x01\"": "not JSON",
		``: "not JSON", `{"a":1`: "not JSON", `1 2`: "not JSON", `NaN`: "not JSON", `[1,]`: "not JSON",
		`"\ud800"`: "lone surrogate", `"\uDC00"`: "lone surrogate", `"\ud83d\ud83d\ude00"`: "lone surrogate",
		`"\ud83dx"`: "lone surrogate", `"\ud83d\n"`: "lone surrogate", `{"\ud800":1}`: "lone surrogate",
		`"x\\\udfff"`: "lone surrogate", `"\ud83d\ude00\ude00"`: "lone surrogate",
		`{"a":1,"a":2}`: "byte 7 twice", `{"a":1,"\u0061":2}`: "twice", `[{"b":{},"a":[{}],"b":1}]`: "twice",
		`{"😀":1,"\ud83d\ude00":2}`: "twice", manyKeys("k0"): "twice", manyKeys("k999"): "twice",
		strings.Repeat("9", 4301): "4301 digits", `{"a":[-` + strings.Repeat("1", 5000) + `]}`: "5000 digits",
		`1e400`: "out of range", `[-1.5E+999]`: "out of range",
	} {
		err := sandbox.CheckJSON([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.80q: got %v, want %q", text, err, want)
		}
	}
}

// A text of many short keys takes only a few times its size.
func TestCheckJSONTakesLittleMemory(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"":0`)
	for n := range 500_000 {
		fmt.Fprintf(&b, `,"%x":0`, n)
	}
	b.WriteString("}")
	result := testing.Benchmark(func(tb *testing.B) {
		for range tb.N {
			if err := sandbox.CheckJSON(b.Bytes()); err != nil {
				tb.Fatal(err)
			}
		}
	})
	if got, want := result.AllocedBytesPerOp(), int64(8*b.Len()); got > want {
		t.Errorf("got %d bytes for a text of %d, want at most %d", got, b.Len(), want)
	}
}

// FuzzCheckJSON compares CheckJSON with a reader that decodes every value.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"x\n\ud83d\ude00"],"b":null}`, `{"a":1,"\u0061":2}`, `"\ud800\udc00\ud800"`, "\"\xff\"",
		`1e999`,
		`[[[{"":{}}]]]`, `"\\ud800"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := utf8.Valid(text) && json.Valid(text) && isStrict(text)
		if err := sandbox.CheckJSON(text); (err == nil) != want {
			t.Fatalf("%q: got %v, want it accepted: %v", text, err, want)
		}
	})
}

var (
	surrogatePair = regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..`)
	anySurrogate  = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// isStrict reads valid JSON token by token.
func isStrict(text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	type level struct {
		keys  map[string]bool // nil in a list
		count int
	}
	levels := []level{{}}
	for {
		top := &levels[len(levels)-1]
		from := decoder.InputOffset()
		token, err := decoder.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				top.count++
				levels = append(levels, level{keys: map[string]bool{}})
			case '[':
				top.count++
				levels = append(levels, level{})
			default:
				levels = levels[:len(levels)-1]
			}
			continue
		case string:
			raw := strings.ReplaceAll(string(text[from:decoder.InputOffset()]), `\\`, "-")
			if anySurrogate.MatchString(surrogatePair.ReplaceAllString(raw, "-")) {
				return false
			}
			if top.keys != nil && top.count%2 == 0 {
				if top.keys[v] {
					return false
				}
				top.keys[v] = true
			}
		case json.Number:
			if strings.ContainsAny(string(v), ".eE") {
				if _, err := v.Float64(); err != nil {
					return false
				}
			} else if len(strings.TrimPrefix(string(v), "-")) > sandbox.MaxIntegerDigits {
				return false
			}
		}
		top.count++
	}
}

// A search that begins again after each escape would take hours for such a string, and the test would not end.
func TestManyEscapesAreCheckedOnce(t *testing.T) {
	text := append([]byte(`{"text":"`), bytes.Repeat([]byte(`\n\u0000`), 2<<20)...)
	if err := sandbox.CheckJSON(append(text, `"}`...)); err != nil {
		t.Errorf("got %v, want the text accepted", err)
	}
}
