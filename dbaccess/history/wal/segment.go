package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"syscall"
)

const (
	magic             = "GHWAL\x00\x00\x01"
	headerBytes       = 8 + 8 + 8 + 4
	recordHeaderBytes = 8 + 4 + 4
	firstRecord       = 4096    // offset of the first record in a file
	segmentBytes      = 4 << 20 // length of a new file; a file grows while the other segment is not free
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is one file of the log and the segment that the file holds now.
type segment struct {
	*os.File
	number uint64 // 0: the file is new
	end    int64  // offset of the end of the last record
	free   bool   // all records are released, so the file may be overwritten
}

// preallocate gives the file its length. It writes one page at a time: if one call wrote many pages, the kernel would
// keep them together as one large folio and process the whole folio for each record and each flush.
func (s *segment) preallocate() error {
	info, err := s.Stat()
	if err != nil || info.Size() >= segmentBytes {
		return err
	}
	var page [4096]byte
	for offset := info.Size(); offset < segmentBytes; {
		n, err := s.WriteAt(page[:min(segmentBytes-offset, int64(len(page)))], offset)
		if err != nil {
			return err
		}
		offset += int64(n)
	}
	return s.Sync()
}

// read returns the records that were not released and sets the segment's number and end.
func (s *segment) read() (payloads [][]byte, err error) {
	info, err := s.Stat()
	if err != nil {
		return nil, err
	}
	content := make([]byte, info.Size())
	if _, err := s.ReadAt(content, 0); err != nil {
		return nil, err
	}
	s.number, s.end, payloads = parse(content)
	return payloads, nil
}

// parse reads the content of a file, of at least firstRecord+recordHeaderBytes bytes. It stops at the first record
// that is not whole: a torn record was never acknowledged.
func parse(content []byte) (number uint64, end int64, payloads [][]byte) {
	offset := uint64(firstRecord)
	header := content[:headerBytes]
	headerSum := binary.LittleEndian.Uint32(header[24:])
	if string(header[:8]) == magic && crc32.Checksum(header[:24], castagnoli) == headerSum {
		number, offset = binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:])
	} else {
		// The header is torn, as a release was being written. The first record also has the number.
		first := binary.LittleEndian.Uint64(content[firstRecord:])
		if payload, whole := recordAt(content, firstRecord, first); whole && len(payload) > 0 {
			number = first
		}
	}
	for number > 0 {
		payload, whole := recordAt(content, offset, number)
		if !whole {
			break
		}
		payloads = append(payloads, payload)
		offset += recordHeaderBytes + uint64(len(payload))
	}
	return number, int64(offset), payloads
}

// recordAt returns the payload of the record at an offset, if a whole record of the segment is there.
func recordAt(content []byte, offset, number uint64) (payload []byte, whole bool) {
	if offset < firstRecord || offset > uint64(len(content))-recordHeaderBytes {
		return nil, false
	}
	header, rest := content[offset:offset+recordHeaderBytes], content[offset+recordHeaderBytes:]
	length := uint64(binary.LittleEndian.Uint32(header[8:]))
	if binary.LittleEndian.Uint64(header) != number || length > uint64(len(rest)) ||
		checksum(header[:12], rest[:length]) != binary.LittleEndian.Uint32(header[12:]) {
		return nil, false
	}
	return rest[:length], true
}

func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, payload)
}

// writeHeader records that all records before the offset are released.
func (s *segment) writeHeader(released int64) error {
	header := append(make([]byte, 0, headerBytes), magic...)
	header = binary.LittleEndian.AppendUint64(header, s.number)
	header = binary.LittleEndian.AppendUint64(header, uint64(released))
	header = binary.LittleEndian.AppendUint32(header, crc32.Checksum(header, castagnoli))
	_, err := s.WriteAt(header, 0)
	return err
}

// flush calls fdatasync(2).
func (s *segment) flush() error {
	conn, err := s.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Fdatasync(int(fd))
		}
	})
	return errors.Join(controlErr, err)
}
