package history

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

func TestSandboxes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	b := sandbox.Sandbox{ID: "s", Owner: "ada", Policy: policy.Default(), State: sandbox.StateActive, CreatedAt: now,
		LastUsed: now}
	if err := h.CreateSandbox(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Sandbox(ctx, "s"); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("new sandbox: %v\ngot  %+v\nwant %+v", err, got, b)
	}
	e := runningExecution("e")
	e.SandboxID, e.CreatedAt = "s", now.Add(time.Minute)
	h.begin(t, e)
	if got, err := h.Sandbox(ctx, "s"); err != nil || !got.LastUsed.Equal(e.CreatedAt) {
		t.Errorf("LastUsed: got %s, %v; want the beginning of its execution, %s", got.LastUsed, err, e.CreatedAt)
	}
	if err := errors.Join(h.EndSandbox(ctx, "s", "ada", sandbox.StateExpired, now.Add(time.Hour)),
		h.EndSandbox(ctx, "s", "ada", sandbox.StateDeleted, now.Add(2*time.Hour))); err != nil {
		t.Fatal(err)
	}
	got, err := h.Sandbox(ctx, "s")
	if err != nil || got.State != sandbox.StateExpired || got.EndedAt == nil || !got.EndedAt.Equal(now.Add(time.Hour)) {
		t.Errorf("ended twice: got %+v, %v; want its first end", got, err)
	}
	if _, err := h.Sandbox(ctx, "no\x00where"); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("Sandbox of an unknown id: got %v, want %s", err, sandbox.FaultNotFound)
	}
}

// A killed service left the sandboxes in the log only. After the replay, active sandboxes have the state lost.
func TestSandboxesAreReplayed(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	writeLog(t, dir,
		`{"sandbox_created":"lost","owner":"ada","policy":{},"state":"active","created_at":"2026-01-02T03:04:05Z"}`,
		`{"sandbox_created":"deleted","owner":"ada","policy":{},"state":"active","created_at":"2026-01-02T03:04:05Z"}`,
		`{"sandbox_ended":"deleted","state":"deleted","ended_at":"2026-01-02T03:04:06Z"}`)
	h := openStore(t, Config{URL: databaseURL(t), Dir: dir})
	if _, err := h.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]sandbox.State{"lost": sandbox.StateLost, "deleted": sandbox.StateDeleted} {
		if b, err := h.Sandbox(ctx, id); err != nil || b.State != want || b.EndedAt == nil || b.Owner != "ada" {
			t.Errorf("sandbox %s: got %+v, %v; want state %s", id, b, err, want)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	now := time.Now().UTC().Truncate(time.Microsecond)
	for n, user := range []string{"kate", "liam"} {
		k := sandbox.Key{ID: "key-" + user, Name: "first", User: user, Role: sandbox.RoleAgent,
			CreatedAt: now.Add(time.Duration(n) * time.Second)}
		if err := h.CreateKey(ctx, k, []byte("hash of "+user), 0); err != nil {
			t.Fatal(err)
		}
		if err := h.CreateKey(ctx, k, []byte("hash of "+user), 0); !hasFault(err, sandbox.FaultInvalid) {
			t.Errorf("CreateKey of the same key: got %v, want %s", err, sandbox.FaultInvalid)
		}
	}
	k, err := h.KeyByHash(ctx, []byte("hash of kate"))
	if err != nil || k.User != "kate" || k.Role != sandbox.RoleAgent || k.RevokedAt != nil {
		t.Errorf("KeyByHash: got %+v, %v; want kate's key", k, err)
	}
	made := sandbox.Key{ID: "key-made", Name: "made", User: "kate", Role: sandbox.RoleAgent, CreatedAt: now,
		CreatedBy: "kate", CreatedWith: "key-kate", Account: "key-kate"}
	if err := h.CreateKey(ctx, made, []byte("hash of made"), 0); err != nil {
		t.Fatal(err)
	}
	revoke := func(id string, at time.Time) error {
		return h.RevokeKeys(ctx, id, at, func(keys []sandbox.Key) (ids []string, err error) {
			for _, k := range keys {
				ids = append(ids, k.ID)
			}
			return ids, nil
		})
	}
	refused := errors.New("refused")
	if err := h.RevokeKeys(ctx, "key-kate", now, func([]sandbox.Key) ([]string, error) {
		return nil, refused
	}); !errors.Is(err, refused) {
		t.Errorf("RevokeKeys: got %v, want the error of choose", err)
	}
	if err := revoke("key-none", now); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("RevokeKeys of an unknown key: got %v, want %s", err, sandbox.FaultNotFound)
	}
	if err := errors.Join(revoke("key-made", now), revoke("key-kate", now.Add(time.Hour))); err != nil {
		t.Errorf("RevokeKeys: %v", err)
	}
	if k, err := h.KeyByHash(ctx, []byte("hash of made")); err != nil || k.RevokedAt == nil ||
		!k.RevokedAt.Equal(now) || k.CreatedBy != "kate" || k.CreatedWith != "key-kate" {
		t.Errorf("KeyByHash: got %+v, %v; want a key made with key-kate and revoked at %s", k, err, now)
	}
	made.ID = "key-late"
	if err := h.CreateKey(ctx, made, []byte("hash of late"), 0); !hasFault(err, sandbox.FaultUnauthorized) {
		t.Errorf("CreateKey with a revoked key: got %v, want %s", err, sandbox.FaultUnauthorized)
	}
	if k, err := h.KeyByHash(ctx, []byte("hash of kate")); err != nil || k.RevokedAt == nil {
		t.Errorf("KeyByHash of a revoked key: got %+v, %v", k, err)
	}
	if _, err := h.KeyByHash(ctx, []byte("no hash")); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("KeyByHash of an unknown hash: got %v, want %s", err, sandbox.FaultNotFound)
	}
	if own, err := h.Keys(ctx, "liam"); err != nil || len(own) != 1 || own[0].ID != "key-liam" {
		t.Errorf("Keys of liam: got %+v, %v", own, err)
	}
	if all, err := h.Keys(ctx, ""); err != nil || len(all) != 3 {
		t.Errorf("Keys of all users: got %+v, %v; want 3", all, err)
	}
}

