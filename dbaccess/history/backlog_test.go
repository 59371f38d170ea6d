package history

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess/history/wal"
	"glasshouse/sandbox"
)

// backlogOf returns the backlog of one user with these records, whose keys are their first letters.
func backlogOf(now time.Time, records ...string) *backlog {
	var b backlog
	addTo(&b, "ada", 1, now, records...)
	return &b
}

func addTo(b *backlog, user string, number uint64, now time.Time, records ...string) {
	for n, r := range records {
		b.add(row{key: r[:1], record: []byte(r)}, user, number+uint64(n), wal.Position{}, now)
	}
}

func recordsOf(rows []row) (records []string) {
	for _, r := range rows {
		records = append(records, string(r.record))
	}
	return records
}

// all takes all rows.
func all(b *backlog) []string { return recordsOf(b.take(100, 1<<20)) }

// The end of a short run replaces its beginning, so the run is inserted once.
func TestBacklogKeepsTheLatestRowOfAKey(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins", "b begins", "a ends")
	if want := len("a ends") + len("b begins"); b.bytes != want {
		t.Errorf("bytes: got %d, want %d", b.bytes, want)
	}
	if got, want := all(b), []string{"a ends", "b begins"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows: got %q, want %q", got, want)
	}
	if b.bytes != 0 || b.rows != 0 || b.since != time.Unix(1, 0) || b.first().number != 1 {
		t.Errorf("after take: got %d bytes in %d rows since %s, want an empty backlog since 1 s, whose first row is "+
			"not inserted", b.bytes, b.rows, b.since)
	}
}

func TestBacklogPutsRowsBackBehindNewerOnes(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins", "b begins", "c begins")
	taken := b.take(100, 1<<20)
	addTo(b, "ada", 4, time.Unix(2, 0), "b ends", "d begins")
	b.putBack(taken[1:]) // a was inserted
	if b.since != time.Unix(1, 0) || b.bytes != len("b ends")+len("c begins")+len("d begins") || b.first().number != 2 {
		t.Errorf("after putBack: got %d bytes since %s, %+v", b.bytes, b.since, b.first())
	}
	if got, want := all(b), []string{"b ends", "c begins", "d begins"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows: got %q, want %q", got, want)
	}
}

func TestBacklogIsYoungWhenRowsWereInserted(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins")
	all(b)
	addTo(b, "ada", 2, time.Unix(3, 0), "b begins")
	if b.inserted(time.Unix(4, 0)); b.since != time.Unix(4, 0) || b.first().number != 2 {
		t.Errorf("with a row that came meanwhile: got since %s, first %+v; want the time of inserted",
			b.since, b.first())
	}
	all(b)
	if b.inserted(time.Unix(5, 0)); !b.since.IsZero() || b.first() != nil || len(b.users) != 0 {
		t.Errorf("empty: got since %s, %d users, want zero", b.since, len(b.users))
	}
}

