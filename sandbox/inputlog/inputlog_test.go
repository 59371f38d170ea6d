package inputlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// A replay needs the seed of its original, which another service may have made long ago.
func TestSeedsOfAnExecutionStayTheSame(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys([]byte("the secret of a data folder"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "4517efe304009dc4fa2638b9768f949c5eca5c13ee74235f10a3584c26cc6c0e"
	for range 3 {
		if got := keys.Seed("execution"); got != want {
			t.Fatalf("got the seed %s, want %s", got, want)
		}
		if other := keys.Seed("other"); other == want {
			t.Fatal("two executions have the same seed")
		}
	}
}

// A log with hashes only is enough to see that rows are the same, but not how others differ.
func TestHashesTellTheSameRows(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys([]byte("the secret of a data folder"))
	if err != nil {
		t.Fatal(err)
	}
	batch := func(n int64) sandbox.RowBatch {
		return sandbox.RowBatch{
			Columns: []sandbox.Column{{Name: "n", Type: "int8", Kind: "int"}},
			Data:    []sandbox.ColumnValues{{Ints: []int64{n}}}, Count: 1,
		}
	}
	r := keys.Record(Hashes)
	r.Begin([]byte(`{"what":"query","sql":"SELECT 1 AS n"}`))
	rows := protocol.NewRowEncoder(protocol.FormPlain, false)
	if err := errors.Join(rows.WriteBatch(batch(1)), rows.End(false)); err != nil {
		t.Fatal(err)
	}
	r.Add(len(rows.Frames()), rows.Frames)
	r.Statement(1, &sandbox.QuerySummary{})
	data, err := r.End(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	log, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]Sameness{1: Same, 2: NotKnown} {
		c := log.Requests[0].Comparer()
		if err := c.Add(batch(n)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Compare(); got != want || err != nil {
			t.Errorf("%d: got %d, %v, want %d", n, got, err, want)
		}
	}
}

// Logs of earlier versions have their numbers as they were sent.
func TestLogsHaveTheirAnswersPackedOrNot(t *testing.T) {
	t.Parallel()
	keys, err := NewKeys([]byte("the secret of a data folder"))
	if err != nil {
		t.Fatal(err)
	}
	rows := protocol.NewRowEncoder(protocol.FormPlain, false)
	for n := range int64(3) { // each batch is sent alone
		numbers := sandbox.ColumnValues{Ints: slices.Collect(func(yield func(int64) bool) {
			for i := range int64(20_000) {
				yield(n*20_000 + i)
			}
		})}
		batch := sandbox.RowBatch{
			Columns: []sandbox.Column{{Name: "n", Type: "int8", Kind: "int"}},
			Data:    []sandbox.ColumnValues{numbers}, Count: len(numbers.Ints),
		}
		if err := rows.WriteBatch(batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.End(false); err != nil {
		t.Fatal(err)
	}
	r := keys.Record(Rows)
	for range 2 {
		r.Begin([]byte(`{"what":"query","sql":"SELECT n FROM numbers"}`))
		half := bytes.Index(rows.Frames(), []byte("M")) - 4 // the columns, and the rows
		for _, part := range [][]byte{rows.Frames()[:half], rows.Frames()[half:]} {
			r.Add(len(part), func() []byte { return bytes.Clone(part) })
		}
	}
	packed, err := r.End(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(packed) > 20_000 {
		t.Errorf("the log of 120 000 numbers has %d bytes, want less than 20 000", len(packed))
	}
	l, err := Decode(packed)
	if err != nil {
		t.Fatal(err)
	}
	earlier := *l
	earlier.IsPacked = false
	head, err := json.Marshal(&earlier)
	if err != nil {
		t.Fatal(err)
	}
	text := slices.Concat(head, []byte("\n"), rows.Frames(), rows.Frames())
	unpacked, err := encodeLarge(net.Buffers{text})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{packed, unpacked} {
		l, err := Decode(data)
		if err != nil || len(l.Requests) != 2 {
			t.Fatal(l, err)
		}
		for _, request := range l.Requests {
			if !bytes.Equal(request.Answer, rows.Frames()) {
				t.Errorf("got another answer of %d bytes, want %d", len(request.Answer), len(rows.Frames()))
			}
		}
	}
}
