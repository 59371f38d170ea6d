package history

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

func backlogOf(now time.Time, records ...string) *backlog {
	var b backlog
	for _, r := range records {
		b.add(row{key: r[:1], record: []byte(r)}, now)
	}
	return &b
}

func recordsOf(rows []row) (records []string) {
	for _, r := range rows {
		records = append(records, string(r.record))
	}
	return records
}

// The end of a short run replaces its beginning, so the run is inserted once.
func TestBacklogKeepsTheLatestRowOfAKey(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins", "b begins", "a ends")
	if want := len("a ends") + len("b begins"); b.bytes != want {
		t.Errorf("bytes: got %d, want %d", b.bytes, want)
	}
	if got, want := recordsOf(b.take()), []string{"a ends", "b begins"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows: got %q, want %q", got, want)
	}
	if b.bytes != 0 || len(b.rows) != 0 || b.since != time.Unix(1, 0) {
		t.Errorf("after take: got %+v, want an empty backlog since 1 s", b)
	}
}

func TestBacklogPutsRowsBackBehindNewerOnes(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins", "b begins", "c begins")
	taken := b.take()
	b.add(row{key: "b", record: []byte("b ends")}, time.Unix(2, 0))
	b.add(row{key: "d", record: []byte("d begins")}, time.Unix(2, 0))
	b.putBack(taken[1:]) // a was inserted
	if b.since != time.Unix(1, 0) || b.bytes != len("b ends")+len("c begins")+len("d begins") {
		t.Errorf("after putBack: got since %s, %d bytes", b.since, b.bytes)
	}
	if got, want := recordsOf(b.take()), []string{"b ends", "c begins", "d begins"}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows: got %q, want %q", got, want)
	}
}

func TestBacklogForgetsItsAgeWhenAllIsInserted(t *testing.T) {
	t.Parallel()
	b := backlogOf(time.Unix(1, 0), "a begins")
	b.take()
	b.add(row{key: "b"}, time.Unix(3, 0))
	if b.inserted(time.Unix(2, 0)); b.since != time.Unix(2, 0) {
		t.Errorf("with a row that came meanwhile: got since %s, want the time of take", b.since)
	}
	b.take()
	if b.inserted(time.Unix(4, 0)); !b.since.IsZero() {
		t.Errorf("empty: got since %s, want zero", b.since)
	}
}

func TestWithoutEndedDropsProgressOfEndedExecutions(t *testing.T) {
	t.Parallel()
	at := time.Unix(1, 0)
	progress := func(id string, n int) row {
		return row{key: fmt.Sprint(id, "/query/", n), executionID: id, statement: "INSERT"}
	}
	rows := []row{
		{key: "a", executionID: "a"}, progress("a", 0), progress("b", 0), progress("b", 1),
		{key: "b", executionID: "b", completedAt: &at}, {key: "sandbox/b", statement: "INSERT"},
	}
	var keys []string
	for _, r := range withoutEnded(rows) {
		keys = append(keys, r.key)
	}
	if want := []string{"a", "a/query/0", "b", "sandbox/b"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
}
