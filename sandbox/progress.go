package sandbox

// Progress is a statement, a connection or an edit of a running execution. History keeps it until the
// execution's own record contains it. A later Progress with the same number replaces it.
type Progress struct {
	Execution  string      `json:"progress_of"`
	Number     int64       `json:"number"` // from 0, counted for each kind
	Query      *Query      `json:"query,omitempty"`
	Connection *Connection `json:"connection,omitempty"`
	Edit       *Edit       `json:"edit,omitempty"`
}

// IsStart reports whether the statement or connection has just begun.
func (p Progress) IsStart() bool {
	if p.Query != nil {
		return p.Query.Status == QueryRunning
	}
	return p.Connection != nil && p.Connection.Status == ConnectionOpen
}

// TextBytes returns the size of the texts that may be large.
func (p Progress) TextBytes() int {
	if p.Query == nil {
		return 0
	}
	return p.Query.TextBytes()
}

// Kind returns "query", "connection" or "edit".
func (p Progress) Kind() string {
	switch {
	case p.Query != nil:
		return "query"
	case p.Edit != nil:
		return "edit"
	}
	return "connection"
}
