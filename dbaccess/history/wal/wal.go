// Package wal is a write-ahead log. A record is in a file within a fraction of a millisecond and stays in the log
// until the owner of the log has stored the record elsewhere:
//
//	log, err := wal.Open(dir, replay)     // replay gets the records that were not released
//	position, err := log.Append(payload)  // the record survives the death of this process
//	err = log.Sync(position)              // the record survives a crash of the machine
//	err = log.Release(position)           // the records up to position are stored elsewhere
//	err = log.Close()
//
// The package is responsible for:
//
//  1. Order: Open replays records in the order in which Append wrote them.
//  2. Durability: Sync returns after fdatasync(2). Callers that wait at the same time share one flush.
//  3. Torn records: reading stops at a record that was not written completely. Append never returned for such a record,
//     so no caller relies on it.
//  4. Bounded space: the log alternates between two segments. A released segment is overwritten.
//
// The owner of the log is responsible for releasing records, and for opening a folder once at a time.
//
// # File format
//
// The files wal-0 and wal-1 hold one segment each. A new file is filled with zeros and then overwritten repeatedly:
// fdatasync is fastest, and its time varies least, if neither the length nor the blocks of the file change. Every
// record carries the number of its segment, which distinguishes it from records of an older segment in the same file:
//
//	file    = header, zeros up to 4096, record...
//	header  = magic [8], segment uint64, released uint64, crc32c uint32
//	record  = segment uint64, length uint32, crc32c uint32, payload
//
// All numbers are little-endian. The checksum of a record covers the segment, the length and the payload.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// syncDelay is the time between SyncSoon and its flush: 100 flushes a second do not load a disk.
const syncDelay = 10 * time.Millisecond

// Position is a place in a Log: the end of a record. It grows with every record, as PostgreSQL's LSN does.
type Position struct {
	segment uint64 // its number, from 1
	offset  int64  // bytes from the start of the file
}

// After reports whether p is behind other.
func (p Position) After(other Position) bool {
	return p.segment > other.segment || p.segment == other.segment && p.offset > other.offset
}

// Log is a write-ahead log. Its methods are safe for concurrent use.
type Log struct {
	mu          sync.Mutex
	segments    [2]*segment
	current     int      // index of the segment that is written
	last        Position // the end of the last record
	err         error    // not nil: the log failed and accepts no more records
	buffer      []byte   // reused by Append
	syncPending bool     // SyncSoon has started its timer

	// syncMu is held during a flush. Callers that wait for it often find that their records were flushed meanwhile.
	syncMu sync.Mutex
	synced Position // guarded by syncMu
}

// Open opens the log in dir and makes the folder if it does not exist. It calls replay once with all records that
// were not released, in order, if there are any. If replay returns nil, the records are released. If replay returns
// an error, Open returns that error and the records stay. The caller closes the log. The caller also ensures that
// no other process has the folder open.
func Open(dir string, replay func(payloads [][]byte) error) (*Log, error) {
	l := &Log{}
	err := l.openFiles(dir)
	if err == nil {
		err = l.recover(replay)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the write-ahead log in %s: %w", dir, err), l.Close())
	}
	return l, nil
}

