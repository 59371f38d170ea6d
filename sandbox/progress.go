package sandbox

// Progress is one thing that a running execution does, as history keeps it until the
// execution's own end has it: a statement or a connection, and not both. One that comes
// again with the same number has gone on, or is over.
type Progress struct {
	Execution  string      `json:"progress_of"`
	Number     int64       `json:"number"` // among those of its kind, in their order
	Query      *Query      `json:"query,omitempty"`
	Connection *Connection `json:"connection,omitempty"`
}

// IsStart says whether it is at its beginning.
func (p Progress) IsStart() bool {
	if p.Query != nil {
		return p.Query.Status == QueryRunning
	}
	return p.Connection != nil && p.Connection.Status == ConnectionOpen
}

// Kind is "query" or "connection".
func (p Progress) Kind() string {
	if p.Query != nil {
		return "query"
	}
	return "connection"
}
