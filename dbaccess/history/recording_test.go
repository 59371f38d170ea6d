package history_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/sandbox"
)

func TestRecordingsAreKeptAndForgotten(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	h := open(t, s)
	chunk := func(n int) sandbox.Chunk {
		return sandbox.Chunk{Sequence: n, First: 10*n + 1, Last: 10*n + 10, Definitions: []byte{1, 0}, Index: []byte{byte(n)}, Data: bytes.Repeat([]byte{byte(n)}, 1000)}
	}
	for _, id := range []string{"old", "new"} {
		for n := range 3 {
			if err := h.KeepChunk(ctx, id, chunk(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.KeepChunk(ctx, "new", chunk(1)); err != nil {
		t.Errorf("a chunk that comes twice: %v", err)
	}
	if err := h.KeepChunk(ctx, "new", sandbox.Chunk{Sequence: 3, First: 31, Last: 30}); err != nil {
		t.Errorf("an empty chunk: %v", err)
	}
	h.Close()
	h = open(t, s) // as after a restart
	defer h.Close()
	list, err := h.Chunks(ctx, "new")
	if err != nil || len(list) != 4 || list[2].First != 21 || !bytes.Equal(list[2].Index, []byte{2}) || list[2].Data != nil || list[2].Bytes != 1003 || list[3].Bytes != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if data, err := h.ChunkData(ctx, "new", 2); err != nil || !bytes.Equal(data, chunk(2).Data) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	absent := func(id string) bool {
		_, err := h.Chunks(ctx, id)
		var known *sandbox.Error
		return errors.As(err, &known) && known.Fault == sandbox.FaultNotFound
	}
	if _, err := h.ChunkData(ctx, "new", 9); err == nil || !absent("none") {
		t.Errorf("what is not there was found: %v", err)
	}
	if n, err := h.PruneRecordings(ctx, time.Now().Add(-time.Hour), 4096<<20); err != nil || n != 0 {
		t.Errorf("pruned %d, %v", n, err)
	}
	if n, err := h.PruneRecordings(ctx, time.Time{}, 5000); err != nil || n != 1 || !absent("old") || absent("new") {
		t.Errorf("by size: pruned %d, %v", n, err)
	}
	if n, err := h.PruneRecordings(ctx, time.Now().Add(time.Hour), 0); err != nil || n != 1 || !absent("new") {
		t.Errorf("by age: pruned %d, %v", n, err)
	}
}
