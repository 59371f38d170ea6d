// Package inputlog keeps what entered a guest during a run and another run could not compute again, so that the run can
// be replayed:
//
//	keys := inputlog.NewKeys(secret)
//	r := keys.Record(inputlog.Rows)
//	r.Begin(request)                      // for each request of the code
//	r.Add(size, frames)                   // for each part of its answer
//	data, err := r.End(clock, missing)    // after the run, for history
//
//	log, err := inputlog.Decode(data)
//	p := keys.Replay(log, false)
//	match, err := p.Next(request)         // for each request of the replayed code
//
// A run has these inputs:
//
//  1. The code and its context, which the record of the execution has.
//  2. The answers to the requests of the code: rows, tables, columns and earlier executions. The log has the frames
//     that the guest received, after masks, and a keyed hash of each request. It has no value of a parameter.
//  3. Randomness: a seed for each run, which the guest expands. It is computed from a secret of the data folder and the
//     execution's id, so nothing stores it, and nobody who reads history or an export can compute it.
//  4. Readings of clocks and times of files, which the guest logs (sandbox/python/ext/syscall_batch/inputs.c).
//  5. Files that came with the request.
//
// Anything else that can differ between two runs, such as a network or the order of threads, is not logged. The service
// names these sources when it compares a replay with its original.
package inputlog

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"sync"

	"github.com/klauspost/compress/zstd"

	"glasshouse/sandbox/protocol"
)

// Mode says what logs keep.
type Mode string

// The modes.
const (
	Rows   Mode = "rows"   // answers, which contain rows of databases
	Hashes Mode = "hashes" // the hash of each answer: a replay asks the database again
	Off    Mode = "off"    // nothing: runs cannot be replayed
)

// IsOn reports whether runs are logged.
func (m Mode) IsOn() bool { return m == Rows || m == Hashes }

// MaxBytes is the maximum size of the requests and answers of one run that a log keeps. An answer that is larger than
// the rest is not kept: a replay asks for it again. All are in memory until the run has ended.
const MaxBytes = 16 << 20

// maxLogBytes bounds a decoded log: its answers, its files and its header.
const maxLogBytes = 64 << 20

// Log is what entered one run.
type Log struct {
	Key   string `json:"key,omitempty"`   // Keys.ID of the keys that it was written with
	Clock []byte `json:"clock,omitempty"` // the readings of clocks, as the guest encodes them
	// ClockMissing is the number of readings that the guest has not logged.
	ClockMissing int64  `json:"clock_missing,omitempty"`
	Files        []File `json:"files,omitempty"` // that came with the request
	// Environ has the environment variables that came with the request, encrypted: they may be secrets.
	Environ  []byte    `json:"environ,omitempty"`
	Requests []Request `json:"requests,omitempty"` // in the order of the run
	// RequestsMissing is the number of later requests, for which the log had no room.
	RequestsMissing int64 `json:"requests_missing,omitempty"`
	// IsPacked says that protocol.PackNumbers has changed the answers in the encoded log. Earlier versions did not.
	IsPacked bool `json:"packed,omitempty"`
}

// File is a file that came with the request of a run.
type File struct {
	Path string `json:"path"` // below /data
	Body []byte `json:"body"`
}

// Request is a request of the code, and the answer that it got.
type Request struct {
	What     string   `json:"what"`               // "query", "stages", "tables", "schema" or "history"
	Database string   `json:"database,omitempty"` // that answered; "": none did
	SQL      string   `json:"sql,omitempty"`
	Names    []string `json:"names,omitempty"` // of the parameters
	Table    string   `json:"table,omitempty"`
	Hash     string   `json:"hash"` // of the whole request but its number, with a key; hex

	Statement int    `json:"statement"`        // its number in the record of the execution, from 1; 0: none
	Form      string `json:"form,omitempty"`   // in which the code asked for rows; "": it is not known
	IsExact   bool   `json:"exact,omitempty"`  // it asked for all digits of numeric values
	Schema    string `json:"schema,omitempty"` // fingerprint of the tables and views in the statement
	Ran       string `json:"ran,omitempty"`    // SHA-256 of the text that PostgreSQL ran, which has the masks; hex
	HasRows   bool   `json:"rows,omitempty"`   // the answer has rows of a database

	Size   int    `json:"size"` // of the answer's frames, in bytes
	IsKept bool   `json:"kept,omitempty"`
	Answer []byte `json:"-"`             // the frames, if they are kept
	Sum    string `json:"sum,omitempty"` // SHA-256 of the frames, if they are not; hex; "" if they were too large
}

// IsComparable reports whether Equals can compare an answer with that of the log, which may have been too large.
func (r *Request) IsComparable() bool { return r.IsKept || r.Sum != "" }

// Equals reports whether the frames of an answer are those that the original run got.
func (r *Request) Equals(answer []byte) bool {
	if r.IsKept {
		return bytes.Equal(r.Answer, answer)
	}
	return r.Sum == sumOf(answer)
}

// IsEmpty reports whether nothing entered the run but what its record has.
func (l *Log) IsEmpty() bool {
	return len(l.Clock)+len(l.Environ)+len(l.Files)+len(l.Requests) == 0 && l.ClockMissing+l.RequestsMissing == 0
}

func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
}

// The encoder of small logs, and the decoder of all.
var (
	zip   = sync.OnceValues(newEncoder)
	unzip = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxLogBytes))
	})
)