// The end of an execution has its progress, so it takes the place of all rows of the execution that wait.
func TestBacklogDropsProgressOfEndedExecutions(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	execution := func(id string, end *time.Time) row {
		return row{key: id, executionID: id, summary: sandbox.ExecutionSummary{CompletedAt: end}}
	}
	progress := func(id string, n int) row {
		return row{key: fmt.Sprint(id, "/query/", n), executionID: id, statement: "INSERT", record: []byte("x")}
	}
	rows := []row{
		progress("c", 0), execution("a", nil), progress("a", 0), execution("b", nil), progress("b", 0),
		progress("b", 1), {key: "sandbox/b", statement: "INSERT"}, execution("b", &at), progress("b", 2),
		progress("c", 1), execution("c", &at),
	}
	b := &backlog{}
	for n, r := range rows {
		b.add(r, "ada", uint64(n+1), wal.Position{}, at)
	}
	keys := func(rows []row) (keys []string) {
		for _, r := range rows {
			keys = append(keys, r.key)
		}
		return keys
	}
	if b.rows != 5 || b.bytes != 1 {
		t.Errorf("got %d rows of %d bytes, want 5 of 1", b.rows, b.bytes)
	}
	taken := b.take(2, 1<<20)
	b.add(execution("a", &at), "ada", 12, wal.Position{}, at)
	b.putBack(taken)
	if got, want := keys(b.take(100, 1<<20)), []string{"c", "a", "b", "sandbox/b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However much one user's rows are, another user's rows are inserted next.
func TestBacklogServesUsersInTurn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	b := &backlog{}
	for n := range 20 {
		r := row{key: fmt.Sprint("m", n), record: []byte(fmt.Sprint("many", n, strings.Repeat(".", 100)))}
		b.add(r, "many", uint64(n+1), wal.Position{}, now)
	}
	addTo(b, "few", 21, now, "a few", "b few", "c few")
	addTo(b, "one", 24, now, "d one")
	var order []string
	for b.rows > 0 {
		for _, record := range recordsOf(b.take(3, 200)) {
			order = append(order, strings.TrimRight(record, "."))
		}
		b.inserted(now)
	}
	if got := order[:5]; !slices.Equal(got, []string{"many0", "a few", "d one", "many1", "b few"}) {
		t.Errorf("got the order %q, want the users in turn", order)
	}
	if len(order) != 24 || order[23] != "many19" {
		t.Errorf("got %d rows, the last %s; want all 24 in order", len(order), order[len(order)-1])
	}
}

// Rows for which somebody waits are inserted without those of other users, which come next.
func TestBacklogInsertsWantedRowsFirst(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	b := &backlog{}
	addTo(b, "many", 1, now, "a many", "b many")
	addTo(b, "few", 3, now, "c few", "d few")
	addTo(b, "one", 5, now, "e one")
	take := func(want ...string) {
		t.Helper()
		if got := recordsOf(b.take(2, 1<<20)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		b.inserted(now)
	}
	b.want("few")
	take("c few", "d few")
	b.want("one")
	take("a many", "e one") // not again those that are wanted only
	addTo(b, "few", 6, now, "f few")
	b.want("none")
	take("f few", "b many") // no wanted user has rows
}

// A large row is inserted without rows of other users, and small rows wait for one transaction with large ones at most.
func TestBacklogInsertsLargeRowsApart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	b := &backlog{}
	number := uint64(0)
	add := func(user, key string, size int) {
		number++
		b.add(row{key: key, record: make([]byte, size)}, user, number, wal.Position{}, now)
	}
	for n := range 5 {
		add("many", fmt.Sprint("m", n), maxLargeBytes/2)
	}
	for n := range 3 {
		add("some", fmt.Sprint("s", n), maxLargeBytes)
	}
	add("few", "f0", 1)
	add("one", "o0", largeRowBytes-1)
	var got []string
	for n := 0; b.rows > 0; n++ {
		var keys []string
		for _, r := range b.take(100, 4<<20) {
			keys = append(keys, r.key)
		}
		got = append(got, strings.Join(keys, " "))
		b.inserted(now)
		if n%2 == 0 {
			add("few", fmt.Sprint("f", n+1), 1) // small rows come all the time
		}
	}
	want := []string{"m0 m1", "f0 o0 f1", "s0", "f3", "m2 m3", "f5", "s1", "f7", "m4", "f9", "s2", "f11"}
	if !slices.Equal(got, want) {
		t.Errorf("got the transactions %q, want %q", got, want)
	}
}

func TestBacklogHasRoomForEachUser(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	b := &backlog{}
	fill := func(user string) (bytes int) {
		for n := 0; !b.isFull(user); n++ {
			r := row{key: fmt.Sprint(user, n), record: make([]byte, 1<<20)}
			b.add(r, user, uint64(n+1), wal.Position{}, now)
			bytes += len(r.record)
		}
		return bytes
	}
	for n, user := range []string{"many", "some", "few"} {
		if got, want := fill(user), maxBacklogBytes/(n+1); got < want || got > want+1<<20 {
			t.Errorf("%s: got room for %d bytes, want %d", user, got, want)
		}
	}
	for b.rows > 0 {
		b.take(1000, 1<<30)
	}
	if !b.isFull("few") || b.isFull("one") {
		t.Error("while the rows are inserted: want room for other users only")
	}
	if b.inserted(now); b.isFull("few") {
		t.Error("after the rows are inserted: want room")
	}
}
