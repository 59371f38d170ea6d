package debugger

import (
	"context"
	"slices"
	"time"
)

// maxOwnTextTime bounds the __repr__ methods of one page of variables: a client asks for the page at each stop. When it
// has passed, the page has the recorded texts.
const maxOwnTextTime = time.Second

// plainTypes are types whose values have no __repr__ of the program, also not in their parts.
var plainTypes = []string{"bool", "bytes", "complex", "float", "int", "NoneType", "str"}

// addOwnTexts gives the values of a page that begins at start the texts that the program's classes make of them. The
// recording has no such texts, because no code of the program may run while it is recorded. If the program cannot
// answer, the values keep the texts of the recording.
func (s *Session) addOwnTexts(ctx context.Context, r reference, start int, list []VariableView) {
	if !slices.ContainsFunc(list, func(v VariableView) bool { return !slices.Contains(plainTypes, v.Type) }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, maxOwnTextTime)
	defer cancel()
	if !r.isScope {
		if r.object == 0 || r.expression == "" { // the program has made the texts
			return
		}
		items, err := s.livePage(ctx, r, start, len(list))
		if err != nil || len(items) != len(list) {
			return
		}
		for i, item := range items {
			if item.Own {
				list[i].Value = item.Value
			}
		}
		return
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	found, err := askFor[struct {
		Texts []string `json:"texts"`
	}](ctx, s, map[string]any{"do": "texts", "frame": r.frame, "names": names})
	if err != nil || len(found.Texts) != len(list) {
		return
	}
	for i, text := range found.Texts {
		if text != "" {
			list[i].Value = text
		}
	}
}