// A thief can make a key with a stolen one, the next with that one, and so on. All of them are revoked within the time
// limit of a request.
func TestLongChainOfKeysIsRevoked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := openWithTimeouts(t, Config{URL: databaseURL(t), Dir: t.TempDir()}, serviceTimeouts)
	first := sandbox.Key{ID: "key-0", Name: "stolen", User: "kate", Role: sandbox.RoleDeveloper,
		CreatedAt: h.clock.Now()}
	if err := h.CreateKey(ctx, first, []byte("hash"), 0); err != nil {
		t.Fatal(err)
	}
	h.query(t, `INSERT INTO keys (id, name, owner, role, hash, created_at, account, created_by, created_with)
		SELECT 'key-' || n, 'made', 'kate', 'developer', n::text::bytea, now(), 'key-0', 'kate', 'key-' || n - 1
		FROM generate_series(1, 10000) n RETURNING id`)
	var chain []string
	err := h.RevokeKeys(ctx, "key-0", h.clock.Now(), func(keys []sandbox.Key) ([]string, error) {
		for _, k := range keys {
			chain = append(chain, k.ID)
		}
		return chain, nil
	})
	if err != nil || len(chain) != 10_001 || chain[10_000] != "key-10000" {
		t.Fatalf("got %d keys, %v; want 10001, nearest first", len(chain), err)
	}
	if valid := h.query(t, `SELECT id FROM keys WHERE revoked_at IS NULL`); len(valid) > 0 {
		t.Errorf("got %d valid keys, want none", len(valid))
	}
}

