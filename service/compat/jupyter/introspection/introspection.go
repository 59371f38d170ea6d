// Package introspection answers the requests of Jupyter's clients that ask about a kernel and its code, and run none.
package introspection

import (
	"context"
	"strings"
	"unicode"

	"glasshouse/sandbox"
	"glasshouse/service/compat/jupyter/wire"
	"glasshouse/service/live"
	"glasshouse/service/records"
)

// Sandbox is what a request of a caller asks about.
type Sandbox struct {
	Live    *live.Service
	Records *records.Service
	ID      string
	Caller  sandbox.Key
}

// Info describes a kernel that runs a version of Python.
func Info(version, python string) wire.Object {
	return wire.Object{
		"protocol_version": wire.ProtocolVersion, "implementation": "glasshouse",
		"implementation_version": version, "banner": "Python " + python + " in a sandbox of Glasshouse",
		"help_links": []string{}, "debugger": false, "supported_features": []string{},
		"language_info": wire.Object{
			"name": "python", "version": python, "mimetype": "text/x-python", "file_extension": ".py",
			"pygments_lexer": "ipython3", "nbconvert_exporter": "python",
			"codemirror_mode": wire.Object{"name": "ipython", "version": 3},
		},
	}
}

// cursorIn is the content of a request about a position in code. The position counts characters; absent: the end.
type cursorIn struct {
	Code     string
	Position *int `json:"cursor_pos"`
}

// Complete completes the code at the cursor.
func Complete(ctx context.Context, in Sandbox, m *wire.Message) (wire.Object, error) {
	var at cursorIn
	if err := m.DecodeContent(&at); err != nil {
		return nil, err
	}
	found, err := in.Live.Complete(ctx, in.Caller, in.ID, nil, at.Code, at.Position)
	if err != nil {
		return nil, err
	}
	matches, types := []string{}, []wire.Object{}
	for _, match := range found.Matches {
		matches = append(matches, match.Text)
		types = append(types, wire.Object{
			"start": found.CursorStart, "end": found.CursorEnd, "text": match.Text, "type": match.Type,
		})
	}
	return wire.Object{
		"matches": matches, "cursor_start": found.CursorStart, "cursor_end": found.CursorEnd,
		"metadata": wire.Object{"_jupyter_types_experimental": types},
	}, nil
}

// IsComplete tells whether a console should run the code, or wait for another line and indent it.
func IsComplete(ctx context.Context, in Sandbox, m *wire.Message) (wire.Object, error) {
	var at cursorIn
	if err := m.DecodeContent(&at); err != nil {
		return nil, err
	}
	result, err := in.Live.Check(ctx, in.Caller, in.ID, nil, at.Code)
	if err != nil {
		return nil, err
	}
	if result.IsIncomplete {
		return wire.Object{"status": "incomplete", "indent": nextIndent(at.Code)}, nil
	}
	for _, p := range result.Problems {
		if p.Kind == "syntax" {
			return wire.Object{"status": "invalid"}, nil
		}
	}
	return wire.Object{"status": "complete"}, nil
}

// nextIndent returns the indentation of a line after code: that of the last line, and four spaces more after a colon.
func nextIndent(code string) string {
	line := code[strings.LastIndexByte(strings.TrimRight(code, "\n"), '\n')+1:]
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if strings.HasSuffix(strings.TrimRight(line, " \t\n"), ":") {
		indent += "    "
	}
	return indent
}

// Inspect describes the variable at the cursor by its type and its value.
func Inspect(ctx context.Context, in Sandbox, m *wire.Message) (wire.Object, error) {
	var at cursorIn
	if err := m.DecodeContent(&at); err != nil {
		return nil, err
	}
	variables, err := in.Live.Variables(ctx, in.Caller, in.ID)
	if err != nil {
		return nil, err
	}
	data := wire.Object{}
	name := nameAt([]rune(at.Code), at.Position)
	v, isFound := variables.Variables[name]
	if isFound {
		data["text/plain"] = "Type: " + v.Type + "\nValue: " + v.Repr
	}
	return wire.Object{"found": isFound, "data": data, "metadata": wire.Object{}}, nil
}

// nameAt returns the identifier at a position; nil is the end.
func nameAt(code []rune, position *int) string {
	isPart := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	begin := len(code)
	if position != nil {
		begin = min(max(*position, 0), len(code))
	}
	end := begin
	for begin > 0 && isPart(code[begin-1]) {
		begin--
	}
	for end < len(code) && isPart(code[end]) {
		end++
	}
	return string(code[begin:end])
}

// maxHistory is the maximum number of cells in an answer.
const maxHistory = 100

// History answers with the last cells, the oldest first, each as [session, number, code].
func History(ctx context.Context, in Sandbox, m *wire.Message) (wire.Object, error) {
	wanted := struct {
		N      int
		Output bool // each cell has a pair of its code and its value, which is left out
	}{N: maxHistory}
	if err := m.DecodeContent(&wanted); err != nil {
		return nil, err
	}
	list, _, total, err := in.Records.SandboxHistory(ctx, in.Caller, in.ID, min(max(wanted.N, 1), maxHistory), "")
	if err != nil {
		return nil, err
	}
	cells := make([][]any, len(list))
	for n, e := range list {
		cell := any(e.Code)
		if wanted.Output {
			cell = []any{e.Code, nil}
		}
		cells[len(list)-1-n] = []any{1, total - n, cell}
	}
	return wire.Object{"history": cells}, nil
}
