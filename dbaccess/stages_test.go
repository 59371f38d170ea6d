package dbaccess_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// stageCase is a statement on the shop of testdata/stages: a wrong one with its cause, or a right one.
type stageCase struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"` // "": it is right
	Question  string `json:"question"`
	SQL       string `json:"sql"`
	Rows      int64  `json:"rows"`
	FaultLine int    `json:"fault_line"`
	Cause     string `json:"cause"`
}

func stageCases(t testing.TB) (list []stageCase) {
	t.Helper()
	text, err := os.ReadFile("testdata/stages/cases.json")
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) < 50 {
		t.Fatalf("got %d cases and %v, want at least 50", len(list), err)
	}
	return list
}

// openShop returns a reader of a database with the tables of a shop.
func openShop(t testing.TB, c dbaccess.Config) *dbaccess.Reader {
	t.Helper()
	s := dbtest.Start(t)
	text, err := os.ReadFile("testdata/stages/shop.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dbtest.Connect(context.Background(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range []string{
		"SET TimeZone = 'UTC'", string(text), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader",
	} {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	c.URL = s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	r, err := dbaccess.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// checkInvariants expects the counts of a statement to fit to each other.
func checkInvariants(t testing.TB, name string, s *stages.Stages) {
	t.Helper()
	for _, b := range s.Blocks {
		for _, one := range b.Stages {
			known := func(values ...*int64) bool {
				for _, v := range values {
					if v == nil {
						return false
					}
				}
				return true
			}
			if (one.RowsOut != nil) != (one.State == stages.Counted) {
				t.Errorf("%s: stage %d %s: state %s with rows %v", name, one.ID, one.Text, one.State, one.RowsOut)
			}
			switch m := one.Multiplied; {
			case one.Kind == stages.KindJoin && m != nil && one.JoinKind == "inner" && known(one.RowsOut, m.Pairs):
				if *one.RowsOut != *m.Pairs {
					t.Errorf("%s: %s: got %d rows and %d pairs", name, one.Text, *one.RowsOut, *m.Pairs)
				}
			case one.Kind == stages.KindJoin && m != nil && one.JoinKind == "left" &&
				known(one.RowsOut, m.Pairs, m.LeftUnmatched):
				if *one.RowsOut != *m.Pairs+*m.LeftUnmatched || *m.LeftUnmatched < 0 {
					t.Errorf("%s: %s: got %d rows, %d pairs and %d unmatched", name, one.Text, *one.RowsOut, *m.Pairs,
						*m.LeftUnmatched)
				}
			case one.Kind == stages.KindWhere && known(one.RowsIn, one.RowsOut, one.Null):
				if *one.RowsOut+*one.Null > *one.RowsIn {
					t.Errorf("%s: %s: got %d in, %d out and %d NULL", name, one.Text, *one.RowsIn, *one.RowsOut, *one.Null)
				}
			}
		}
	}
	last := s.Blocks[len(s.Blocks)-1]
	if last.Rows != nil && !s.Truncated && *last.Rows != s.Rows {
		t.Errorf("%s: got %d rows after the last stage, and %d rows of the statement", name, *last.Rows, s.Rows)
	}
}

// Each statement has stages whose counts fit to its rows.
func TestStagesFitToTheRows(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	for _, c := range stageCases(t) {
		got, err := r.Stages(t.Context(), c.SQL, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
		if err != nil {
			t.Errorf("%s: %v\n%s", c.ID, err, c.SQL)
			continue
		}
		checkInvariants(t, c.ID, got)
		if got.Rows != c.Rows {
			t.Errorf("%s: got %d rows, want %d", c.ID, got.Rows, c.Rows)
		}
		if last := got.Blocks[len(got.Blocks)-1]; last.Rows == nil {
			t.Errorf("%s: the last stage has no rows:\n%s\n%s", c.ID, c.SQL, got.Text)
		}
		for _, b := range got.Blocks {
			for _, s := range b.Stages {
				if s.State != stages.Counted {
					t.Errorf("%s: %s %q: got %s (%s: %s), want it counted", c.ID, s.Kind, s.Text, s.State, s.Reason, s.Message)
				} else if s.Sample == nil && s.Reads < 0 {
					t.Errorf("%s: %s %q has no sample", c.ID, s.Kind, s.Text)
				}
			}
		}
		if testing.Verbose() {
			t.Logf("%s %d statements, %.0f ms\n%s", c.ID, got.Statements, got.TotalMS, got.Text)
		}
	}
}

// Statements of all forms have stages that fit to their rows, or the reason why they have none.
func TestStagesOfManyForms(t *testing.T) {
	t.Parallel()
	r := openShop(t, dbaccess.Config{})
	text, err := os.ReadFile("testdata/stages/forms.json")
	var list []string
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range list {
		got, err := r.Stages(t.Context(), sql, nil, sandbox.QueryLimits{}, stages.Options{Samples: true})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		checkInvariants(t, sql, got)
		for _, b := range got.Blocks {
			if b.Reason != "" || b.Rows == nil {
				t.Errorf("%s: the block at line %d has no rows (%s)", sql, b.FromLine, b.Reason)
			}
			for _, s := range b.Stages {
				if s.State != stages.Counted && s.Reason != stages.ReasonLateral {
					t.Errorf("%s: %s %q: got %s (%s: %s)", sql, s.Kind, s.Text, s.State, s.Reason, s.Message)
				}
			}
		}
	}
}
