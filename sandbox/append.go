package sandbox

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// AppendJSON appends e as JSON, byte by byte as encoding/json writes it where HTML is not
// escaped, and returns the extended buffer. It takes a fraction of the time, and every run
// needs it once. The error is of a field that is no JSON, or a time beyond the year 9999.
func (e *Execution) AppendJSON(b []byte) ([]byte, error) {
	w := appender{b: b}
	w.text(`{"execution_id":`, e.ID)
	w.text(`,"sandbox_id":`, e.SandboxID)
	w.text(`,"user_id":`, e.User)
	w.text(`,"kind":`, string(e.Kind))
	w.text(`,"status":`, string(e.Status))
	if e.Code != "" {
		w.text(`,"code":`, e.Code)
	}
	if len(e.Context) > 0 {
		w.raw(`,"context":`, e.Context)
	}
	w.raw(`,"result":`, e.Result)
	w.text(`,"stdout":`, e.Stdout)
	w.text(`,"stderr":`, e.Stderr)
	if e.Error != nil {
		w.text(`,"error":`, *e.Error)
	} else {
		w.put(`,"error":null`)
	}
	if e.Exception != nil {
		w.any(`,"exception":`, e.Exception)
	}
	w.number(`,"execution_time":`, e.ExecutionTime)
	w.number(`,"memory_usage":`, e.MemoryUsage)
	e.Usage.append(&w)
	appendList(&w, `,"debug_info":{"logs":`, e.DebugInfo.Logs)
	appendMap(&w, `,"variables":`, e.DebugInfo.Variables)
	appendList(&w, `},"outputs":`, e.Outputs)
	appendList(&w, `,"artifacts":`, e.Artifacts)
	appendMap(&w, `,"artifact_map":`, e.ArtifactMap)
	appendList(&w, `,"queries":`, e.Queries)
	appendList(&w, `,"connections":`, e.Connections)
	appendMap(&w, `,"truncated":`, e.Truncated)
	if e.Isolation.written != nil {
		w.put(`,"isolation":`)
		w.b = append(w.b, e.Isolation.written...)
	} else {
		w.any(`,"isolation":`, e.Isolation)
	}
	if e.Environment != nil {
		w.text(`,"environment":{"name":`, e.Environment.Name)
		w.text(`,"digest":`, e.Environment.Digest)
		w.put(`}`)
	}
	w.put(`,"session_reset":`)
	w.b = strconv.AppendBool(w.b, e.SessionReset)
	w.time(`,"timestamp":`, e.Timestamp)
	w.time(`,"created_at":`, e.CreatedAt)
	if e.CompletedAt != nil {
		w.time(`,"completed_at":`, *e.CompletedAt)
	} else {
		w.put(`,"completed_at":null`)
	}
	w.put(`}`)
	return w.b, w.err
}

func (u Usage) append(w *appender) {
	w.number(`,"usage":{"wall_ms":`, u.WallMS)
	w.number(`,"cpu_ms":`, u.CPUMS)
	w.number(`,"peak_memory_mb":`, u.PeakMemoryMB)
	if u.EndedBy != "" {
		w.text(`,"ended_by":`, u.EndedBy)
	}
	if u.NetworkSent != 0 {
		w.put(`,"network_sent_bytes":`)
		w.b = strconv.AppendInt(w.b, u.NetworkSent, 10)
	}
	if u.NetworkReceived != 0 {
		w.put(`,"network_received_bytes":`)
		w.b = strconv.AppendInt(w.b, u.NetworkReceived, 10)
	}
	w.put(`}`)
}

// Written returns i with its JSON worked out, for a wall that many executions tell of.
// Neither is to be changed afterwards.
func (i Isolation) Written() Isolation {
	var w appender
	w.any("", i)
	i.written = w.b
	return i
}

// appender writes JSON. What comes with a value is the text before it, its name.
type appender struct {
	b   []byte
	err error // the first one
}

func (w *appender) put(text string) { w.b = append(w.b, text...) }

func (w *appender) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// text writes a string; encoding/json does it where that takes more than a backslash.
func (w *appender) text(before, s string) {
	w.put(before)
	from := len(w.b)
	w.b = append(w.b, '"')
	begin := 0
	for n := range len(s) {
		c := s[n]
		if ' ' <= c && c < 0x80 && c != '"' && c != '\\' {
			continue
		}
		w.b = append(w.b, s[begin:n]...)
		switch begin = n + 1; c {
		case '"', '\\':
			w.b = append(w.b, '\\', c)
		case '\n':
			w.b = append(w.b, '\\', 'n')
		case '\t':
			w.b = append(w.b, '\\', 't')
		default:
			w.b = w.b[:from]
			w.any("", s)
			return
		}
	}
	w.b = append(append(w.b, s[begin:]...), '"')
}

func (w *appender) raw(before string, m json.RawMessage) {
	w.put(before)
	if m == nil {
		w.put("null")
		return
	}
	buf := bytes.NewBuffer(w.b)
	if err := json.Compact(buf, m); err != nil {
		w.fail(err)
		return
	}
	w.b = buf.Bytes()
}

func (w *appender) number(before string, f float64) {
	if size := math.Abs(f); f != 0 && (size < 1e-6 || size >= 1e21) || f != f {
		w.any(before, f) // which has an exponent, or is none
		return
	}
	w.put(before)
	w.b = strconv.AppendFloat(w.b, f, 'f', -1, 64)
}

func (w *appender) time(before string, t time.Time) {
	w.put(before)
	b, err := t.AppendText(append(w.b, '"'))
	if err != nil {
		w.fail(err)
		return
	}
	w.b = append(b, '"')
}

// any writes what is not often there.
func (w *appender) any(before string, v any) {
	w.put(before)
	buf := bytes.NewBuffer(w.b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.fail(err)
		return
	}
	w.b = bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func appendList[T any](w *appender, before string, list []T) {
	if list != nil && len(list) == 0 {
		w.put(before)
		w.put("[]")
		return
	}
	w.any(before, list)
}

func appendMap[T any](w *appender, before string, m map[string]T) {
	if m != nil && len(m) == 0 {
		w.put(before)
		w.put("{}")
		return
	}
	w.any(before, m)
}
