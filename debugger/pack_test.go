package debugger

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// records are those of a recording without what it defines, as a chunk has them.
func records(t testing.TB, b []byte) (out []byte) {
	t.Helper()
	var rec Record
	for len(b) > 0 {
		size, err := decode(b, &rec)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind > KindThread {
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
	return out
}

// pack returns records as they are kept.
func pack(raw []byte) ([]byte, error) {
	p, out := newPacker(), []byte(nil)
	var rec Record
	for len(raw) > 0 {
		size, err := decode(raw, &rec)
		if err != nil {
			return nil, err
		}
		raw, out = raw[size:], p.record(out, &rec)
	}
	return out, nil
}

func TestWhatIsPackedComesBack(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.rec")
	all := map[string][]byte{"long": long(1000), "winding": winding(5000)}
	for _, name := range names {
		all[name] = recording(t, strings.TrimSuffix(filepath.Base(name), ".rec"))
	}
	for name, b := range all {
		raw := records(t, b)
		packed, err := pack(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := unpack(packed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		alike(t, raw, again)
	}
}

// alike compares records; what one recorder writes longer than another is the same.
func alike(t *testing.T, b, again []byte) {
	t.Helper()
	var one, other Record
	for len(b) > 0 || len(again) > 0 {
		size, err := decode(b, &one)
		if err != nil {
			t.Fatal(err)
		}
		sizeAgain, err := decode(again, &other)
		if err != nil {
			t.Fatalf("%+v came back damaged: %v", one, err)
		}
		if !bytes.Equal(appendRecord(nil, &one), appendRecord(nil, &other)) {
			t.Fatalf("%+v came back as %+v", one, other)
		}
		b, again = b[size:], again[sizeAgain:]
	}
}

// Records that differ little from those before them take few bytes.
func TestPackedIsSmall(t *testing.T) {
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	list := func(n int) (out []Value) {
		for i := range n {
			out = append(out, Value{Tag: TagInt, Int: int64(1_000_000 + i)})
		}
		return out
	}
	add(Record{Kind: KindObject, Object: Object{Number: 1_000_000, Type: 1, Version: 1, Form: Items, Length: 50, Values: list(50)}})
	add(Record{Kind: KindMutate, Object: Object{Number: 1_000_000, Version: 2, Form: Items, Length: 51, Values: list(51)}})
	add(Record{Kind: KindObject, Object: Object{Number: 1_000_001, Type: 1, Version: 1, Form: Items, Length: 51, Values: list(51)}})
	add(Record{Kind: KindGlobal, Name: 1, Value: Value{Tag: TagInt, Int: 1 << 40}})
	add(Record{Kind: KindGlobal, Name: 1, Value: Value{Tag: TagInt, Int: 1<<40 + 1}})
	packed, err := pack(b)
	if err != nil || len(packed) > 420 {
		t.Errorf("%d bytes of %d: %v", len(packed), len(b), err)
	}
}

// Damage is an error, and what can be packed comes back as it was decoded.
func FuzzPack(f *testing.F) {
	f.Add(records(f, winding(200)))
	f.Add(records(f, long(50)))
	if packed, err := pack(records(f, winding(200))); err == nil {
		f.Add(packed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = unpack(b)
		packed, err := pack(b)
		if err != nil {
			return
		}
		again, err := unpack(packed)
		if err != nil {
			t.Fatalf("what was packed: %v", err)
		}
		alike(t, b, again)
	})
}

// What was kept before records were packed is read as it is.
func TestAChunkThatIsNotPacked(t *testing.T) {
	b := winding(20_000)
	j, before := journal(t, b), journal(t, b)
	for _, c := range before.chunks {
		u, err := before.unpacked(c)
		if err != nil || !c.packed {
			t.Fatalf("packed %v, %v", c.packed, err)
		}
		c.packed = false
		c.Data = before.zip.EncodeAll(append(bytes.Clone(u.key), u.raw...), nil)
	}
	again, _ := kept(t, before)
	for step := 1; step <= j.Steps(); step += 501 {
		want, wantErr := j.State(step)
		got, err := again.State(step)
		if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %v, %v", step, err, wantErr)
		}
	}
}

// A recording stands as it was before a record that is refused.
func TestARefusedRecordIsNotKept(t *testing.T) {
	b := winding(100)
	j := journal(t, b)
	if err := j.Append(appendRecord(nil, &Record{Kind: KindGlobal, Name: maxNames, Value: Value{Tag: TagNone}})); !errors.Is(err, ErrForged) {
		t.Fatal(err)
	}
	u, err := j.unpacked(j.chunks[len(j.chunks)-1])
	if err != nil {
		t.Fatal(err)
	}
	alike(t, records(t, b), u.raw)
}

// Every name, object and frame of a chunk is in its index, however they take turns.
func TestTheIndexHasAll(t *testing.T) {
	var n noted
	seen, again := map[uint64]bool{}, map[uint64]bool{}
	c := &Chunk{lines: map[line]*int{}}
	counts := map[line]int{}
	for i := range uint64(5000) {
		for _, number := range []uint64{1 + i%200, 1 + i%7, 65, 1} {
			n.names.add(seen, number)
			again[number] = true
			l := line{number % 3, int64(number)}
			n.line(c, l)
			counts[l]++
		}
	}
	if !reflect.DeepEqual(seen, again) {
		t.Errorf("%d numbers of %d", len(seen), len(again))
	}
	for l, count := range counts {
		if c.count(l) != count {
			t.Errorf("%v: %d times, not %d", l, c.count(l), count)
		}
	}
}
