package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// A wall is left out by tests alone: nothing that is built into the service names
// the way to do it, outside the rooms that have it.
func TestOnlyTestsLeaveWallsOut(t *testing.T) {
	for _, p := range packages(t) {
		if p.room() == "sandbox/isolate" || p.room() == "sandbox/protocol" {
			continue
		}
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && (id.Name == "Without" || id.Name == "Trusting") {
					t.Errorf("%s names %s; only tests leave a wall out", fset.Position(id.Pos()), id.Name)
				}
				return true
			})
		}
	}
}
