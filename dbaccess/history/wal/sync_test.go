package wal

import (
	"errors"
	"os"
	"testing"
	"time"
)

func opened(t *testing.T) *Log {
	t.Helper()
	l, err := Open(t.TempDir(), func([][]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func appended(t *testing.T, l *Log) Mark {
	t.Helper()
	m, err := l.Append([]byte("a record"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Sync has a record on disk when it returns, SyncSoon without another call, also what came
// after one that had nothing to wait for; and Close what nobody asked for.
func TestWhatIsOnDisk(t *testing.T) {
	l := opened(t)
	m := appended(t, l)
	if !m.After(l.Synced()) {
		t.Error("a record is on disk before anybody asked for it")
	}
	if err := l.Sync(m); err != nil || m.After(l.Synced()) {
		t.Errorf("after Sync it is not on disk, %v", err)
	}
	for n := range 3 {
		m = appended(t, l)
		l.SyncSoon()
		l.SyncSoon()
		for end := time.Now().Add(30 * time.Second); m.After(l.Synced()); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("record %d is not on disk long after SyncSoon", n)
			}
		}
	}
	m = appended(t, l)
	if err := l.Close(); err != nil || m.After(l.Synced()) {
		t.Errorf("after Close it is not on disk, %v", err)
	}
}

// A flush that nobody waited for, and that failed, is told by the next Append.
func TestAFlushThatFailsLater(t *testing.T) {
	l := opened(t)
	appended(t, l)
	l.mu.Lock()
	f := l.files[l.now]
	own := f.File
	reader, writer, err := os.Pipe() // which can't be flushed
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer own.Close()
	f.File = writer
	l.mu.Unlock()
	l.SyncSoon()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		bad := l.bad
		l.mu.Unlock()
		if bad != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the flush has not failed")
		}
	}
	if _, err := l.Append([]byte("another")); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("after a flush that failed Append says %v", err)
	}
}
