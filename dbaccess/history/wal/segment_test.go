package wal

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzParse checks that parse returns only records that were written, and ends, for any content of a file.
func FuzzParse(f *testing.F) {
	file := make([]byte, firstRecord, firstRecord+200)
	for _, payload := range []string{"one", "", "two"} {
		header := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 7), uint32(len(payload)))
		sum := checksum(header, []byte(payload))
		file = append(binary.LittleEndian.AppendUint32(append(file, header...), sum), payload...)
	}
	number, end, payloads := parse(file)
	joined := string(bytes.Join(payloads, []byte("|")))
	if number != 7 || int(end) != len(file) || joined != "one||two" {
		f.Fatalf("intact file: got segment %d, end %d, records %q; want 7, %d, one||two",
			number, end, joined, len(file))
	}
	const firstRecordEnd = recordHeaderBytes + len("one")
	f.Add(file[firstRecord:], 0, uint64(firstRecord), true)
	f.Add(file[firstRecord:], firstRecordEnd, uint64(firstRecord+firstRecordEnd), true)
	f.Add(file[firstRecord:], firstRecordEnd, uint64(1<<63), false)
	f.Fuzz(func(t *testing.T, records []byte, flip int, released uint64, validHeader bool) {
		content := append(make([]byte, firstRecord), append(records, make([]byte, recordHeaderBytes)...)...)
		if flip >= 0 && flip < len(records) {
			content[firstRecord+flip] ^= 1
		}
		if validHeader {
			header := append([]byte(magic), 7, 0, 0, 0, 0, 0, 0, 0)
			header = binary.LittleEndian.AppendUint64(header, released)
			copy(content, binary.LittleEndian.AppendUint32(header, checksum(header, nil)))
		}
		_, _, payloads := parse(content)
		for _, payload := range payloads {
			if !bytes.Contains(content, payload) {
				t.Errorf("parse returned %q, which is not in the file", payload)
			}
		}
		startsIntact := bytes.HasPrefix(records, file[firstRecord:firstRecord+firstRecordEnd])
		if !validHeader && startsIntact && flip >= 0 && flip < firstRecordEnd && len(payloads) > 0 {
			t.Errorf("parse returned %q from a record with a flipped bit; want no record", payloads[0])
		}
	})
}
