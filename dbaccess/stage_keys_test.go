package dbaccess_test

import (
	"encoding/json"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// A join has the keys that repeat rows, with their number, and the keys that it loses on each side.
func TestStagesHaveKeysOfJoins(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	const sides = `WITH a AS (VALUES (1), (2), (3), (NULL::int)), b AS (VALUES (2, 'x'), (2, 'y'), (3, 'z'), (9, 'w'))
SELECT * FROM a AS a (id) KIND JOIN b AS b (a_id, name) ON b.a_id = a.id`
	for kind, want := range map[string]string{
		"INNER": `[["repeated","right",[["2","2"]]],["lost","left",[["1"],[null]]],["lost","right",[["9"]]]]`,
		"LEFT":  `[["repeated","right",[["2","2"]]],["lost","right",[["9"]]]]`,
		"RIGHT": `[["lost","left",[["1"],[null]]]]`,
		"FULL":  `[["repeated","right",[["2","2"]]]]`,
	} {
		sql := strings.Replace(sides, "KIND", kind, 1)
		got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
		if err != nil {
			t.Fatal(err)
		}
		list := [][]any{}
		for _, k := range got.StageByID(joinOf(t, got)).Keys {
			list = append(list, []any{k.Kind, k.Side, k.Rows})
		}
		if text, _ := json.Marshal(list); string(text) != want {
			t.Errorf("%s JOIN: got the keys %s, want %s", kind, text, want)
		}
	}
	got, err := r.Stages(t.Context(), strings.Replace(sides, "KIND", "", 1), nil, sandbox.QueryLimits{},
		stages.Options{})
	if err != nil || len(got.StageByID(joinOf(t, got)).Keys) > 0 {
		t.Errorf("without samples: got %+v and %v, want no keys", got, err)
	}
}

func joinOf(t *testing.T, s *stages.Stages) int {
	t.Helper()
	for _, b := range s.Blocks {
		for _, one := range b.Stages {
			if one.Kind == stages.KindJoin {
				return one.ID
			}
		}
	}
	t.Fatalf("got %+v, want a join", s)
	return -1
}
