// Package wal is a write-ahead log: records that are on disk within a fraction of a
// millisecond, and stay there until they are kept elsewhere.
//
// Two files take turns. Each is written in full once, with zeros, and then again and
// again: where neither length nor blocks of a file change, fdatasync has its data to
// write and nothing else, which is quicker and varies less. A file's records carry the
// number of its turn, so those of earlier turns are told apart:
//
//	file    = header, zeros up to 4096, record...
//	header  = magic [8], turn uint64, released uint64, crc32c uint32
//	record  = turn uint64, length uint32, crc32c uint32, payload
//
// all little-endian; a record's sum is of its turn, its length and its payload.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	magic      = "GHWAL\x00\x00\x01"
	headerSize = 8 + 8 + 8 + 4
	recordSize = 8 + 4 + 4
	begin      = 4096    // of the first record
	fileSize   = 4 << 20 // that a file has from the start; it grows where the other one is not free

	// lag is how long SyncSoon gathers: a hundred flushes a second are no load for a disk.
	lag = 10 * time.Millisecond
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark is a place in a Log: after one record. Later ones are larger.
type Mark struct {
	turn uint64
	end  int64
}

// After says whether m is behind other.
func (m Mark) After(other Mark) bool {
	return m.turn > other.turn || m.turn == other.turn && m.end > other.end
}

// Log is a write-ahead log. Its methods may be called from many goroutines at once.
type Log struct {
	mu    sync.Mutex
	files [2]*file
	now   int   // the one that is written
	last  Mark  // the end of the last record
	bad   error // why nothing can be written any more
	space []byte
	soon  bool // a flush is due

	syncing sync.Mutex // held by who flushes; others who wait for it may find their records flushed
	synced  Mark       // guarded by syncing
}

// file is one of the two. Its turn is its last one.
type file struct {
	*os.File
	turn uint64
	end  int64 // of its last record
	free bool  // nothing in it is needed
}

// Open opens the log in a folder, making it where it is missing. Records that were not
// released are given to replay, all at once and in order; when it returns they are
// released. Its error is Open's, and then they stay. One process may have the folder open
// at a time: that is the caller's to see to.
func Open(dir string, replay func(payloads [][]byte) error) (*Log, error) {
	l := &Log{}
	err := l.open(dir)
	if err == nil {
		err = l.restart(replay)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the log in %s: %w", dir, err), l.Close())
	}
	return l, nil
}

// restart replays both files and begins a turn.
func (l *Log) restart(replay func([][]byte) error) error {
	var all [2][][]byte
	for n, f := range l.files {
		var err error
		if all[n], err = f.read(); err != nil {
			return err
		}
	}
	if l.files[0].turn < l.files[1].turn {
		l.now = 1
	}
	if payloads := append(all[1-l.now], all[l.now]...); len(payloads) > 0 {
		if err := replay(payloads); err != nil {
			return err
		}
	}
	number := l.files[l.now].turn + 1
	for _, f := range l.files {
		f.free = true
		if err := errors.Join(f.release(f.end), f.flush()); err != nil {
			return err
		}
	}
	return l.turn(number)
}

func (l *Log) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for n := range l.files {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("wal-%d", n)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		l.files[n] = &file{File: f, end: begin}
		if err := l.files[n].fill(); err != nil {
			return err
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync() // the names of the files are in it
}

// fill gives the file the length that it has from the start, a page at a time: the kernel
// keeps what is written at once together, up to megabytes (a large folio), and goes
// through all of that for each record that is written to it, and for each flush.
func (f *file) fill() error {
	info, err := f.Stat()
	if err != nil || info.Size() >= fileSize {
		return err
	}
	var page [4096]byte
	for at := info.Size(); at < fileSize; {
		n, err := f.WriteAt(page[:min(fileSize-at, int64(len(page)))], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return f.Sync()
}

// read returns the records that were not released, and finds the file's turn and end.
func (f *file) read() (payloads [][]byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, err
	}
	f.turn, f.end, payloads = parse(text)
	return payloads, nil
}

// parse reads a file of at least begin+recordSize bytes. It ends before the first record
// that is not whole: that one was being written when all ended, and nobody was told that
// it is there.
func parse(text []byte) (turn uint64, end int64, payloads [][]byte) {
	at := uint64(begin)
	if header := text[:headerSize]; string(header[:8]) == magic && crc32.Checksum(header[:24], castagnoli) == binary.LittleEndian.Uint32(header[24:]) {
		turn, at = binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:])
	} else if payload, whole := recordAt(text, begin, binary.LittleEndian.Uint64(text[begin:])); whole && len(payload) > 0 {
		turn = binary.LittleEndian.Uint64(text[begin:]) // its header was being written: its first record says it
	}
	for turn > 0 {
		payload, whole := recordAt(text, at, turn)
		if !whole {
			break
		}
		payloads = append(payloads, payload)
		at += recordSize + uint64(len(payload))
	}
	return turn, int64(at), payloads
}

