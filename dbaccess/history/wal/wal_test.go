package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"glasshouse/dbaccess/history/wal"
)

// open opens the log in dir and returns it with the records that it replayed.
func open(t testing.TB, dir string) (*wal.Log, []string) {
	t.Helper()
	var replayed []string
	l, err := wal.Open(dir, func(payloads [][]byte) error {
		for _, p := range payloads {
			replayed = append(replayed, string(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, replayed
}

// replay returns the records that opening the log in dir replays, and closes the log.
func replay(t testing.TB, dir string) []string {
	t.Helper()
	l, records := open(t, dir)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}

// appendSynced appends a record that survives a crash of the machine.
func appendSynced(t testing.TB, l *wal.Log, payload string) wal.Position {
	t.Helper()
	p, err := l.Append([]byte(payload))
	if err == nil {
		err = l.Sync(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// copyDir returns a copy of the folder: its state if the machine crashed now.
func copyDir(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestUnreleasedRecordsAreReplayedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, replayed := open(t, dir)
	if replayed != nil {
		t.Fatalf("a new log replays %q", replayed)
	}
	appendSynced(t, l, "a")
	released := appendSynced(t, l, "b")
	appendSynced(t, l, "")
	appendSynced(t, l, "c\x00")
	if err := l.Release(released); err != nil {
		t.Fatal(err)
	}
	crashed := copyDir(t, dir)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, crashed} {
		l, replayed := open(t, dir)
		if want := []string{"", "c\x00"}; !reflect.DeepEqual(replayed, want) {
			t.Errorf("first replay: got %q, want %q", replayed, want)
		}
		appendSynced(t, l, "later")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := replay(t, dir), []string{"later"}; !reflect.DeepEqual(got, want) {
			t.Errorf("second replay: got %q, want %q", got, want)
		}
	}
}

func TestReleaseOfAnOldPositionReleasesNoRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	large := strings.Repeat("x", 3<<20)
	appendSynced(t, l, "1"+large)
	appendSynced(t, l, "2"+large) // in the next segment
	if err := l.Release(wal.Position{}); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if got := replay(t, dir); len(got) != 2 {
		t.Errorf("replayed %d records, want 2", len(got))
	}
}

func TestRecordsStayIfReplayFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	appendSynced(t, l, "a")
	_ = l.Close()
	errReplay := errors.New("not now")
	for range 2 {
		if _, err := wal.Open(dir, func([][]byte) error { return errReplay }); !errors.Is(err, errReplay) {
			t.Fatalf("Open: got %v, want the error of replay", err)
		}
	}
	if got, want := replay(t, dir), []string{"a"}; !reflect.DeepEqual(got, want) {
		t.Errorf("replayed %q, want %q", got, want)
	}
}

// Over many segments, with records of all sizes, unreleased records come back in order, and the files stay bounded.
func TestSegmentsAreReused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	checkFiles := func(when string, maxBytes int64) {
		t.Helper()
		for n := range 2 {
			info, err := os.Stat(filepath.Join(dir, fmt.Sprint("wal-", n)))
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > maxBytes {
				t.Errorf("%s: wal-%d has %d bytes, want at most %d", when, n, info.Size(), maxBytes)
			}
		}
	}
	var want []string
	for n := range 300 {
		text := fmt.Sprintf("%d %s", n, strings.Repeat("x", n*n%200_000))
		p := appendSynced(t, l, text)
		want = append(want, text)
		if n%7 == 6 {
			if err := l.Release(p); err != nil {
				t.Fatal(err)
			}
			want = nil
		}
		if n%50 == 49 {
			if got := replay(t, copyDir(t, dir)); !reflect.DeepEqual(got, want) {
				t.Fatalf("after record %d: replayed %d records, want %d", n, len(got), len(want))
			}
		}
	}
	checkFiles("after 300 records", 6<<20)

	// While nothing is released, a file grows. It shrinks after the release.
	large := strings.Repeat("y", 3<<20)
	var last wal.Position
	for n := range 5 {
		last = appendSynced(t, l, fmt.Sprint(n)+large)
	}
	if got := replay(t, copyDir(t, dir)); len(got) != len(want)+5 || got[len(got)-1] != "4"+large {
		t.Errorf("replayed %d records, want %d", len(got), len(want)+5)
	}
	if err := l.Release(last); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Release(appendSynced(t, l, large)); err != nil {
			t.Fatal(err)
		}
	}
	checkFiles("after all is released", 4<<20)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTornRecordEndsTheReading(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	appendSynced(t, l, "whole")
	appendSynced(t, l, "the last one")
	_ = l.Close()
	content, err := os.ReadFile(filepath.Join(dir, "wal-1"))
	if err != nil {
		t.Fatal(err)
	}
	replayDamaged := func(offset int) []string {
		dir, damaged := t.TempDir(), bytes.Clone(content)
		damaged[offset] ^= 0x40
		if err := os.WriteFile(filepath.Join(dir, "wal-0"), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		return replay(t, dir)
	}
	lastRecord := bytes.Index(content, []byte("the last one")) - 16
	for _, offset := range []int{0, 8, 12, 16, 27} { // segment, length, checksum, and both ends of the payload
		if got, want := replayDamaged(lastRecord+offset), []string{"whole"}; !reflect.DeepEqual(got, want) {
			t.Errorf("byte %d of the last record is damaged: replayed %q, want %q", offset, got, want)
		}
	}
	for _, offset := range []int{0, 8, 16, 24} { // magic, segment, released, checksum: a torn header loses nothing
		if got, want := replayDamaged(offset), []string{"whole", "the last one"}; !reflect.DeepEqual(got, want) {
			t.Errorf("byte %d of the header is damaged: replayed %q, want %q", offset, got, want)
		}
	}
}

func TestConcurrentAppendsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, _ := open(t, dir)
	var callers sync.WaitGroup
	const goroutines, records = 16, 200
	for c := range goroutines {
		callers.Go(func() {
			for n := range records {
				p, err := l.Append(fmt.Appendf(nil, "%d:%d:%s", c, n, strings.Repeat("z", 3000)))
				if err == nil && n%10 == 0 {
					err = l.Sync(p)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	_ = l.Close()
	replayed := replay(t, dir)
	next := map[int]int{}
	for _, text := range replayed {
		var c, n int
		if _, err := fmt.Sscanf(text, "%d:%d:", &c, &n); err != nil || next[c] != n {
			t.Fatalf("got record %.20q, want number %d of its goroutine (%v)", text, next[c], err)
		}
		next[c]++
	}
	if len(replayed) != goroutines*records {
		t.Errorf("replayed %d records, want %d", len(replayed), goroutines*records)
	}
}

func TestClosedLogRefusesRecords(t *testing.T) {
	t.Parallel()
	l, _ := open(t, t.TempDir())
	p := appendSynced(t, l, "a")
	_ = l.Close()
	if _, err := l.Append([]byte("b")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append to a closed log: got %v, want %v", err, os.ErrClosed)
	}
	if err := l.Sync(p); err != nil {
		t.Errorf("Sync of a record that is on disk: %v", err)
	}
}

// BenchmarkSync appends and flushes a record of typical size, next to a file that grows with its records.
func BenchmarkSync(b *testing.B) {
	record := bytes.Repeat([]byte("r"), 2000)
	b.Run("log", func(b *testing.B) {
		l, _ := open(b, b.TempDir())
		defer l.Close()
		for b.Loop() {
			p, err := l.Append(record)
			if err == nil {
				err = errors.Join(l.Sync(p), l.Release(p))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("growing file", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "f"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		for b.Loop() {
			if _, err := f.Write(record); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
