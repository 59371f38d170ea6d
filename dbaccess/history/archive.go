package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"time"

	"github.com/klauspost/compress/zstd"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

// archiveFormat is the version of the format that Export writes. Import reads this version and earlier ones. Import is
// the only way from the databases with 17 migrations to this version: format 1 stays readable as those versions wrote
// it, that is with the records of today's sandbox.Execution. Format 2 adds lines with input logs.
const archiveFormat = 2

const (
	archiveWindow  = 8 << 20 // of zstd; bounds the memory of a reader
	archivePiece   = 1 << 20 // bytes of a file in one line
	maxArchiveLine = maxRecordBytes + 1<<10
)

// archiveLine is a line of an archive: JSON with one of these fields. The first line is a Header and the last an End.
// The lines of an execution begin with Begin and end with Execution:
//
//	{"begin": ID} {"sandbox": …} {"chunk": …}… {"inputs": …} ({"bytes": …}… {"artifact": …})… {"execution": RECORD}
//
// An importer skips these lines if it has the execution. It stores the execution last, so an import that was killed
// can be repeated.
type archiveLine struct {
	Header    *archiveHeader    `json:"header,omitempty"`
	Begin     string            `json:"begin,omitempty"`
	Sandbox   *archivedSandbox  `json:"sandbox,omitempty"`
	Chunk     *archivedChunk    `json:"chunk,omitempty"`
	Inputs    []byte            `json:"inputs,omitempty"` // the input log, as the database has it
	Bytes     []byte            `json:"bytes,omitempty"`  // the next piece of the file of the artifact that follows
	Artifact  *archivedArtifact `json:"artifact,omitempty"`
	Execution json.RawMessage   `json:"execution,omitempty"` // a record, as the database has it
	End       *archiveEnd       `json:"end,omitempty"`
}

type archiveHeader struct {
	Format     int        `json:"format"`
	ExportedAt time.Time  `json:"exported_at"`
	Since      *time.Time `json:"since,omitempty"`
	Until      *time.Time `json:"until,omitempty"`
	User       string     `json:"user_id,omitempty"`
}