// recordAt is the payload of a turn's record.
func recordAt(text []byte, at, turn uint64) (payload []byte, whole bool) {
	if at < begin || at > uint64(len(text))-recordSize {
		return nil, false
	}
	head, rest := text[at:at+recordSize], text[at+recordSize:]
	length := uint64(binary.LittleEndian.Uint32(head[8:]))
	if binary.LittleEndian.Uint64(head) != turn || length > uint64(len(rest)) || sum(head[:12], rest[:length]) != binary.LittleEndian.Uint32(head[12:]) {
		return nil, false
	}
	return rest[:length], true
}

func sum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}

// turn begins a turn in the other file.
func (l *Log) turn(number uint64) error {
	next := l.files[1-l.now]
	if info, err := next.Stat(); err != nil {
		return err
	} else if info.Size() > fileSize {
		if err := next.Truncate(fileSize); err != nil {
			return err
		}
	}
	next.turn, next.end, next.free = number, begin, false
	if err := next.release(begin); err != nil {
		return err
	}
	// Flushed before any record of the turn: a crash that kept records and lost this would
	// have the next start use the number again.
	if err := next.flush(); err != nil {
		return err
	}
	l.now, l.last = 1-l.now, Mark{number, begin}
	return nil
}

// flush is fdatasync(2).
func (f *file) flush() error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Fdatasync(int(fd))
		}
	})
	return errors.Join(failed, err)
}

// release writes the header: nothing before the end is needed.
func (f *file) release(end int64) error {
	header := append(make([]byte, 0, headerSize), magic...)
	header = binary.LittleEndian.AppendUint64(header, f.turn)
	header = binary.LittleEndian.AppendUint64(header, uint64(end))
	header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(header, castagnoli))
	_, err := f.WriteAt(header, 0)
	return err
}

// Append writes a record, of less than 4 GiB. When it returns the record survives the
// death of this process; after Sync that of the machine.
func (l *Log) Append(payload []byte) (Mark, error) {
	if int64(len(payload)) > 1<<32-1 {
		return Mark{}, fmt.Errorf("a record of %d bytes is too large for the log", len(payload))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bad != nil {
		return Mark{}, l.bad
	}
	f := l.files[l.now]
	if size := int64(recordSize + len(payload)); f.end > begin && f.end+size > fileSize && l.files[1-l.now].free {
		// Whoever waits for a mark of the turn that ends here need not look for its file.
		if err := f.flush(); err != nil {
			return Mark{}, l.fail(err)
		}
		if err := l.turn(f.turn + 1); err != nil {
			return Mark{}, l.fail(err)
		}
		f = l.files[l.now]
	}
	record := binary.LittleEndian.AppendUint64(l.space[:0], f.turn)
	record = binary.LittleEndian.AppendUint32(record, uint32(len(payload)))
	record = binary.LittleEndian.AppendUint32(record, sum(record, payload))
	record = append(record, payload...)
	if _, err := f.WriteAt(record, f.end); err != nil { // the next one is written over it
		return Mark{}, fmt.Errorf("write to the log: %w", err)
	}
	if l.space = record; cap(record) > 1<<20 {
		l.space = nil
	}
	f.end += int64(len(record))
	l.last = Mark{f.turn, f.end}
	return l.last, nil
}

// fail says that the log can't be trusted any more: what a failed flush has left on
// disk can't be known. The caller holds mu.
func (l *Log) fail(err error) error {
	l.bad = fmt.Errorf("flush the log: %w", err)
	return l.bad
}

// Sync returns when what was appended up to the mark is on disk. Many who call it at
// once share a flush.
func (l *Log) Sync(m Mark) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if !m.After(l.synced) {
		return nil
	}
	l.mu.Lock()
	f, last, err := l.files[l.now], l.last, l.bad
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if last.turn == m.turn { // or it was flushed as its turn ended
		err := f.flush()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			return l.fail(err)
		}
		if l.bad != nil { // the kernel tells of a failure once: perhaps it told Append
			return l.bad
		}
		l.synced = last
	}
	return nil
}

// Synced is up to where the log is known to be on disk.
func (l *Log) Synced() Mark {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	return l.synced
}

// SyncSoon has what was appended on disk some 10 ms later, and does not wait for it. Many
// calls share a flush. One that fails is told by the next Append.
func (l *Log) SyncSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.soon {
		return
	}
	l.soon = true
	time.AfterFunc(lag, func() {
		l.mu.Lock()
		last := l.last
		l.soon = false
		l.mu.Unlock()
		_ = l.Sync(last)
	})
}

// Release says that all up to the mark is kept elsewhere. After a crash of the machine
// some of it may be replayed all the same.
func (l *Log) Release(m Mark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, other := l.files[l.now], l.files[1-l.now]
	var err error
	switch end := (Mark{other.turn, other.end}); {
	case other.free:
	case m.After(end) || m == end:
		err = other.release(other.end)
		other.free = true
	case m.turn == other.turn:
		err = other.release(m.end)
	}
	if m.turn == now.turn {
		err = errors.Join(err, now.release(m.end))
	}
	return err
}

// Close ends the log, flushed. What was not released is replayed by the next Open.
func (l *Log) Close() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.bad == nil && l.last.After(l.synced) {
		if err = l.files[l.now].flush(); err == nil {
			l.synced = l.last
		}
	}
	l.bad = errors.Join(l.bad, os.ErrClosed)
	for _, f := range l.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
