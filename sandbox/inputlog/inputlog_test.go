package inputlog

import (
	"errors"
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
