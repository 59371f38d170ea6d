package run

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/stages"
	"glasshouse/service/database"
)

// Bounds of the statements that one execution records.
const (
	maxQueries        = 1000     // beyond it, statements with a new text are recorded, and the others only counted
	maxStatements     = 2000     // recorded in total; further statements with a new text are refused
	maxQueryBytes     = 16 << 20 // of their texts, parameters and errors
	maxErrorRunes     = 16 << 10 // of one statement's error
	maxCapturedWrites = 100      // of one execution
	maxRoundedColumns = 20       // of one statement whose names are recorded; "..." stands for the others
)

// guestHandler answers the requests of one execution's code and records them. It is the execution's
// supervisor.RequestHandler and supervisor.Recorder. Only Connection may be called by several goroutines.
type guestHandler struct {
	service   *Service
	caller    sandbox.Key
	sandbox   sandbox.Sandbox
	execution *sandbox.Execution  // the opening; the handler does not change it
	events    *EventLog           // nil if the run is not streamed
	debug     Debugger            // nil if the run is not debugged
	recorded  *debugger.Recording // nil if the run is not recorded
	inputs    *inputlog.Recorder  // nil if the run is not logged
	isReplay  bool                // earlier code runs again: it captures no write
	answer    answerFunc          // takes a statement, in place of its run; nil: the statement runs
	edited    *editedStatement    // runs in place of the next statement of the code; nil: it runs itself

	queries        []sandbox.Query
	droppedQueries int64
	queryTexts     map[queryText]bool // of queries
	queryBytes     int                // of the texts, parameters and errors of queries
	captured       int                // writes
	outputs        int                // rich outputs so far
	artifacts      []sandbox.Artifact
}

// queryText is the text of a statement, and the database that it was sent to.
type queryText struct{ database, sql string }

func textOf(q *sandbox.Query) queryText { return queryText{q.Database, q.SQL} }

// Query runs a statement of the code on the database with a name; "" means the caller's default. The statement is on
// record before it runs. Its duration excludes the time of sink.
func (h *guestHandler) Query(
	ctx context.Context, database, sql string, params map[string]any, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	if h.edited != nil {
		sql, params, h.edited = h.edited.sql, h.edited.params, nil
	}
	q := sandbox.Query{
		Database: sandbox.Shorten(database, sandbox.MaxDatabaseName), SQL: sql, Status: sandbox.QueryRunning,
		StartedAt: h.service.Clock(),
	}
	db, err := h.findDatabase(database)
	if err == nil {
		q.Database = db.Name
	}
	if h.recorded != nil {
		q.Step = h.recorded.Steps() // the supervisor has delivered all records from before the request
	}
	if len(params) > 0 {
		q.Parameters, _ = json.Marshal(h.service.maskParameters(params))
	}
	if tooMany := h.checkQueryBounds(&q); tooMany != nil {
		return sandbox.QuerySummary{}, tooMany
	}
	var sinkTime time.Duration
	timedSink := func(rows sandbox.RowBatch) error {
		began := time.Now()
		defer func() { sinkTime += time.Since(began) }()
		rows.Rounded = func(column int) {
			switch n := len(q.RoundedColumns); {
			case n < maxRoundedColumns:
				q.RoundedColumns = append(q.RoundedColumns, rows.Columns[column].Name)
			case n == maxRoundedColumns:
				q.RoundedColumns = append(q.RoundedColumns, "...")
			}
		}
		return sink(rows)
	}
	var summary sandbox.QuerySummary
	var captured, begun bool
	if err == nil {
		summary, captured, begun, err = h.runQuery(ctx, db, &q, params, timedSink)
	}
	q.DurationMS = max(0, q.DurationMS-float64(sinkTime.Microseconds())/1000)
	q.Status, q.Rows, q.Bytes, q.Truncated, q.Fingerprint = "ok", summary.Rows, summary.Bytes, summary.Truncated, summary.Fingerprint
	q.Tables, q.ComputedWithMask = summary.Tables, summary.ComputedWithMask
	var refusal *sandbox.Refusal
	switch {
	case captured:
		q.Status = "captured"
	case errors.As(err, &refusal):
		q.Status, q.Reason, q.Error = "refused", refusal.Reason, sandbox.Shorten(refusal.Message, maxErrorRunes)
		if refusal.Failed {
			q.Status = "failed"
		}
		if refusal.Reason == "cancelled" {
			q.Status = "cancelled"
		}
	case err != nil:
		q.Status, q.Reason = "failed", string(sandbox.FaultOf(err))
		q.Error = sandbox.Shorten(err.Error(), maxErrorRunes)
	}
	h.service.Metrics.QueryEnded(&q)
	if h.isOnlyCounted(&q) {
		h.droppedQueries++
		if h.inputs != nil {
			h.inputs.Statement(0, &summary)
		}
		return summary, err
	}
	h.queryBytes += len(q.Error)
	// Without a record of its beginning, the execution's record has the statement. That of a statement alone is about
	// to be written.
	if begun && h.execution.Kind != sandbox.KindQuery {
		if err := h.recordProgress(context.WithoutCancel(ctx), &q); err != nil {
			h.service.logOf(h.execution).WithError(err).
				Warn("could not record the end of a statement; the execution's record will have it")
		}
	}
	h.queries = append(h.queries, q)
	if h.inputs != nil {
		h.inputs.Statement(len(h.queries), &summary)
	}
	h.queryTexts[textOf(&q)] = true
	if h.events != nil {
		h.events.query(q)
	}
	if h.debug != nil {
		h.debug.StatementEnded(q)
	}
	return summary, err
}

