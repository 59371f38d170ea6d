package parse

import (
	"errors"
	"testing"
)

// A text with another tree than the meant one is refused, however small the difference is.
func TestDerivedTextHasTheMeantTree(t *testing.T) {
	t.Parallel()
	const text = "SELECT count(*) FROM t WHERE (NOT a) IS NULL AND b = $1"
	for meant, isSame := range map[string]bool{
		text: true,
		"SELECT count(*)  FROM t /* */ WHERE ((NOT a)) IS NULL AND (b = $1)": true,
		"SELECT count(*) FROM t WHERE NOT a IS NULL AND b = $1":              false,
		"SELECT count(*) FROM t WHERE (NOT a) IS NULL AND b = $2":            false,
		"SELECT count(*) FROM t WHERE (NOT a) IS NULL OR b = $1":             false,
		"SELECT count(a) FROM t WHERE (NOT a) IS NULL AND b = $1":            false,
		"SELECT count(*) FROM t x WHERE (NOT a) IS NULL AND b = $1":          false,
		"SELECT DISTINCT count(*) FROM t WHERE (NOT a) IS NULL AND b = $1":   false,
		"SELECT count(*) FROM t WHERE (NOT a) IS NULL AND b = $1 LIMIT 1":    false,
	} {
		d := &stageDeriver{names: []string{"one", "two"}}
		got, err := d.derive(derivedQuery{text, parsedSelect(meant)})
		if isSame != (err == nil) || !isSame && !errors.Is(err, errDiffers) {
			t.Errorf("%s: got %q and %v, want it derived: %t", meant, got.SQL, err, isSame)
		}
		if isSame && (got.SQL != "SELECT count(*) FROM t WHERE (NOT a) IS NULL AND b = :one" || got.Names[0] != "one") {
			t.Errorf("%s: got %+v", meant, got)
		}
	}
}
