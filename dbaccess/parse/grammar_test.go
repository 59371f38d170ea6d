package parse

import (
	"encoding/json"
	"testing"

	"github.com/pganalyze/pg_query_go/v5/parser"
)

// TestGrammarVersionIsThatOfTheParser fails after an update of the parser to another grammar.
func TestGrammarVersionIsThatOfTheParser(t *testing.T) {
	t.Parallel()
	text, err := parser.ParseToJSON("SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	var tree struct{ Version int }
	if err := json.Unmarshal([]byte(text), &tree); err != nil || tree.Version/10000 != GrammarVersion {
		t.Errorf("got version %d and %v, want %d", tree.Version, err, GrammarVersion)
	}
}