// maxStagesBytes bounds the stages that code gets. They have parts of the statement, some of them several times.
const maxStagesBytes = 512 << 10

// Stages runs a statement of the code as Query does, and returns the rows after each of its stages. They have no times,
// so that a replay can compare them.
func (h *guestHandler) Stages(
	ctx context.Context, database, sql string, params map[string]any,
) (*stages.Stages, error) {
	answer := &stagesAnswer{}
	h.answer = answer.compute
	defer func() { h.answer = nil }()
	if _, err := h.Query(ctx, database, sql, params, nil); err != nil {
		return nil, err
	}
	out := answer.out
	out.WithoutTimes()
	if text, err := json.Marshal(out); err != nil || len(text) > maxStagesBytes {
		return nil, &sandbox.Refusal{
			Reason: "too-large", Failed: true, Message: "the stages of this statement are too large for code",
			Hint: "ask for them with POST /database/stages",
		}
	}
	return out, nil
}

// runQuery records the beginning of a statement, and runs or captures it. begun reports that history has the record.
func (h *guestHandler) runQuery(
	ctx context.Context, db *database.Database, q *sandbox.Query, params map[string]any, sink sandbox.RowSink,
) (summary sandbox.QuerySummary, captured, begun bool, err error) {
	if sandbox.JSONDepth(q.Parameters) > maxDepth {
		q.Parameters = nil
		return summary, false, false, sandbox.Refusef("invalid-parameter",
			"the parameters nest deeper than %d lists and objects", maxDepth)
	}
	if err = h.recordProgress(ctx, q); err != nil {
		return summary, false, false, err
	}
	began := time.Now()
	defer func() { q.DurationMS = float64(time.Since(began).Microseconds()) / 1000 }()
	l := sandbox.QueryLimits{
		MaxRows: h.sandbox.Policy.MaxRows, Timeout: time.Duration(h.sandbox.Policy.MaxExecutionTime) * time.Second,
		User: h.sandbox.Owner, Sandbox: h.sandbox.ID,
	}
	if h.answer != nil {
		summary, err = h.answer(ctx, db, q.SQL, params, l)
		return summary, false, true, err
	}
	summary, err = db.Reader.Query(ctx, q.SQL, params, l, sink)
	if refusal, ok := errors.AsType[*sandbox.Refusal](err); ok {
		pending, ok, captureErr := h.captureWrite(ctx, db, q.SQL, params, l, refusal, sink)
		switch {
		case ok:
			return pending, true, true, nil
		case captureErr != nil:
			err = captureErr
		}
	}
	return summary, false, true, err
}

// isOnlyCounted reports whether a statement is counted and not recorded, because there are many statements and its text
// is already on record.
func (h *guestHandler) isOnlyCounted(q *sandbox.Query) bool {
	return len(h.queries) >= maxQueries && h.queryTexts[textOf(q)]
}

// recordProgress records the next statement while the execution runs, in case the service ends first.
func (h *guestHandler) recordProgress(ctx context.Context, q *sandbox.Query) error {
	if h.isOnlyCounted(q) {
		return nil
	}
	return h.service.History.Progress(ctx, sandbox.Progress{
		Execution: h.execution.ID, Number: int64(len(h.queries)), Query: q,
	})
}

// Connection records a connection while the execution runs. It may be called by several goroutines.
func (h *guestHandler) Connection(number int64, c sandbox.Connection) error {
	return h.service.History.Progress(context.Background(), sandbox.Progress{
		Execution: h.execution.ID, Number: number, Connection: &c,
	})
}

// checkQueryBounds refuses a statement that the execution cannot record, because history must have the text of every
// statement that runs.
func (h *guestHandler) checkQueryBounds(q *sandbox.Query) error {
	if h.queryTexts == nil {
		h.queryTexts = map[queryText]bool{}
	}
	if h.isOnlyCounted(q) {
		return nil
	}
	h.queryBytes += len(q.SQL) + len(q.Parameters)
	if len(h.queries) < maxStatements && h.queryBytes <= maxQueryBytes {
		return nil
	}
	h.droppedQueries++
	return &sandbox.Refusal{
		Reason: "too-many-statements", Failed: true,
		Message: fmt.Sprintf(
			"this statement exceeds the limits of a run: %d different statements, %d MiB of text and parameters",
			maxStatements,
			maxQueryBytes>>20,
		),
		Hint: "read more rows with each statement, or pass what differs as parameters",
	}
}

// maskParameters returns the parameters as history keeps them.
func (s *Service) maskParameters(params map[string]any) map[string]any {
	masked := make(map[string]any, len(params))
	for name, value := range params {
		if slices.ContainsFunc(s.Mask, func(m string) bool { return m == "*" || strings.EqualFold(m, name) }) {
			value = "***"
		}
		masked[name] = value
	}
	return masked
}

