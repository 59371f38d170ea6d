package kernel

import "encoding/json"

// Bounds of the headers that a kernel keeps.
const (
	maxHeaders     = 200
	maxHeaderBytes = 4 << 10 // of one
)

// headers has the headers of the requests that began the last executions: what a thread prints later belongs to the
// request that began it.
type headers struct {
	ids    []string // oldest first
	byExec map[string]json.RawMessage
}

// add keeps the header of an execution, unless it is too large.
func (h *headers) add(executionID string, header json.RawMessage) {
	if len(header) > maxHeaderBytes {
		return
	}
	if h.byExec == nil {
		h.byExec = map[string]json.RawMessage{}
	}
	if len(h.ids) == maxHeaders {
		delete(h.byExec, h.ids[0])
		h.ids = h.ids[1:]
	}
	h.ids = append(h.ids, executionID)
	h.byExec[executionID] = header
}

// of returns the header of an execution, or other if it is not kept.
func (h *headers) of(executionID string, other json.RawMessage) json.RawMessage {
	if header := h.byExec[executionID]; header != nil {
		return header
	}
	return other
}
