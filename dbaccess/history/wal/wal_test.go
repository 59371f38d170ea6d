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

// open opens the log in dir and returns what it replays.
func open(t testing.TB, dir string) (*wal.Log, []string) {
	t.Helper()
	var got []string
	l, err := wal.Open(dir, func(payloads [][]byte) error {
		for _, p := range payloads {
			got = append(got, string(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, got
}

func add(t testing.TB, l *wal.Log, payload string) wal.Mark {
	t.Helper()
	m, err := l.Append([]byte(payload))
	if err == nil {
		err = l.Sync(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// copied is the folder as a crash of the machine would leave it, at this moment.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestWhatWasNotReleasedIsReplayedOnce(t *testing.T) {
	dir := t.TempDir()
	l, got := open(t, dir)
	if got != nil {
		t.Fatalf("a new log replays %q", got)
	}
	add(t, l, "a")
	kept := add(t, l, "b")
	add(t, l, "")
	add(t, l, "c\x00")
	if err := l.Release(kept); err != nil {
		t.Fatal(err)
	}
	crashed := copied(t, dir)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, crashed} {
		l, got := open(t, dir)
		if want := []string{"", "c\x00"}; !reflect.DeepEqual(got, want) {
			t.Errorf("replayed %q, want %q", got, want)
		}
		add(t, l, "later")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, got = open(t, dir)
		if !reflect.DeepEqual(got, []string{"later"}) {
			t.Errorf("then %q", got)
		}
		_ = l.Close()
	}
}

// A mark that is older than all that is there releases nothing.
func TestAnOldMarkReleasesNothing(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	large := strings.Repeat("x", 3<<20)
	add(t, l, "1"+large)
	add(t, l, "2"+large) // in the next turn
	if err := l.Release(wal.Mark{}); err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	l, got := open(t, dir)
	defer l.Close()
	if len(got) != 2 {
		t.Errorf("%d records of 2", len(got))
	}
}

// A replay that fails loses nothing.
func TestAFailedReplayIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	add(t, l, "a")
	_ = l.Close()
	no := errors.New("not now")
	for range 2 {
		if _, err := wal.Open(dir, func([][]byte) error { return no }); !errors.Is(err, no) {
			t.Fatal(err)
		}
	}
	l, got := open(t, dir)
	defer l.Close()
	if !reflect.DeepEqual(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
}

// Over many turns, with records of all sizes, whatever was not released comes back in
// order, and the files do not grow without end.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	var want []string
	for n := range 300 {
		text := fmt.Sprintf("%d %s", n, strings.Repeat("x", n*n%200_000))
		m := add(t, l, text)
		want = append(want, text)
		if n%7 == 6 {
			if err := l.Release(m); err != nil {
				t.Fatal(err)
			}
			want = nil
		}
		if n%50 == 49 {
			crashed, got := open(t, copied(t, dir))
			_ = crashed.Close()
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d: %d records, want %d", n, len(got), len(want))
			}
		}
	}
	for n := range 2 {
		if info, err := os.Stat(filepath.Join(dir, fmt.Sprint("wal-", n))); err != nil || info.Size() > 6<<20 {
			t.Errorf("%v %v", info, err)
		}
	}
	// While nothing is released nothing is lost: the file grows, and shrinks again.
	large := strings.Repeat("y", 3<<20)
	var last wal.Mark
	for n := range 5 {
		last = add(t, l, fmt.Sprint(n)+large)
	}
	crashed, got := open(t, copied(t, dir))
	_ = crashed.Close()
	if len(got) != len(want)+5 || got[len(got)-1] != "4"+large {
		t.Errorf("%d records of %d", len(got), len(want)+5)
	}
	if err := l.Release(last); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Release(add(t, l, large)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 {
		if info, err := os.Stat(filepath.Join(dir, fmt.Sprint("wal-", n))); err != nil || info.Size() != 4<<20 {
			t.Errorf("%v %v", info.Size(), err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Wherever the machine stops, what was flushed before is there and what was not whole is
// not.
func TestTornRecords(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	add(t, l, "whole")
	add(t, l, "the last one")
	_ = l.Close()
	text, err := os.ReadFile(filepath.Join(dir, "wal-1"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte("the last one")) - 16
	for _, n := range []int{0, 8, 12, 16, 27} {
		torn := t.TempDir()
		broken := bytes.Clone(text)
		broken[at+n] ^= 0x40
		if err := os.WriteFile(filepath.Join(torn, "wal-0"), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		l, got := open(t, torn)
		if !reflect.DeepEqual(got, []string{"whole"}) {
			t.Errorf("byte %d: %q", n, got)
		}
		_ = l.Close()
	}
	// A torn header costs nothing.
	for _, n := range []int{0, 8, 16, 24} {
		torn := t.TempDir()
		broken := bytes.Clone(text)
		broken[n] ^= 0x40
		if err := os.WriteFile(filepath.Join(torn, "wal-0"), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		l, got := open(t, torn)
		if !reflect.DeepEqual(got, []string{"whole", "the last one"}) {
			t.Errorf("byte %d of the header: %q", n, got)
		}
		_ = l.Close()
	}
}

func TestManyAppendAtOnce(t *testing.T) {
	dir := t.TempDir()
	l, _ := open(t, dir)
	var all sync.WaitGroup
	const callers, each = 16, 200
	for c := range callers {
		all.Go(func() {
			for n := range each {
				m, err := l.Append([]byte(fmt.Sprintf("%d:%d:%s", c, n, strings.Repeat("z", 3000))))
				if err == nil && n%10 == 0 {
					err = l.Sync(m)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	_ = l.Close()
	l, got := open(t, dir)
	defer l.Close()
	next := map[int]int{}
	for _, text := range got {
		var c, n int
		if _, err := fmt.Sscanf(text, "%d:%d:", &c, &n); err != nil || next[c] != n {
			t.Fatalf("%.20q out of order, %v", text, err)
		}
		next[c]++
	}
	if len(got) != callers*each {
		t.Errorf("%d records", len(got))
	}
}

func TestAFailedLogSaysSo(t *testing.T) {
	l, _ := open(t, t.TempDir())
	m := add(t, l, "a")
	_ = l.Close()
	if _, err := l.Append([]byte("b")); err == nil {
		t.Error("Append to a closed log has no error")
	}
	if err := l.Sync(m); err != nil {
		t.Errorf("what is on disk is not believed to be: %v", err)
	}
}

// BenchmarkSync is a record of the usual size on its way to the disk, beside the same
// where the file grows with it.
func BenchmarkSync(b *testing.B) {
	record := bytes.Repeat([]byte("r"), 2000)
	b.Run("log", func(b *testing.B) {
		l, _ := open(b, b.TempDir())
		defer l.Close()
		for b.Loop() {
			m, err := l.Append(record)
			if err == nil {
				err = errors.Join(l.Sync(m), l.Release(m))
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
