package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// rowEncoder encodes rows as a JSON list of objects. Repeated column names become name, name_2, and so on.
type rowEncoder struct {
	list  sandbox.RowJSON
	held  *limit.Held
	names []string // as JSON, with what separates them from their values
	rows  int

	cpu  *limit.CPU
	user string
}

// newRowEncoder returns the encoder of one answer to a user. Its memory counts as the user's until it is closed.
func (a *api) newRowEncoder(user string) *rowEncoder {
	held := a.results.Open(user)
	return &rowEncoder{
		held: held, list: sandbox.RowJSON{Max: sandbox.MaxAnswerBytes, Hold: held.Add}, cpu: a.cpu, user: user,
	}
}

func (e *rowEncoder) close() { e.held.Close() }

// add is a sandbox.RowSink. It encodes many bytes in the user's turn.
func (e *rowEncoder) add(rows sandbox.RowBatch) (err error) {
	if e.names == nil {
		e.begin(rows.Columns)
	}
	texts := 0
	for i := range rows.Data {
		texts += len(rows.Data[i].Text)
	}
	e.cpu.Compute(e.user, texts, func() { err = e.encode(rows) })
	return err
}

func (e *rowEncoder) encode(rows sandbox.RowBatch) error {
	for r := range rows.Count {
		if e.rows++; e.rows > 1 {
			e.list.Raw(",")
		}
		for i, name := range e.names {
			e.list.Raw(name)
			e.list.At(&rows.Data[i], r, rows.Columns[i].Kind)
		}
		if len(e.names) == 0 {
			e.list.Raw("{")
		}
		e.list.Raw("}")
		if e.list.Err != nil {
			return e.list.Err
		}
	}
	return nil
}

func (e *rowEncoder) begin(columns []sandbox.Column) {
	e.names = make([]string, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		seen[name] = true
		separator := ","
		if i == 0 {
			separator = "{"
		}
		key := sandbox.RowJSON{Max: sandbox.MaxAnswerBytes}
		key.String(name)
		e.names[i] = separator + string(key.Bytes()) + ":"
	}
}

// json returns the whole list.
func (e *rowEncoder) json() []byte { return append(append([]byte{'['}, e.list.Bytes()...), ']') }

// writeTo writes the whole list.
func (e *rowEncoder) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, "[")
	if err == nil {
		_, err = e.list.WriteTo(w)
	}
	if err == nil {
		_, err = io.WriteString(w, "]")
	}
	return err
}

// queryResponse answers with a result. It writes the rows from where they were encoded, without a copy, and closes
// rows when the client has read them.
func queryResponse(ctx context.Context, rows *rowEncoder, head QueryHead, tail QueryTail) *executionResponse {
	if t := limit.TransferOf(ctx); t != nil {
		t.OnEnd = rows.close
	} else {
		rows.close()
	}
	return &executionResponse{func(ctx huma.Context) {
		ctx.SetHeader("Content-Type", "application/json")
		ctx.SetStatus(http.StatusOK)
		var before, after bytes.Buffer
		_ = encodeJSON(&before, head) // both can be encoded
		_ = encodeJSON(&after, tail)
		before.Truncate(before.Len() - len("}\n"))
		before.WriteString(`,"results":`)
		w := ctx.BodyWriter()
		_, err := w.Write(before.Bytes())
		if err == nil {
			err = rows.writeTo(w)
		}
		if err == nil { // otherwise the client has left
			_, _ = w.Write(append([]byte{','}, after.Bytes()[len("{"):]...))
		}
	}}
}
