// Package recordingtest builds recordings for tests.
package recordingtest

import (
	"embed"
	"io/fs"
	"math/rand/v2"
	"strings"

	"glasshouse/debugger/recording"
)

//go:embed testdata
var files embed.FS

// Names returns the names of the recordings in testdata, which the guest's recorders have written.
func Names() (names []string) {
	paths, _ := fs.Glob(files, "testdata/*.rec") // the pattern is valid
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".rec"))
	}
	return names
}

// Recorded returns a recording from testdata.
func Recorded(name string) []byte { return read(name + ".rec") }

// Transcript returns the expected transcript of a recording from testdata.
func Transcript(name string) string { return string(read(name + ".txt")) }

func read(name string) []byte {
	b, err := files.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return b
}

// Builder builds a stream.
type Builder struct{ Stream []byte }

// New begins a recording of a module in the file "file", with its frame, number 1. The names of the recording are file,
// <module>, and the given ones, from number 3 on.
func New(names ...string) *Builder {
	b := &Builder{}
	b.Add(recording.Record{Kind: recording.KindHead, Number: recording.FormatVersion, Text: "test"})
	for _, name := range append([]string{"file", recording.ModuleName}, names...) {
		b.Add(recording.Record{Kind: recording.KindName, Text: name})
	}
	b.Add(
		recording.Record{Kind: recording.KindCode, File: 1, Name: 2, Number: 1},
		recording.Record{Kind: recording.KindThread, Number: 1, Text: "main"},
		recording.Record{Kind: recording.KindPush, Frame: 1, Code: 1, Thread: 1},
	)
	return b
}

// Add adds records.
func (b *Builder) Add(records ...recording.Record) {
	for i := range records {
		b.Stream = recording.AppendRecord(b.Stream, &records[i])
	}
}

// Line adds a line record.
func (b *Builder) Line(delta int64) { b.Add(recording.Record{Kind: recording.KindLine, Delta: delta}) }

// Global sets a variable of the namespace.
func (b *Builder) Global(name uint64, v recording.Value) {
	b.Add(recording.Record{Kind: recording.KindGlobal, Name: name, Value: v})
}

// Object adds a new object, with its first version.
func (b *Builder) Object(o recording.Object) {
	o.Version = 1
	b.Add(recording.Record{Kind: recording.KindObject, Object: o})
}

// Int returns an integer.
func Int[T int | int64](n T) recording.Value {
	return recording.Value{Tag: recording.TagInt, Int: int64(n)}
}

// Text returns a str.
func Text(s string) recording.Value { return recording.Value{Tag: recording.TagText, Text: s} }

// Ref returns a reference to an object.
func Ref(object uint64) recording.Value {
	return recording.Value{Tag: recording.TagObject, Object: object}
}

// List returns the contents of a list.
func List(number, typeName uint64, values ...recording.Value) recording.Object {
	return recording.Object{Number: number, Type: typeName, Form: recording.Items, Length: int64(len(values)),
		Values: values}
}

// Loop returns a recording of a loop over three lines, with 3 steps an iteration. The second line sets x to the number
// of the iteration, and changes the list that y holds in each thousandth iteration. 100 000 iterations make more than
// five chunks.
func Loop(turns int) []byte {
	b := New("x", "y", "list")
	list := List(1, 5, Int(-1))
	b.Object(list)
	b.Global(4, Ref(1))
	list.Version = 1
	for i := range turns {
		first := int64(0)
		if i > 0 {
			first = -2
		}
		b.Line(first)
		b.Line(1)
		b.Global(3, Int(i))
		if i%1000 == 0 {
			list.Version++
			list.Values = []recording.Value{Int(i)}
			b.Add(recording.Record{Kind: recording.KindMutate, Object: list})
		}
		b.Line(1)
	}
	return b.Stream
}

// Mixed returns a recording of many chunks with calls, exceptions that pass through them, changes of objects and a gap.
// The recording depends only on the number of iterations.
func Mixed(turns int) []byte {
	b := New("x", "y", "list", "call", "E")
	b.Add(recording.Record{Kind: recording.KindCode, File: 1, Name: 6, Number: 10})
	random := rand.New(rand.NewPCG(1, 2))
	version, line := uint64(1), int64(1)
	begin := func() {
		list := List(1, 5, Int(0))
		list.Version = version
		b.Add(recording.Record{Kind: recording.KindObject, Object: list})
		b.Global(4, Ref(1))
	}
	begin()
	for i := range turns {
		if i == turns/2 {
			b.Add(
				recording.Record{Kind: recording.KindLost, Number: 5000, Text: "a gap"},
				recording.Record{Kind: recording.KindPush, Frame: 1, Code: 1, Thread: 1,
					Number: recording.FlagRestated, From: uint64(line)},
			)
			begin()
		}
		next := 1 + random.Int64N(9)
		b.Line(next - line)
		line = next
		raise := recording.Record{Kind: recording.KindRaise, Name: 7, Value: Int(i)}
		switch random.IntN(400) {
		case 0, 1, 2:
			version++
			list := recording.Object{
				Number: 1, Version: version, Form: recording.Items, Length: 40, Values: []recording.Value{Int(i),
					Text(strings.Repeat("x", 300))},
			}
			b.Add(recording.Record{Kind: recording.KindMutate, Object: list})
		case 3:
			b.Add(raise, recording.Record{Kind: recording.KindHandled})
		case 4, 5:
			b.Add(recording.Record{Kind: recording.KindPush, Frame: uint64(i + 2), Code: 2, Thread: 1, Parent: 1})
			for n := range random.IntN(3000) {
				b.Line(int64(n % 2))
			}
			if random.IntN(2) == 0 {
				b.Add(raise, recording.Record{Kind: recording.KindUnwind, Name: 7, Value: Int(i)})
			} else {
				b.Add(recording.Record{Kind: recording.KindReturn, Value: Int(i)})
			}
			b.Add(raise, recording.Record{Kind: recording.KindHandled})
		default:
			b.Global(3, Int(i))
		}
	}
	return b.Stream
}
