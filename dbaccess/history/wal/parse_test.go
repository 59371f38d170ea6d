package wal

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Whatever is in a file, reading it gives no record that was not written, and ends.
func FuzzParse(f *testing.F) {
	file := make([]byte, begin, begin+200)
	for _, payload := range []string{"one", "", "two"} {
		head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, 7), uint32(len(payload)))
		file = append(binary.LittleEndian.AppendUint32(append(file, head...), sum(head, []byte(payload))), payload...)
	}
	if turn, end, payloads := parse(file); turn != 7 || int(end) != len(file) || string(bytes.Join(payloads, []byte("|"))) != "one||two" {
		f.Fatalf("%d %d %q", turn, end, payloads)
	}
	f.Add(file[begin:], 0, uint64(begin), true)
	f.Add(file[begin:], 19, uint64(begin+19), true)
	f.Add(file[begin:], 19, uint64(1<<63), false)
	f.Fuzz(func(t *testing.T, records []byte, flip int, released uint64, sealed bool) {
		text := append(make([]byte, begin), append(records, make([]byte, recordSize)...)...)
		if flip >= 0 && flip < len(records) {
			text[begin+flip] ^= 1
		}
		if sealed { // a header that is whole
			header := append([]byte(magic), 7, 0, 0, 0, 0, 0, 0, 0)
			header = binary.LittleEndian.AppendUint64(header, released)
			copy(text, binary.LittleEndian.AppendUint32(header, sum(header, nil)))
		}
		_, _, payloads := parse(text)
		for _, p := range payloads {
			at := bytes.Index(text, p)
			if at < 0 {
				t.Errorf("%q is not in the file", p)
			}
		}
		if !sealed && flip >= 0 && flip < 12+4+3 && len(payloads) > 0 && bytes.HasPrefix(records, file[begin:begin+19]) {
			t.Errorf("a record with a flipped bit was read: %q", payloads[0])
		}
	})
}
