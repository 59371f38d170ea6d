package prove_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/prove"
)

// No attack passes the reader or the check. Each other layer stops only some attacks. The attacks do not change the
// database.
func TestReaderRefusesEveryAttack(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	url := s.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	state := func() (text string) {
		row := admin.QueryRow(
			ctx,
			`SELECT concat_ws(' ', (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc),
			(SELECT count(*) FROM pg_roles), (SELECT count(*) FROM pg_largeobject_metadata),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_replication_slots),
			(SELECT md5(string_agg(a::text, '' ORDER BY id)) FROM articles a))`,
		)
		if err := row.Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := state()
	outcomes, err := prove.Run(ctx, r, url, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("state of the database: got %s, want %s as before", after, before)
	}
	login, readOnly := 0, 0
	for _, o := range outcomes {
		if o.Check || o.Reader {
			t.Errorf("%s passes the check: %t, the reader: %t; want neither", o.Name, o.Check, o.Reader)
		}
		if o.Login {
			login++
		}
		if o.ReadOnly {
			readOnly++
		}
	}
	n := len(outcomes)
	if n < 80 || login == 0 || login > n/2 || readOnly == 0 || readOnly > n/2 {
		t.Errorf(
			"of %d attacks %d pass the login and %d READ ONLY; want 80 or more, and some but at most half for each",
			n,
			login,
			readOnly,
		)
	}
	var text bytes.Buffer
	succeeded, err := prove.Print(&text, outcomes)
	if lines := strings.Count(text.String(), "\n"); err != nil || succeeded != 0 || lines != n+2 {
		t.Errorf("Print: got %d succeeded, %d lines, %v; want 0 and %d", succeeded, lines, err, n+2)
	}
	t.Log(text.String())
}
