package history

import (
	"encoding/json"
	"slices"

	"glasshouse/sandbox"
)

// withConnections adds the rows of an execution's connections to the statement that
// finishes it, so that both are there or neither. They are its next argument after
// those that it has. Where it is written once more, they are there already.
func withConnections(finish string, args []any, e *sandbox.Execution) (string, []any, error) {
	if len(e.Connections) == 0 {
		return finish, args, nil
	}
	rows := slices.Clone(e.Connections)
	for i := range rows {
		rows[i].Host, rows[i].Address, rows[i].Reason = clean(rows[i].Host), clean(rows[i].Address), clean(rows[i].Reason)
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return "", nil, err
	}
	return `WITH finished AS (` + finish + `)
		INSERT INTO connections (execution_id, number, sandbox_id, owner, host, port, address, status, reason, bytes_sent, bytes_received, milliseconds, started_at)
		SELECT $1, n, $2, $3, c.host, c.port, coalesce(c.address, ''), c.status, coalesce(c.reason, ''), c.bytes_sent, c.bytes_received, c.duration_ms, c.started_at
		FROM ROWS FROM (jsonb_to_recordset($13::jsonb) AS (host text, port int, address text, status text, reason text,
			bytes_sent bigint, bytes_received bigint, duration_ms double precision, started_at timestamptz)) WITH ORDINALITY
			AS c (host, port, address, status, reason, bytes_sent, bytes_received, duration_ms, started_at, n)
		ON CONFLICT DO NOTHING`, append(args, string(list)), nil
}