// encode returns the log as history stores it: zstd of a JSON line, and then the answers that are kept, in parts of
// whole frames. It changes the answers.
func (l *Log) encode(answers net.Buffers) ([]byte, error) {
	l.IsPacked = len(answers) > 0
	for _, frames := range answers {
		protocol.PackNumbers(frames)
	}
	head, err := json.Marshal(l) // one line
	if err != nil {
		return nil, fmt.Errorf("encode an input log: %w", err)
	}
	parts := append(net.Buffers{head, []byte("\n")}, answers...)
	if sizeOf(parts) > largeBytes {
		return encodeLarge(parts)
	}
	encoder, err := zip()
	if err != nil {
		return nil, err
	}
	return encoder.EncodeAll(bytes.Join(parts, nil), nil), nil
}

// largeBytes is the size from which a log is compressed without another copy of its answers.
const largeBytes = 256 << 10

// large compresses large logs, one after the other, so that they take the time of one CPU at most.
var large struct {
	mu      sync.Mutex
	encoder *zstd.Encoder
}

func encodeLarge(parts net.Buffers) (encoded []byte, err error) {
	large.mu.Lock()
	defer large.mu.Unlock()
	if large.encoder == nil {
		if large.encoder, err = newEncoder(); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	large.encoder.Reset(&out)
	if _, err = parts.WriteTo(large.encoder); err == nil {
		err = large.encoder.Close()
	}
	large.encoder.Reset(nil) // it must not keep out
	return out.Bytes(), err
}

// Decode returns an encoded log. An empty one has the encoding nil.
func Decode(data []byte) (*Log, error) {
	if len(data) == 0 {
		return &Log{}, nil
	}
	decoder, err := unzip()
	if err != nil {
		return nil, err
	}
	text, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("decode an input log: %w", err)
	}
	head, rest, found := bytes.Cut(text, []byte("\n"))
	if !found {
		return nil, errors.New("decode an input log: it has no end of line")
	}
	l := &Log{}
	if err := json.Unmarshal(head, l); err != nil {
		return nil, fmt.Errorf("decode an input log: %w", err)
	}
	for n := range l.Requests {
		r := &l.Requests[n]
		if !r.IsKept {
			continue
		}
		if r.Size < 0 || r.Size > len(rest) {
			return nil, fmt.Errorf("decode an input log: the answer %d is cut: %w", n+1, io.ErrUnexpectedEOF)
		}
		r.Answer, rest = rest[:r.Size:r.Size], rest[r.Size:]
		if l.IsPacked {
			protocol.UnpackNumbers(r.Answer)
		}
	}
	return l, nil
}

// Keys are the keys of a data folder's logs.
type Keys struct {
	seeds             *sync.Pool // of hash.Hash: HMACs with the key of seeds, since each run needs one
	requests, environ []byte
}

// NewKeys derives the keys from a secret of the data folder.
func NewKeys(secret []byte) (Keys, error) {
	seeds, err := hkdf.Key(sha256.New, secret, nil, "glasshouse input log: seeds", sha256.Size)
	if err != nil {
		return Keys{}, err
	}
	requests, err := hkdf.Key(sha256.New, secret, nil, "glasshouse input log: requests", sha256.Size)
	if err != nil {
		return Keys{}, err
	}
	environ, err := hkdf.Key(sha256.New, secret, nil, "glasshouse input log: environment variables", sha256.Size)
	pool := &sync.Pool{New: func() any { return hmac.New(sha256.New, seeds) }}
	return Keys{pool, requests, environ}, err
}

// seal encrypts environment variables.
func (k Keys) seal(environ map[string]string) ([]byte, error) {
	text, err := json.Marshal(environ)
	if err != nil {
		return nil, err
	}
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, text, nil), nil
}

// Variables returns the environment variables of a log. It returns an error if another data folder wrote the log.
func (k Keys) Variables(l *Log) (environ map[string]string, err error) {
	if len(l.Environ) == 0 {
		return nil, nil
	}
	aead, err := k.aead()
	if err != nil {
		return nil, err
	}
	text, err := aead.Open(nil, nil, l.Environ, nil)
	if err != nil {
		return nil, fmt.Errorf("decrypt the environment variables of a run: %w", err)
	}
	err = json.Unmarshal(text, &environ)
	return environ, err
}

func (k Keys) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.environ)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// ID identifies the keys, and says nothing about them.
func (k Keys) ID() string { return k.hash([]byte("id"))[:16] }

// Seed returns the seed of a run's randomness: 32 bytes as hex.
func (k Keys) Seed(executionID string) string {
	sum := k.seeds.Get().(hash.Hash)
	defer k.seeds.Put(sum)
	sum.Reset()
	_, _ = io.WriteString(sum, executionID) // a hash takes everything
	var seed [sha256.Size]byte
	return hex.EncodeToString(sum.Sum(seed[:0]))
}

// HashSeed returns the seed of Python's hashes of texts, which is not 0. It is the same for all runs, so that each has
// the same order of sets.
func HashSeed(secret []byte) (uint32, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "glasshouse input log: hashes of texts", 4)
	if err != nil {
		return 0, err
	}
	return max(binary.BigEndian.Uint32(key), 1), nil
}

// hash returns the hash of a request's canonical form. It has a key, because a request may have a secret as a
// parameter.
func (k Keys) hash(canonical []byte) string {
	sum := hmac.New(sha256.New, k.requests)
	sum.Write(canonical)
	return hex.EncodeToString(sum.Sum(nil))
}

func sumOf(parts ...[]byte) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(part)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func sizeOf(parts net.Buffers) (bytes int) {
	for _, part := range parts {
		bytes += len(part)
	}
	return bytes
}
