package wal

import (
	"errors"
	"os"
	"testing"

	"glasshouse/policy/polltest"
)

func openTestLog(t *testing.T) *Log {
	t.Helper()
	l, err := Open(t.TempDir(), func([][]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func appendRecord(t *testing.T, l *Log) Position {
	t.Helper()
	p, err := l.Append([]byte("a record"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitFor polls for a state that has no event.
var waitFor = polltest.Eventually

func TestSyncSyncSoonAndCloseFlush(t *testing.T) {
	t.Parallel()
	l := openTestLog(t)
	p := appendRecord(t, l)
	if !p.After(l.Synced()) {
		t.Error("a record counts as synced before any call of Sync")
	}
	if err := l.Sync(p); err != nil || p.After(l.Synced()) {
		t.Errorf("Sync(%v): %v; synced to %v", p, err, l.Synced())
	}
	for range 3 { // also after a flush that found nothing to do
		p = appendRecord(t, l)
		l.SyncSoon()
		l.SyncSoon()
		waitFor(t, "a flush by SyncSoon", func() bool { return !p.After(l.Synced()) })
	}
	p = appendRecord(t, l)
	if err := l.Close(); err != nil || p.After(l.Synced()) {
		t.Errorf("Close: %v; synced to %v, want %v", err, l.Synced(), p)
	}
}

func TestAppendReportsAFailedSyncSoon(t *testing.T) {
	t.Parallel()
	l := openTestLog(t)
	appendRecord(t, l)
	reader, writer, err := os.Pipe() // fdatasync on a pipe fails
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	l.mu.Lock()
	s := l.segments[l.current]
	file := s.File
	s.File = writer
	l.mu.Unlock()
	defer file.Close()
	l.SyncSoon()
	waitFor(t, "the flush to fail", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.err != nil
	})
	if _, err := l.Append([]byte("another")); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after a failed flush: got %v, want the error of the flush", err)
	}
}
