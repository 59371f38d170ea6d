package sandbox_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// plainly is how encoding/json writes it.
func plainly(e *sandbox.Execution) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

func same(t *testing.T, e *sandbox.Execution) {
	t.Helper()
	want, wrong := plainly(e)
	got, err := e.AppendJSON([]byte("before "))
	if (err != nil) != (wrong != nil) {
		t.Errorf("%v, and encoding/json says %v", err, wrong)
	}
	if err == nil && string(got) != "before "+string(want) {
		t.Errorf("got  %s\nwant        %s", got, want)
	}
}

// fill sets all of v: lists and maps have so many items, and strings are text.
func fill(v reflect.Value, items int, text string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1e9, 5000).UTC()))
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte("{ \"a\": [1, 2.50],\n \"b\":\"<&>\" }"))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), items, text)
	case v.Kind() == reflect.Struct:
		for n := range v.NumField() {
			if v.Field(n).CanSet() {
				fill(v.Field(n), items, text)
			}
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), items, items))
		for n := range items {
			fill(v.Index(n), items, text)
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if items > 0 {
			one := reflect.New(v.Type().Elem()).Elem()
			fill(one, items, text)
			v.SetMapIndex(reflect.ValueOf(text).Convert(v.Type().Key()), one)
		}
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.CanInt():
		v.SetInt(42)
	case v.CanUint():
		v.SetUint(42)
	case v.CanFloat():
		v.SetFloat(0.1234567)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		panic("fill knows no " + v.Type().String())
	}
}

// Every field there is, and none: a new one that AppendJSON does not know fails here.
func TestAppendJSONIsJSON(t *testing.T) {
	same(t, &sandbox.Execution{})
	for _, items := range []int{0, 1, 2} {
		var e sandbox.Execution
		fill(reflect.ValueOf(&e).Elem(), items, "a <b> \"c\" \\ d\n\te")
		same(t, &e)
		unwritten, err := e.AppendJSON(nil)
		e.Isolation = e.Isolation.Written()
		if got, _ := e.AppendJSON(nil); err != nil || !bytes.Equal(got, unwritten) {
			t.Errorf("an isolation that is written: %s", got)
		}
	}
	for _, e := range []sandbox.Execution{
		{Result: json.RawMessage("{")}, {Result: json.RawMessage{}}, {Context: json.RawMessage("1 2")},
		{ExecutionTime: math.NaN()}, {MemoryUsage: math.Inf(1)}, {Timestamp: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Outputs: []sandbox.Output{{Metadata: json.RawMessage("nul")}}},
	} {
		if _, err := e.AppendJSON(nil); err == nil {
			t.Errorf("no error for %+v", e)
		}
		same(t, &e)
	}
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("plain", "[1, 2]", 0.5)
	f.Add("\x00\x1f\x7f\u2028\xff \"\\/\b\f\n\r\t<é😀", "\"\\u2028\"", 1e21)
	f.Add("", "", -1e-7)
	f.Fuzz(func(t *testing.T, text, raw string, number float64) {
		e := sandbox.Execution{ID: text, Code: text, Stdout: text + "\n" + text, Error: &text, Result: json.RawMessage(raw), ExecutionTime: number,
			Usage: sandbox.Usage{WallMS: -number, EndedBy: text}, Environment: &sandbox.EnvironmentVersion{Name: text}}
		same(t, &e)
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	by := map[string]string{}
	for _, limit := range []string{"max_memory_mb", "cpu_percent", "max_threads", "max_processes", "max_open_files", "max_rows", "max_code_size", "lifetime", "idle_timeout"} {
		by[limit], by["also_"+limit] = "cgroup v1, RLIMIT_DATA", "the service"
	}
	e := sandbox.Execution{ID: "80b4dff64cb3d99cf226f7e690f5cc53", SandboxID: "dd8dee0cc89880c60780c5082f9f832d", User: "ada", Kind: sandbox.KindExecute, Status: sandbox.StatusCompleted,
		Code: "1+1", Context: json.RawMessage("{}"), Result: json.RawMessage("2"), ExecutionTime: 0.000176448, MemoryUsage: 2.54, Usage: sandbox.Usage{WallMS: 0.176, CPUMS: 0.149, PeakMemoryMB: 2.54},
		DebugInfo: sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}}, Outputs: []sandbox.Output{}, Artifacts: []sandbox.Artifact{}, ArtifactMap: map[string]string{},
		Queries: []sandbox.Query{}, Connections: []sandbox.Connection{}, Truncated: map[string]int64{}, Isolation: sandbox.Isolation{Level: "full", EnforcedBy: by}.Written(),
		Environment: &sandbox.EnvironmentVersion{Name: "default", Digest: "63f734a0631c09c8c68d8c8966b6db3bd7e445579b7a97cc86c219ec09075f1f"}, Timestamp: time.Now().UTC(), CreatedAt: time.Now().UTC(), CompletedAt: new(time.Now().UTC())}
	b.Run("append", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.AppendJSON(make([]byte, 0, 2048)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		for b.Loop() {
			if _, err := plainly(&e); err != nil {
				b.Fatal(err)
			}
		}
	})
}