// findDatabase returns the database with a name, which then answers the request; "" means the caller's default.
func (h *guestHandler) findDatabase(name string) (*database.Database, error) {
	db, err := h.service.Databases.Find(h.caller, name)
	if err == nil && h.inputs != nil {
		h.inputs.Database(db.Name)
	}
	return db, err
}

// Schema returns a table of a database with its columns.
func (h *guestHandler) Schema(ctx context.Context, database, table string) (sandbox.Table, error) {
	db, err := h.findDatabase(database)
	if err != nil {
		return sandbox.Table{}, err
	}
	tables, err := db.Reader.Schema(ctx, table)
	if err != nil {
		return sandbox.Table{}, err
	}
	return tables[0], nil
}

// Tables returns the names of the tables of a database that may be read.
func (h *guestHandler) Tables(ctx context.Context, database string) ([]string, error) {
	db, err := h.findDatabase(database)
	if err != nil {
		return nil, err
	}
	return db.Reader.Tables(ctx)
}

// History returns the sandbox's last 50 executions before this one, without large fields.
func (h *guestHandler) History(ctx context.Context) ([]sandbox.Execution, error) {
	list, _, err := h.service.History.Executions(ctx, sandbox.ExecutionFilter{SandboxID: h.sandbox.ID, Limit: 50})
	earlier := make([]sandbox.Execution, 0, len(list))
	for _, e := range list {
		if e.ID != h.execution.ID {
			e.Stdout, e.Stderr, e.Outputs, e.Queries, e.Connections, e.Context = "", "", nil, nil, nil, nil
			earlier = append(earlier, e)
		}
	}
	return earlier, err
}

// Bounds of the statements that an exception contains.
const (
	maxExceptionQueries  = 3
	maxExceptionSQLBytes = 500
)

// explain adds the last statements to an exception, because one of them is often the reason. It replaces any statements
// that the guest itself has sent.
func (h *guestHandler) explain(x *sandbox.Exception) *sandbox.Exception {
	if x == nil {
		return nil
	}
	x.Queries = nil
	for _, q := range h.queries[max(0, len(h.queries)-maxExceptionQueries):] {
		q.Parameters, q.Fingerprint, q.Tables = nil, "", nil
		if len(q.SQL) > maxExceptionSQLBytes {
			q.SQL = strings.ToValidUTF8(q.SQL[:maxExceptionSQLBytes], "") + "..."
		}
		x.Queries = append(x.Queries, q)
	}
	return x
}

// maxInlineBytes is the maximum size, as JSON, of a part of a rich output that stays in the execution. A larger part
// becomes an artifact.
const maxInlineBytes = 256 << 10

// Show stores the large parts of a rich output as artifacts, which clients can read immediately. It returns the output
// with references in place of these parts. A part that cannot be stored stays in the output.
func (h *guestHandler) Show(ctx context.Context, out sandbox.Output) sandbox.Output {
	s := h.service
	h.outputs++
	store, unpin := s.Records.StorePinned()
	defer unpin()
	var large []sandbox.Artifact
	var err error
	for _, kind := range slices.Sorted(maps.Keys(out.Data)) {
		if len(out.Data[kind]) <= maxInlineBytes || kind == "text/plain" {
			continue
		}
		name := fmt.Sprintf("output-%d%s", h.outputs, sandbox.Extension(kind))
		if len(large) > 0 {
			name = fmt.Sprintf("output-%d-%d%s", h.outputs, len(large)+1, sandbox.Extension(kind))
		}
		artifact, storeErr := store(name, strings.NewReader(decodePart(kind, out.Data[kind])))
		if storeErr != nil {
			err = errors.Join(err, storeErr)
			continue
		}
		artifact.Path, artifact.MIME, artifact.Change = name, kind, sandbox.ChangeNew
		large = append(large, artifact)
	}
	hostPaths, recordErr := s.Records.KeepArtifacts(ctx, h.execution, path.Join("shown", h.execution.ID), large,
		outputTimeout)
	if hostPaths != nil {
		h.artifacts = append(h.artifacts, large...)
		parts, references := maps.Clone(out.Data), map[string]sandbox.Artifact{}
		for _, artifact := range large {
			delete(parts, artifact.MIME)
			references[artifact.MIME] = artifact
		}
		parts[sandbox.ArtifactMIME], _ = json.Marshal(references)
		out.Data = parts
	}
	if err = errors.Join(err, recordErr); err != nil {
		s.logOf(h.execution).WithError(err).
			Error("could not store a part of a rich output as an artifact")
	}
	return out
}

// decodePart returns the bytes of a part: for a binary type the decoded base64, for another JSON string its text, and
// for other JSON the JSON itself.
func decodePart(kind string, part json.RawMessage) string {
	var text string
	if json.Unmarshal(part, &text) != nil {
		return string(part)
	}
	if binary, err := base64.StdEncoding.DecodeString(text); err == nil && !strings.HasPrefix(kind, "text/") {
		return string(binary)
	}
	return text
}
