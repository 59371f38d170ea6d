package inputlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"

	"glasshouse/sandbox"
)

// request is a request of the code, as the guest sends it (protocol.Request), without its number.
type request struct {
	What     string            `json:"what"`
	Database string            `json:"database"`
	SQL      string            `json:"sql"`
	Params   map[string]any    `json:"params"` // numbers are json.Number
	Types    map[string]string `json:"types"`
	Form     string            `json:"form"`
	Exact    bool              `json:"exact"`
	Table    string            `json:"table"`
}

// read returns a request, and its hash.
func (k Keys) read(body []byte) (out Request, err error) {
	var q request
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&q); err != nil {
		return out, fmt.Errorf("read a request for the input log: %w", err)
	}
	canonical, err := json.Marshal(q) // the keys of maps are sorted
	if err != nil {
		return out, fmt.Errorf("read a request for the input log: %w", err)
	}
	return Request{
		What: q.What, SQL: q.SQL, Table: q.Table, Hash: k.hash(canonical),
		Names: slices.Sorted(maps.Keys(q.Params)), Form: formOf(&q), IsExact: q.Exact,
	}, nil
}

// plainForm is Request.Form of a request for rows in the form protocol.FormPlain, which is "".
const plainForm = "plain"

func formOf(q *request) string {
	if q.What != "query" {
		return ""
	}
	return cmp.Or(q.Form, plainForm)
}

// Recorder records the inputs of one run. One goroutine uses it.
type Recorder struct {
	keys     Keys
	mode     Mode
	requests []recordedRequest
	left     int   // bytes that the log still takes
	dropped  int64 // requests for which the log had no room
	lost     int   // answers and files that were too large
	files    []File
	environ  map[string]string
}

type recordedRequest struct {
	body      []byte
	answer    net.Buffers
	size      int
	isLarge   bool
	statement int
	ran       string
	schema    string
	hasRows   bool
	database  string
}

// Record returns a Recorder for a run in a mode other than Off.
func (k Keys) Record(mode Mode) *Recorder {
	return &Recorder{keys: k, mode: mode, left: MaxBytes}
}

// requestBytes is about the size of a request in a log, without its texts and its answer.
const requestBytes = 300

// Variables notes the environment variables that come with the request of the run.
func (r *Recorder) Variables(environ map[string]string) { r.environ = environ }

// File adds a file that comes with the request of the run. The caller does not change its body later.
func (r *Recorder) File(path string, body []byte) {
	if r.left -= len(path) + len(body); r.left < 0 {
		r.left += len(path) + len(body)
		r.lost++
		return
	}
	r.files = append(r.files, File{path, body})
}

// Begin begins a request with the body of its frame, which the caller does not change later.
func (r *Recorder) Begin(body []byte) {
	size := requestBytes + len(body)
	if r.dropped > 0 || size > r.left { // the log ends here, so that a replay knows the order of what it has
		r.dropped++
		return
	}
	r.left -= size
	r.requests = append(r.requests, recordedRequest{body: body})
}

// Add adds frames that answer the last request. frames returns size bytes, which do not change later; it is not called
// if the log has no room for them.
func (r *Recorder) Add(size int, frames func() []byte) {
	if r.dropped > 0 {
		return
	}
	q := &r.requests[len(r.requests)-1]
	q.size += size
	if q.isLarge {
		return
	}
	if r.left -= size; r.left < 0 {
		r.left += q.size
		q.answer, q.isLarge = nil, true
		r.lost++
		return
	}
	q.answer = append(q.answer, frames())
}

// Database notes the database that answers the last request. Code may leave its name out, and then the key decides.
func (r *Recorder) Database(name string) {
	if r.dropped == 0 {
		r.requests[len(r.requests)-1].database = name
	}
}

// Statement notes the number of the last request's statement in the record of the execution, from 1, and the text that
// PostgreSQL ran. The answer has rows.
func (r *Recorder) Statement(number int, summary *sandbox.QuerySummary) {
	if r.dropped > 0 {
		return
	}
	q := &r.requests[len(r.requests)-1]
	q.statement, q.ran, q.schema, q.hasRows = number, summary.Ran, summary.Schema, true
}

// RanHash returns Request.Ran of the text that PostgreSQL ran for a statement.
func RanHash(ran string) string { return sumOf([]byte(ran)) }

// End returns the log as history stores it, for Decode. It compresses all answers, so it takes about three milliseconds
// for each megabyte.
func (r *Recorder) End(clock []byte, clockMissing int64) ([]byte, error) {
	l := &Log{Key: r.keys.ID(), Clock: clock, ClockMissing: clockMissing, Files: r.files, RequestsMissing: r.dropped}
	if len(r.environ) > 0 {
		var err error
		if l.Environ, err = r.keys.seal(r.environ); err != nil {
			return nil, err
		}
	}
	var kept net.Buffers // the answers, in parts
	for _, q := range r.requests {
		out, err := r.keys.read(q.body)
		if err != nil { // the guest has forged it
			return nil, err
		}
		out.Database, out.Statement, out.HasRows, out.Size = q.database, q.statement, q.hasRows, q.size
		if out.Schema = q.schema; q.ran != "" {
			out.Ran = RanHash(q.ran)
		}
		if !q.isLarge {
			out.Size = sizeOf(q.answer) // of what is stored: the frames have no number of their request
			if out.IsKept = r.mode == Rows || !q.hasRows; out.IsKept {
				kept = append(kept, q.answer...)
			} else {
				out.Sum = sumOf(q.answer...)
			}
		}
		l.Requests = append(l.Requests, out)
	}
	return l.encode(kept)
}

// Bytes returns the size of all requests and answers so far, also of those that are not kept.
func (r *Recorder) Bytes() (bytes int64) {
	for _, q := range r.requests {
		bytes += int64(len(q.body) + q.size)
	}
	return bytes
}

// IsEmpty reports whether the code has sent no request and came without files.
func (r *Recorder) IsEmpty() bool {
	return len(r.requests)+len(r.files)+len(r.environ)+r.lost == 0 && r.dropped == 0
}

// IsCut reports whether the log had no room for a request, an answer or a file.
func (r *Recorder) IsCut() bool { return r.lost > 0 || r.dropped > 0 }
