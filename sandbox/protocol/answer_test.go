package protocol

import (
	"bytes"
	"net"
	"testing"

	"glasshouse/sandbox"
)

// An answer that was joined is the same for each ID, and can be sent with another one.
func TestAnswersHaveAnyID(t *testing.T) {
	t.Parallel()
	answer := func(id uint32) net.Buffers {
		var f frames
		columns := []sandbox.Column{{Name: "a", Type: "int4", Kind: "int"}}
		if err := f.json(KindColumns, Columns{id, columns}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			f.begin(KindRows)
			f.tail = append(f.tail, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
			f.raw(bytes.Repeat([]byte("rows"), inPlaceBytes/4))
			f.tail = append(f.tail, "end"...)
			f.end()
		}
		if err := f.json(KindAnswer, Answer{ID: id, Value: true}); err != nil {
			t.Fatal(err)
		}
		return append(f.before, f.tail)
	}
	want := JoinAnswer(answer(0))
	for _, id := range []uint32{1, 10, 12345, 1<<32 - 1} {
		if got := JoinAnswer(answer(id)); !bytes.Equal(got, want) {
			t.Errorf("ID %d: got another answer of %d bytes, want %d", id, len(got), len(want))
		}
		sent, err := setID(bytes.Clone(want), id)
		if raw := bytes.Join(answer(id), nil); err != nil || !bytes.Equal(sent, raw) {
			t.Errorf("ID %d: got %d bytes and %v, want the %d bytes of the answer", id, len(sent), err, len(raw))
		}
	}
	columns, err := AnswerColumns(want)
	if err != nil || len(columns) != 1 || columns[0].Name != "a" {
		t.Errorf("got the columns %v, %v", columns, err)
	}
	for n := range 40 {
		if _, err := setID(bytes.Clone(want[:n]), 1); err == nil && n > 0 {
			t.Errorf("the first %d bytes: got no error", n)
		}
	}
}
