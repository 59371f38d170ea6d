package history

import (
	"context"
	"encoding/json"
	"fmt"

	"glasshouse/sandbox"
)

// Progress stores a query, a connection or an edit of a running execution. When it returns nil, the record is in the
// log, as Begin's is. It returns FaultUnavailable if the record cannot be stored, or if the query or connection is
// about to begin and the disk is nearly full. It waits while the user's share of the backlog is used up.
func (s *Store) Progress(ctx context.Context, p sandbox.Progress) error {
	var r row
	var err error
	user := s.writer.userOf(p.Execution)
	s.cpu.Compute(user, p.TextBytes(), func() { r, err = progressRow(p) })
	if err != nil {
		return err
	}
	r.user = user
	if p.IsStart() {
		if err := s.writer.space.check(); err != nil {
			return err
		}
		if err := s.writer.waitForSpace(ctx, user); err != nil {
			return unavailable(err)
		}
	}
	return unavailable(s.writer.write(ctx, r, beginTimeout))
}

// addProgress adds the queries, connections and edits so far to an execution that runs. It leaves out a record that it
// cannot decode and returns an error for it.
func addProgress(e *sandbox.Execution, records [][]byte) (err error) {
	for _, record := range records {
		var p sandbox.Progress
		if decodeErr := json.Unmarshal(record, &p); decodeErr != nil {
			err = fmt.Errorf("decode the progress of an execution: %w", decodeErr)
			continue
		}
		if p.Query != nil {
			e.Queries = append(e.Queries, *p.Query)
		}
		if p.Connection != nil {
			e.Connections = append(e.Connections, *p.Connection)
		}
		if p.Edit != nil {
			e.Edits = append(e.Edits, *p.Edit)
		}
	}
	return err
}

// cutShort marks the queries and connections that were open when the service ended, and sums up the network usage.
func cutShort(e *sandbox.Execution) {
	const reason = "the service ended meanwhile"
	for n := range e.Queries {
		if q := &e.Queries[n]; q.Status == sandbox.QueryRunning {
			q.Status, q.Error = "cancelled", reason
		}
	}
	for n := range e.Connections {
		c := &e.Connections[n]
		if c.Status == sandbox.ConnectionOpen {
			c.Status, c.Reason = sandbox.ConnectionAllowed, "cut: "+reason+"; the number of bytes is not known"
		}
		e.Usage.NetworkSent += c.BytesSent
		e.Usage.NetworkReceived += c.BytesReceived
	}
}