func (l *Log) openFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for n := range l.segments {
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("wal-%d", n)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		l.segments[n] = &segment{File: file, end: firstRecord}
		if err := l.segments[n].preallocate(); err != nil {
			return err
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync() // makes the names of the files durable
}

// recover replays both segments, releases them and starts a new one.
func (l *Log) recover(replay func([][]byte) error) error {
	var records [2][][]byte
	for n, s := range l.segments {
		var err error
		if records[n], err = s.read(); err != nil {
			return err
		}
	}
	if l.segments[0].number < l.segments[1].number {
		l.current = 1
	}
	if payloads := append(records[1-l.current], records[l.current]...); len(payloads) > 0 {
		if err := replay(payloads); err != nil {
			return err
		}
	}
	newest := l.segments[l.current].number
	for _, s := range l.segments {
		s.free = true
		if err := errors.Join(s.writeHeader(s.end), s.flush()); err != nil {
			return err
		}
	}
	return l.startSegment(newest + 1)
}

// startSegment makes the other segment, which must be free, the current one.
func (l *Log) startSegment(number uint64) error {
	next := l.segments[1-l.current]
	if info, err := next.Stat(); err != nil {
		return err
	} else if info.Size() > segmentBytes {
		if err := next.Truncate(segmentBytes); err != nil {
			return err
		}
	}
	next.number, next.end, next.free = number, firstRecord, false
	if err := next.writeHeader(firstRecord); err != nil {
		return err
	}
	// The header is flushed before any record of the segment: if a crash kept records and lost the header, the next
	// Open would use the number again.
	if err := next.flush(); err != nil {
		return err
	}
	l.current, l.last = 1-l.current, Position{number, firstRecord}
	return nil
}

// Append writes a record of less than 4 GiB and returns the position of its end. When Append returns, the record
// survives the death of this process; after Sync, it survives a crash of the machine.
func (l *Log) Append(payload []byte) (Position, error) {
	if int64(len(payload)) > 1<<32-1 {
		const message = "a record of %d bytes is too large for the write-ahead log, which takes less than 4 GiB"
		return Position{}, fmt.Errorf(message, len(payload))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return Position{}, l.err
	}
	s := l.segments[l.current]
	size := int64(recordHeaderBytes + len(payload))
	if s.end > firstRecord && s.end+size > segmentBytes && l.segments[1-l.current].free {
		// The old segment is flushed here, so Sync need not find the segment of a position.
		if err := s.flush(); err != nil {
			return Position{}, l.fail(err)
		}
		if err := l.startSegment(s.number + 1); err != nil {
			return Position{}, l.fail(err)
		}
		s = l.segments[l.current]
	}
	record := binary.LittleEndian.AppendUint64(l.buffer[:0], s.number)
	record = binary.LittleEndian.AppendUint32(record, uint32(len(payload)))
	record = binary.LittleEndian.AppendUint32(record, checksum(record, payload))
	record = append(record, payload...)
	if _, err := s.WriteAt(record, s.end); err != nil { // the next record overwrites what was written of this one
		return Position{}, fmt.Errorf("append to the write-ahead log: %w", err)
	}
	if l.buffer = record; cap(record) > 1<<20 {
		l.buffer = nil // one large record should not hold its memory for ever
	}
	s.end += int64(len(record))
	l.last = Position{s.number, s.end}
	return l.last, nil
}

// fail stops the log after a failed flush: the state of the data on disk is unknown then, because Linux drops the
// pages that it could not write and reports the failure once. The caller holds mu.
func (l *Log) fail(err error) error {
	l.err = fmt.Errorf("flush the write-ahead log: %w", err)
	return l.err
}

// Sync returns when all records up to the position are on disk.
func (l *Log) Sync(p Position) error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	if !p.After(l.synced) {
		return nil
	}
	l.mu.Lock()
	s, last, err := l.segments[l.current], l.last, l.err
	l.mu.Unlock()
	if err != nil {
		return err
	}
	if last.segment != p.segment {
		return nil // Append flushed the segment of p when it started the next one
	}
	err = s.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return l.fail(err)
	}
	if l.err != nil { // Linux reports a failed write once, perhaps to a flush in Append
		return l.err
	}
	l.synced = last
	return nil
}

// Synced returns the position up to which the log is known to be on disk.
func (l *Log) Synced() Position {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.synced
}

// SyncSoon flushes the log about 10 ms later and does not wait for the flush. Calls within that time share one flush.
// If the flush fails, the next Append returns its error.
func (l *Log) SyncSoon() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.syncPending {
		return
	}
	l.syncPending = true
	time.AfterFunc(syncDelay, func() {
		l.mu.Lock()
		last := l.last
		l.syncPending = false
		l.mu.Unlock()
		_ = l.Sync(last) // Sync keeps the error for Append
	})
}

// Release tells the log that all records up to the position are stored elsewhere. The header that says so is not
// flushed, so a crash of the machine may lead to a replay of released records.
func (l *Log) Release(p Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	current, other := l.segments[l.current], l.segments[1-l.current]
	var err error
	if end := (Position{other.number, other.end}); !other.free {
		switch {
		case !end.After(p):
			err = other.writeHeader(other.end)
			other.free = true
		case p.segment == other.number:
			err = other.writeHeader(p.offset)
		}
	}
	if p.segment == current.number {
		err = errors.Join(err, current.writeHeader(p.offset))
	}
	return err
}

// Close flushes and closes the log. The next Open replays the records that were not released.
func (l *Log) Close() error {
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.err == nil && l.last.After(l.synced) {
		if err = l.segments[l.current].flush(); err == nil {
			l.synced = l.last
		}
	}
	l.err = errors.Join(l.err, os.ErrClosed)
	for _, s := range l.segments {
		if s != nil { // nil if Open failed early
			err = errors.Join(err, s.Close())
		}
	}
	return err
}
