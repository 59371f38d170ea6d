package recording_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

func journalOf(t testing.TB, stream []byte) *recording.Journal {
	t.Helper()
	j, err := recording.NewJournal()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(stream); err != nil {
		t.Fatal(err)
	}
	return j
}

// The guest's tests compare their decoder with the same transcripts.
func TestTranscriptEqualsTheGuests(t *testing.T) {
	t.Parallel()
	names := recordingtest.Names()
	if len(names) < 10 {
		t.Fatalf("got %d recordings, want at least 10", len(names))
	}
	for _, name := range names {
		got, err := recording.Transcript(recordingtest.Recorded(name))
		if err != nil {
			t.Fatal(err)
		}
		g, w := strings.Split(got, "\n"), strings.Split(recordingtest.Transcript(name), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("%s, line %d: got %s, want %s", name, i+1, g[i], w[i])
				break
			}
		}
		if len(g) != len(w) {
			t.Errorf("%s: got %d lines, want %d", name, len(g), len(w))
		}
	}
}

func TestEncodedRecordDecodesToItself(t *testing.T) {
	t.Parallel()
	for _, name := range recordingtest.Names() {
		for rest := recordingtest.Recorded(name); len(rest) > 0; {
			var rec, again recording.Record
			size, err := recording.DecodeRecord(rest, &rec)
			if err != nil {
				t.Fatal(name, err)
			}
			encoded := recording.AppendRecord(nil, &rec)
			if n, err := recording.DecodeRecord(encoded, &again); err != nil || n != len(encoded) ||
				!reflect.DeepEqual(rec, again) {
				t.Errorf("%s: got %+v, %v, want %+v", name, again, err, rec)
			}
			rest = rest[size:]
		}
	}
}

func TestIllegalRecordsAreRefused(t *testing.T) {
	t.Parallel()
	head := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindHead, Number: recording.FormatVersion,
		Text: "test"})
	module := recordingtest.New().Stream
	for name, stream := range map[string][]byte{
		"no head":                   {byte(recording.KindHandled)},
		"another version":           {byte(recording.KindHead), 9, 1, 'x', 0},
		"two heads":                 append(bytes.Clone(head), head...),
		"unknown kind":              append(bytes.Clone(head), 0x7f),
		"line outside a frame":      append(bytes.Clone(head), 0xc1),
		"line below 0":              append(bytes.Clone(module), 0x80),
		"set of an undefined name":  append(bytes.Clone(module), byte(recording.KindSet), 9, 'N'),
		"unknown value tag":         append(bytes.Clone(module), byte(recording.KindSet), 1, 'Z'),
		"decimal of 0":              append(bytes.Clone(module), byte(recording.KindSet), 1, 'd', 0, 0),
		"undefined object":          append(bytes.Clone(module), byte(recording.KindSet), 1, '@', 7),
		"mutate of no object":       append(bytes.Clone(module), byte(recording.KindMutate), 1, 2, 0, 0, 0, 0),
		"frame pushed twice":        append(bytes.Clone(module), byte(recording.KindPush), 1, 1, 1, 0, 0),
		"undefined frame":           append(bytes.Clone(module), byte(recording.KindFrame), 9),
		"code of an undefined name": append(bytes.Clone(module), byte(recording.KindCode), 1, 9, 1),
		"resume of a running frame": append(bytes.Clone(module), byte(recording.KindResume), 1, 0),
		"text over the limit":       append(bytes.Clone(head), byte(recording.KindName), 0xff, 0xff, 0xff, 0xff, 0x0f),
		"integer of 70 bits": append(bytes.Clone(head), byte(recording.KindName), 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"object over the limit": append(bytes.Clone(module), byte(recording.KindObject), 1, 1, 1, 0, 0, 1, 0xff,
			0xff, 0xff, 0x0f),
		"pairs without a last value": append(bytes.Clone(module), byte(recording.KindObject), 1, 1, 1, 0, 0, 2, 1, 'N'),
		"text that is not UTF-8":     append(bytes.Clone(head), byte(recording.KindName), 1, 0xff),
		"output that ends before":    append(bytes.Clone(module), byte(recording.KindOutput), 1, 5, 4),
		"too many lost steps": append(bytes.Clone(module), byte(recording.KindLost), 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0x7f, 0),
	} {
		j := journalOf(t, nil)
		if err := j.Append(stream); !errors.Is(err, recording.ErrIllegalRecord) {
			t.Errorf("%s: got %v, want %v", name, err, recording.ErrIllegalRecord)
		}
		if err := j.Append(head); !errors.Is(err, recording.ErrIllegalRecord) {
			t.Errorf("%s: got %v for the next record, want %v", name, err, recording.ErrIllegalRecord)
		}
	}
}

// The result does not depend on how the stream is cut into pieces.
func FuzzJournal(f *testing.F) {
	for _, name := range recordingtest.Names() {
		b := recordingtest.Recorded(name)
		f.Add(b[:min(len(b), 4096)], 7)
	}
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		whole, pieces := journalOf(t, nil), journalOf(t, nil)
		err := whole.Append(stream)
		size := max(1, cut&0xff)
		var piecesErr error
		for rest := stream; len(rest) > 0 && piecesErr == nil; rest = rest[min(size, len(rest)):] {
			piecesErr = pieces.Append(rest[:min(size, len(rest))])
		}
		if (err == nil) != (piecesErr == nil) || whole.Steps() != pieces.Steps() {
			t.Fatalf("got %d steps and %v in pieces, want %d and %v", pieces.Steps(), piecesErr, whole.Steps(), err)
		}
		want, wantErr := whole.State(whole.Steps())
		got, gotErr := pieces.State(whole.Steps())
		if (gotErr == nil) != (wantErr == nil) || wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("the last state differs: got %v, want %v", gotErr, wantErr)
		}
		if wantErr != nil && !errors.Is(wantErr, recording.ErrNoStep) {
			t.Fatal(wantErr)
		}
	})
}

func TestEqualIntegersAreEqualValues(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, 1, -1, 127, -128, 300, -32768, 1 << 31, -1 << 40, math.MaxInt64, math.MinInt64} {
		short := recording.DecodeValue(binary.AppendVarint([]byte{'i'}, n))
		long := recording.DecodeValue(binary.LittleEndian.AppendUint64([]byte{'I', 8}, uint64(n)))
		if short != long || short.BigInt().Int64() != n {
			t.Errorf("got %+v and %+v, want equal values of %d", short, long, n)
		}
	}
	if got := recording.DecodeValue([]byte{'I', 2, 0xd4, 0xfe}); got.Int != -300 {
		t.Errorf("got %+v, want -300", got)
	}
}

func TestIntValueKeepsTheInteger(t *testing.T) {
	t.Parallel()
	for _, shift := range []uint{0, 7, 8, 62, 63, 64, 65, 127, 128, 1000} {
		for _, offset := range []int64{-1, 0, 1} {
			for _, sign := range []int64{-1, 1} {
				want := new(big.Int).Lsh(big.NewInt(sign), shift)
				want.Add(want, big.NewInt(offset))
				encoded := recording.AppendRecord(nil,
					&recording.Record{Kind: recording.KindReturn, Value: recording.IntValue(want)})
				if got := recording.DecodeValue(encoded[1:]); got.BigInt().Cmp(want) != 0 {
					t.Errorf("got %s, want %s", got.BigInt(), want)
				}
			}
		}
	}
}
