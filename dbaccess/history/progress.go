package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"glasshouse/sandbox"
)

// ofProgress is how the body of a progress begins, and no other record's.
var ofProgress = []byte(`{"progress_of":`)

// progressRow is the row of what a running execution does.
func progressRow(p sandbox.Progress) (row, error) {
	body, err := plainJSON(p)
	if err != nil {
		return row{}, fmt.Errorf("write an execution's progress: %w", err)
	}
	if len(body) > maxRecord {
		return row{}, fmt.Errorf("the progress of execution %s has %d bytes, more than history takes", p.Execution, len(body))
	}
	return row{e: &sandbox.Execution{ID: p.Execution}, kind: p.Kind(), number: p.Number, body: body}, nil
}

// rowIn is the row whose body a log had.
func rowIn(body []byte) (row, error) {
	if bytes.HasPrefix(body, ofProgress) {
		var p sandbox.Progress
		if err := json.Unmarshal(body, &p); err != nil {
			return row{}, fmt.Errorf("read an execution's progress: %w", err)
		}
		return progressRow(p)
	}
	e, err := decode(body)
	if err != nil {
		return row{}, err
	}
	return rowOf(&e, e.CompletedAt != nil)
}

// Progress keeps what a running execution does. It is in the log when it returns, as
// Begin's row is; FaultUnavailable where it could not be, or where what begins finds no room
// on the disk, or too much that waits for the database.
func (s *Store) Progress(ctx context.Context, p sandbox.Progress) error {
	r, err := progressRow(p)
	if err == nil && p.IsStart() {
		err = s.progressRoom(ctx)
	}
	if err == nil {
		err = s.keep(ctx, r, openPatience)
	}
	return unavailable(err)
}

func (s *Store) progressRoom(ctx context.Context) error {
	if err := s.queue.disk.room(); err != nil || !s.queue.full() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	return s.queue.settled(ctx)
}

// withoutOver leaves out the progress of executions whose end is among the rows.
func withoutOver(rows []row) []row {
	over := map[string]bool{}
	some := false
	for _, r := range rows {
		if some = some || r.kind != ""; r.completed != nil {
			over[r.e.ID] = true
		}
	}
	if !some {
		return rows
	}
	left := make([]row, 0, len(rows))
	for _, r := range rows {
		if r.kind == "" || !over[r.e.ID] {
			left = append(left, r)
		}
	}
	return left
}

// addProgress adds to e, which goes on, what it has done so far. The error is of what can't
// be read.
func addProgress(e *sandbox.Execution, bodies [][]byte) (wrong error) {
	for _, body := range bodies {
		var p sandbox.Progress
		if err := json.Unmarshal(body, &p); err != nil {
			wrong = fmt.Errorf("read an execution's progress: %w", err)
			continue
		}
		if p.Query != nil {
			e.Queries = append(e.Queries, *p.Query)
		}
		if p.Connection != nil {
			e.Connections = append(e.Connections, *p.Connection)
		}
	}
	return wrong
}

// cutShort says of what was under way that nobody knows how it ended, and sums up what is known.
func cutShort(e *sandbox.Execution) {
	const why = "the service ended meanwhile"
	for n := range e.Queries {
		if q := &e.Queries[n]; q.Status == sandbox.QueryRunning {
			q.Status, q.Error = "cancelled", why
		}
	}
	for n := range e.Connections {
		if c := &e.Connections[n]; c.Status == sandbox.ConnectionOpen {
			c.Status, c.Reason = sandbox.ConnectionAllowed, "cut: "+why+"; how much passed is not known"
		}
		e.Usage.NetworkSent += e.Connections[n].BytesSent
		e.Usage.NetworkReceived += e.Connections[n].BytesReceived
	}
}
