package httpapi

import (
	"encoding/json"
	"fmt"

	"glasshouse/sandbox"
)

// rowEncoder encodes rows as a JSON list of objects. Decimals become numbers with all their digits, JSON
// columns stay as they are, and repeated column names become name, name_2, and so on. Values that JSON
// can't hold become {"type", "repr"}.
type rowEncoder struct {
	text  []byte
	names [][]byte
}

// add is a sandbox.RowSink.
func (e *rowEncoder) add(rows sandbox.RowBatch) error {
	if e.names == nil {
		e.begin(rows.Columns)
	}
	for r := range rows.Count {
		if len(e.text) > 1 {
			e.text = append(e.text, ',')
		}
		e.text = append(e.text, '{')
		for i, name := range e.names {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.text = append(append(e.text, name...), ':')
			e.text = sandbox.AppendJSON(e.text, rows.Data[i].At(r), rows.Columns[i].Kind)
		}
		e.text = append(e.text, '}')
	}
	return nil
}

func (e *rowEncoder) begin(columns []sandbox.Column) {
	e.text, e.names = []byte{'['}, make([][]byte, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		seen[name] = true
		e.names[i], _ = json.Marshal(name)
	}
}

// json returns the whole list. It must be called after add, which is called at least once for every result.
func (e *rowEncoder) json() json.RawMessage { return append(e.text, ']') }
