package dbaccess_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// faultKinds has the kinds of findings that name the fault of a wrong statement.
var faultKinds = map[string][]string{
	"fanout_sum": {"fan-out"}, "fanout_count": {"count-of-repeated"}, "left_join_where": {"nullable-side"},
	"not_in_null": {"not-in-null"}, "between_timestamp": {"between-timestamp"},
	"integer_division": {"integer-division"},
	"count_column":     {"count-of-nullable"}, "avg_of_avg": {"mean-of-means"},
	"distinct_on_no_order": {"distinct-on-order"},
	"window_range_ties":    {"range-ties"}, "group_by_too_fine": {"group-too-fine"}, "join_key_case": {"text-key"},
	"timezone_trunc": {"day-of-zone"}, "alias_shadow": {"alias-shadow"}, "union_dedup": {"union-removes"},
	"scope_capture": {"scope-capture"}, "or_precedence": {"or-precedence"}, "like_wildcard": {"like-wildcard"},
	"text_order": {"text-as-number"}, "null_arithmetic": {"null-arithmetic"},
	"wrong_denominator": {"filtered-denominator"},
	"currency_mix":      {"mixed-units"}, "group_by_too_coarse": {"months-of-years", "fan-out"},
	"union_all_double": {"union-all-duplicates"},
}

// Wrong statements get a finding that names their fault at its line, and right ones none that is likely.
func TestFindingsNameFaults(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	var wrong, named, likely, atLine, right, accused int
	for _, c := range stageCases(t) {
		got, err := r.Stages(t.Context(), c.SQL, nil, sandbox.QueryLimits{}, stages.Options{All: true})
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		if c.Kind == "" {
			right++
			for _, f := range got.Findings {
				if f.Score >= stages.ScoreLikely {
					accused++
					t.Logf("%s is right, and accused: %+v", c.ID, f)
				}
			}
			continue
		}
		wrong++
		isNamed := false
		for _, f := range got.Findings {
			if !slices.Contains(faultKinds[c.Kind], f.Kind) {
				continue
			}
			isNamed = true
			if f.Score >= stages.ScoreLikely {
				likely++
			}
			if f.Line == c.FaultLine {
				atLine++
			}
			for name, n := range f.Evidence {
				if n < 0 {
					t.Errorf("%s: %s: got the evidence %s = %d", c.ID, f.Kind, name, n)
				}
			}
			break
		}
		if isNamed {
			named++
		} else {
			t.Logf("%s %s is not named: %+v", c.ID, c.Kind, got.Findings)
		}
	}
	t.Logf("named %d, likely %d, at their line %d of %d wrong ones; accused %d of %d right ones", named, likely, atLine,
		wrong,
		accused, right)
	if named*100 < 90*wrong || likely*100 < 72*wrong || atLine*100 < 75*wrong {
		t.Error("want 90 % named, 72 % likely and 75 % at their line")
	}
	if accused > 0 {
		t.Error("want no right statement accused")
	}
}

// Each kind of fault is found in several forms, and statements that look alike are left alone.
func TestFindingsOfManyForms(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	text, err := os.ReadFile("testdata/stages/findings.json")
	var list []struct{ Kind, SQL string }
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		got, err := r.Stages(t.Context(), c.SQL, nil, sandbox.QueryLimits{}, stages.Options{All: true})
		if err != nil {
			t.Errorf("%s: %v", c.SQL, err)
			continue
		}
		checkInvariants(t, c.SQL, got)
		isFound := false
		for _, f := range got.Findings {
			isFound = isFound || f.Kind == c.Kind
			if c.Kind == "" && f.Score >= stages.ScoreLikely {
				t.Errorf("%s: a right statement is accused: %d %s: %s", c.SQL, f.Score, f.Kind, f.Text)
			}
		}
		if c.Kind != "" && !isFound {
			t.Errorf("%s: got %+v, want the finding %s", c.SQL, got.Findings, c.Kind)
		}
	}
}

// A wrong statement has the finding of its kind, and a right one of the same form has neither that finding nor a likely
// one of another kind. A possible one may have the finding, since its clause may be meant, but no likely one.
func TestFindingsOfPairs(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	text, err := os.ReadFile("testdata/stages/pairs.json")
	var list []struct {
		Kind, Wrong, Right, Possible string
		Score, Line                  int // at least, and where: 0 for any
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	find := func(sql string) []stages.Finding {
		got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{All: true})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			return nil
		}
		checkInvariants(t, sql, got)
		return got.Findings
	}
	for _, c := range list {
		isKind := func(f stages.Finding) bool { return f.Kind == c.Kind }
		if wrong := find(c.Wrong); !slices.ContainsFunc(wrong, func(f stages.Finding) bool {
			return isKind(f) && f.Score >= c.Score && (c.Line == 0 || f.Line == c.Line)
		}) {
			t.Errorf("%s: got %+v, want the finding %s, with a score of %d at line %d", c.Wrong, wrong, c.Kind, c.Score,
				c.Line)
		}
		if c.Possible != "" {
			for _, f := range find(c.Possible) {
				if f.Score >= stages.ScoreLikely {
					t.Errorf("%s: a statement that may be right has the finding %d %s: %s", c.Possible, f.Score, f.Kind,
						f.Text)
				}
			}
		}
		for _, f := range find(c.Right) {
			if isKind(f) || f.Score >= stages.ScoreLikely {
				t.Errorf("%s: a right statement has the finding %d %s: %s", c.Right, f.Score, f.Kind, f.Text)
			}
		}
	}
}