func TestRecordingsAreStoredAndPruned(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	chunk := func(n int) sandbox.Chunk {
		return sandbox.Chunk{Sequence: n, First: 10*n + 1, Last: 10*n + 10, Definitions: []byte{1, 0},
			Index: []byte{byte(n)}, Data: bytes.Repeat([]byte{byte(n)}, 1000)}
	}
	for _, id := range []string{"old", "new"} {
		h.finish(t, reviewed(id, "ada", time.Now(), 0), sandbox.StatusCompleted)
		for n := range 3 {
			if err := h.KeepChunk(ctx, id, chunk(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.KeepChunk(ctx, "new", chunk(1)); err != nil {
		t.Errorf("KeepChunk of a stored chunk: %v", err)
	}
	if err := h.KeepChunk(ctx, "new", sandbox.Chunk{Sequence: 3, First: 31, Last: 30}); err != nil {
		t.Errorf("KeepChunk of an empty chunk: %v", err)
	}
	h = h.reopen(t)
	list, err := h.Chunks(ctx, "new")
	if err != nil || len(list) != 4 || list[2].First != 21 || !bytes.Equal(list[2].Index, []byte{2}) ||
		list[2].Data != nil || list[2].Bytes != 1003 || list[3].Bytes != 0 {
		t.Errorf("Chunks: got %+v, %v", list, err)
	}
	if data, err := h.ChunkData(ctx, "new", 2); err != nil || !bytes.Equal(data, chunk(2).Data) {
		t.Errorf("ChunkData: got %d bytes, %v", len(data), err)
	}
	if _, err := h.ChunkData(ctx, "new", 9); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("ChunkData of an unknown chunk: got %v, want %s", err, sandbox.FaultNotFound)
	}
	exists := func(id string) bool {
		_, err := h.Chunks(ctx, id)
		if err != nil && !hasFault(err, sandbox.FaultNotFound) {
			t.Errorf("Chunks of %s: %v", id, err)
		}
		return err == nil
	}
	recordedSteps := func() (steps []int64) {
		t.Helper()
		summaries, _, err := h.ExecutionSummaries(ctx, sandbox.ExecutionFilter{User: "ada"})
		if err != nil || len(summaries) != 2 {
			t.Fatalf("got %d summaries, %v; want 2", len(summaries), err)
		}
		records, _, err := h.Executions(ctx, sandbox.ExecutionFilter{User: "ada"})
		if err != nil || len(records) != 2 {
			t.Fatalf("got %d records, %v; want 2", len(records), err)
		}
		for n, e := range summaries {
			one, err := h.Execution(ctx, e.ID)
			if err != nil || one.RecordedSteps != e.RecordedSteps || records[n].RecordedSteps != e.RecordedSteps {
				t.Errorf("%s: got %d steps alone, %d in the list of records and %d in the summary, %v; want the same",
					e.ID, one.RecordedSteps, records[n].RecordedSteps, e.RecordedSteps, err)
			}
			steps = append(steps, e.RecordedSteps)
		}
		return steps
	}
	if got := recordedSteps(); !slices.Equal(got, []int64{30, 30}) {
		t.Errorf("recorded steps of new and old: got %d, want 30 each", got)
	}
	if n, err := h.PruneRecordings(ctx, time.Now().Add(-time.Hour), 4096<<20); err != nil || n != 0 {
		t.Errorf("PruneRecordings of nothing: got %d, %v", n, err)
	}
	if n, err := h.PruneRecordings(ctx, time.Time{}, 5000); err != nil || n != 1 || exists("old") || !exists("new") {
		t.Errorf("PruneRecordings by size: got %d, %v; want the old one deleted", n, err)
	}
	if got := recordedSteps(); !slices.Equal(got, []int64{30, 0}) {
		t.Errorf("recorded steps of new and old: got %d, want 30 and none", got)
	}
	if n, err := h.PruneRecordings(ctx, time.Now().Add(time.Hour), 0); err != nil || n != 1 || exists("new") {
		t.Errorf("PruneRecordings by age: got %d, %v; want the new one deleted", n, err)
	}
}