type archivedSandbox struct {
	ID        string          `json:"id"`
	Owner     string          `json:"user_id"`
	Policy    json.RawMessage `json:"policy"`
	Ephemeral bool            `json:"ephemeral"`
	State     string          `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
	EndedAt   *time.Time      `json:"ended_at"`
}

type archivedChunk struct {
	Sequence    int    `json:"sequence"`
	First       int    `json:"first_step"`
	Last        int    `json:"last_step"`
	Definitions []byte `json:"definitions"`
	Index       []byte `json:"index"`
	Data        []byte `json:"data"`
}

func (c *archivedChunk) chunk() sandbox.Chunk {
	return sandbox.Chunk{Sequence: c.Sequence, First: c.First, Last: c.Last, Definitions: c.Definitions, Index: c.Index,
		Data: c.Data}
}

// archivedArtifact is an artifact with the fields that its JSON does not have.
type archivedArtifact struct {
	sandbox.Artifact
	User    string `json:"user_id"`
	Folder  string `json:"folder"`
	Missing bool   `json:"missing,omitempty"` // the exporter did not find the bytes
}

// archiveEnd proves that an archive is whole.
type archiveEnd struct {
	Executions int    `json:"executions"`
	SHA256     string `json:"sha256"` // of all lines before this one
}

// ArchiveCounts says what an export wrote, or an import stored.
type ArchiveCounts struct {
	Executions int // written or stored
	Skipped    int // executions that the importing history had
	Unreadable int // executions whose record the exporter could not read
	Chunks     int // of recordings
	InputLogs  int
	Artifacts  int
	Missing    int // artifacts without their bytes
}

// archiveWriter writes lines, compressed. The caller calls end, or close after an error.
type archiveWriter struct {
	zip    *zstd.Encoder
	sum    hash.Hash
	counts ArchiveCounts
}

func newArchiveWriter(w io.Writer) (*archiveWriter, error) {
	zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(archiveWindow))
	return &archiveWriter{zip: zip, sum: sha256.New()}, err
}

func (w *archiveWriter) write(line archiveLine) error {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf) // ends with a newline, and leaves out those in raw JSON
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return err
	}
	text := buf.Bytes()
	_, _ = w.sum.Write(text) // never fails
	_, err := w.zip.Write(text)
	return err
}

// end writes the last line and completes the archive.
func (w *archiveWriter) end() error {
	sum := hex.EncodeToString(w.sum.Sum(nil))
	return errors.Join(w.write(archiveLine{End: &archiveEnd{w.counts.Executions, sum}}), w.zip.Close())
}

// archiveReader reads lines. The caller closes it.
type archiveReader struct {
	unzip  *zstd.Decoder
	lines  *bufio.Reader
	number int    // of the last line
	only   string // the user whose executions the archive has; "": all
	begun  string // the execution whose lines are read
	owner  string // of its artifacts; "": it has none so far
	hasLog bool   // of its inputs, so far
}

func newArchiveReader(r io.Reader) (*archiveReader, error) {
	unzip, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(archiveWindow))
	if err != nil {
		return nil, err
	}
	return &archiveReader{unzip: unzip, lines: bufio.NewReaderSize(unzip, 1<<16)}, nil
}

func (r *archiveReader) close() { r.unzip.Close() }

// next returns the next line with its bytes, or io.EOF.
func (r *archiveReader) next() (line archiveLine, text []byte, err error) {
	text, err = r.read()
	if errors.Is(err, io.EOF) && len(text) == 0 {
		return line, nil, io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.number++
	if err == nil {
		line, err = decodeLine(text)
	}
	if err == nil {
		err = r.check(line)
	}
	if err != nil {
		err = fmt.Errorf("line %d: %w", r.number, err)
	}
	return line, text, err
}

// read returns the bytes of the next line. It joins the pieces of a large line once: a slice that grows leaves several
// times as much to the garbage collector.
func (r *archiveReader) read() ([]byte, error) {
	var pieces [][]byte
	for size := 0; ; {
		piece, err := r.lines.ReadSlice('\n')
		if size += len(piece); size > maxArchiveLine {
			return nil, fmt.Errorf("it is longer than %d bytes", maxArchiveLine)
		}
		pieces = append(pieces, bytes.Clone(piece))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.Join(pieces, nil), err
		}
	}
}

// decodeLine decodes a line. It does not copy the record of an execution as Export writes it.
func decodeLine(text []byte) (line archiveLine, err error) {
	record, isExecution := bytes.CutPrefix(text, []byte(`{"execution":`))
	record, isWhole := bytes.CutSuffix(record, []byte("}\n"))
	if isExecution && isWhole && json.Valid(record) {
		return archiveLine{Execution: record}, nil
	}
	return line, json.Unmarshal(text, &line)
}

var isArchivedID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString

// check returns an error for a line with a name that could not be part of a path or of an address, with a value that
// lists of history could not show, of another execution than the one that has begun, or of another user.
func (r *archiveReader) check(line archiveLine) error {
	var ids []string
	var times []*time.Time
	switch {
	case line.Header != nil:
		r.only = line.Header.User
	case line.Begin != "":
		ids, r.begun, r.owner, r.hasLog = []string{line.Begin}, line.Begin, "", false
	case line.Sandbox != nil:
		if err := sandbox.CheckName("user_id", line.Sandbox.Owner); err != nil {
			return fmt.Errorf("the user of a sandbox: %w", err)
		}
		if err := json.Unmarshal(line.Sandbox.Policy, new(policy.Policy)); err != nil {
			return fmt.Errorf("the policy of a sandbox: %w", err)
		}
		switch sandbox.State(line.Sandbox.State) {
		case sandbox.StateActive, sandbox.StateDeleted, sandbox.StateExpired, sandbox.StateLost:
		default:
			return fmt.Errorf("the sandbox %s has the unknown state %.40q", line.Sandbox.ID, line.Sandbox.State)
		}
		ids, times = []string{line.Sandbox.ID}, []*time.Time{&line.Sandbox.CreatedAt, line.Sandbox.EndedAt}
	case line.Inputs != nil:
		if r.hasLog {
			return fmt.Errorf("it is the second input log of execution %s, want one at most", r.begun)
		}
		r.hasLog = true
	case line.Artifact != nil:
		a := line.Artifact.Artifact
		a.Folder = line.Artifact.Folder
		if err := blob.CheckName(a); err != nil {
			return err
		}
		if a.ExecutionID != r.begun {
			return fmt.Errorf("the artifact is of execution %s, want %s", a.ExecutionID, r.begun)
		}
		if r.owner != "" && r.owner != line.Artifact.User {
			return fmt.Errorf("the artifact is of the user %q, want %q", line.Artifact.User, r.owner)
		}
		r.owner = line.Artifact.User
		ids, times = []string{a.ID, a.ExecutionID, a.SandboxID}, []*time.Time{&a.CreatedAt}
	case line.Execution != nil:
		if err := checkSize(line.Execution); err != nil {
			return fmt.Errorf("the record of execution %s: %w", r.begun, err)
		}
		e, err := decode(line.Execution)
		if err == nil {
			err = r.checkExecution(&e)
		}
		if err != nil {
			return err
		}
		times = []*time.Time{&e.CreatedAt, e.CompletedAt, e.ExpiresAt}
		if e.SandboxID != "" {
			ids = []string{e.SandboxID}
		}
	}
	for _, id := range ids {
		if !isArchivedID(id) {
			return fmt.Errorf("%q cannot be an id", id)
		}
	}
	for _, at := range times {
		if at != nil && (at.UTC().Year() < 0 || at.UTC().Year() > 9999) { // JSON cannot have it
			return fmt.Errorf("the time %s is before the year 0 or after 9999 in UTC", at)
		}
	}
	return nil
}

// checkExecution returns an error for the record of an execution that history could not have written, or of another
// user than the lines before it.
func (r *archiveReader) checkExecution(e *sandbox.Execution) error {
	switch {
	case e.ID != r.begun:
		return fmt.Errorf("the record is of execution %s, want %s", e.ID, r.begun)
	case e.CompletedAt == nil || !e.Status.IsEnd():
		return fmt.Errorf("execution %s has the status %.40q, want that of one that has ended", e.ID, e.Status)
	case !e.Kind.IsKnown():
		return fmt.Errorf("execution %s has the unknown kind %.40q", e.ID, e.Kind)
	case r.owner != "" && r.owner != e.User:
		return fmt.Errorf("execution %s is of the user %.200q, and its artifacts are of %.200q", e.ID, e.User, r.owner)
	case r.only != "" && r.only != e.User:
		return fmt.Errorf("execution %s is of the user %.200q in an export of %.200q", e.ID, e.User, r.only)
	}
	if err := sandbox.CheckName("user_id", e.User); err != nil {
		return fmt.Errorf("execution %s: %w", e.ID, err)
	}
	return nil
}

// checkArchive returns an error unless r is a whole archive in a format that this version reads, checkChunk accepts its
// chunks, and its input logs can be decoded, which bounds their size.
func checkArchive(r io.Reader, checkChunk func(sandbox.Chunk) error) error {
	lines, err := newArchiveReader(r)
	if err != nil {
		return err
	}
	defer lines.close()
	sum, executions := sha256.New(), 0
	for {
		line, text, err := lines.next()
		switch {
		case lines.number <= 1 && (err != nil || line.Header == nil):
			return fmt.Errorf("this is not an export of history: name a file that `glasshouse history export` "+
				"has written (%w)", errors.Join(err, errNoHeader))
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("the export is torn: it ends after line %d, without the last line; nothing was "+
				"imported: export or copy it again", lines.number)
		case err != nil:
			return fmt.Errorf("the export is damaged: %w; nothing was imported: export or copy it again", err)
		case line.Header != nil && line.Header.Format > archiveFormat:
			return fmt.Errorf("the export has format %d, and this glasshouse reads formats up to %d: "+
				"use a newer glasshouse", line.Header.Format, archiveFormat)
		case line.End != nil:
			if got := hex.EncodeToString(sum.Sum(nil)); got != line.End.SHA256 || executions != line.End.Executions {
				return fmt.Errorf("the export is damaged: it has %d executions and checksum %.12s, and its last line "+
					"says %d and %.12s; nothing was imported: export or copy it again",
					executions, got, line.End.Executions, line.End.SHA256)
			}
			return nil
		}
		if line.Chunk != nil {
			if err := checkChunk(line.Chunk.chunk()); err != nil {
				return fmt.Errorf("the export is damaged or forged: line %d, a chunk of the recording of execution "+
					"%s: %w; nothing was imported", lines.number, lines.begun, err)
			}
		}
		if line.Inputs != nil {
			if err := checkInputs(line.Inputs); err != nil {
				return fmt.Errorf("the export is damaged or forged: line %d, the input log of execution %s: %w; "+
					"nothing was imported", lines.number, lines.begun, err)
			}
		}
		_, _ = sum.Write(text) // never fails
		if line.Execution != nil {
			executions++
		}
	}
}

var errNoHeader = errors.New("its first line is not a header")
