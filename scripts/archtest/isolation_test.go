package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestOnlyTestsDisableIsolationLayers checks that no code of the service names the fields that disable a
// layer, outside the packages that declare them.
func TestOnlyTestsDisableIsolationLayers(t *testing.T) {
	for _, p := range packages(t) {
		if under(p.path(), "sandbox/isolate") || p.path() == "sandbox/protocol" {
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
					t.Errorf("%s uses %s; only tests may disable an isolation layer", fset.Position(id.Pos()), id.Name)
				}
				return true
			})
		}
	}
}
