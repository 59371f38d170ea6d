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

// Nothing passes the door or the check; each other layer stops something, and
// leaves something to the others. The database is the same afterwards.
func TestNothingPassesTheDoor(t *testing.T) {
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
	state := func() (out string) {
		if err := admin.QueryRow(ctx, `SELECT concat_ws(' ', (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_proc), (SELECT count(*) FROM pg_roles), (SELECT count(*) FROM pg_largeobject_metadata),
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_replication_slots), (SELECT md5(string_agg(a::text, '' ORDER BY id)) FROM articles a))`).Scan(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := state()
	all, err := prove.Run(ctx, r, url, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	if after := state(); after != before {
		t.Errorf("the database changed: %s, was %s", after, before)
	}
	login, readOnly := 0, 0
	for _, o := range all {
		if o.Check || o.Reader {
			t.Errorf("%s passes the check (%v) or the door (%v)", o.Name, o.Check, o.Reader)
		}
		if o.Login {
			login++
		}
		if o.ReadOnly {
			readOnly++
		}
	}
	if len(all) < 80 || login == 0 || login > len(all)/2 || readOnly == 0 || readOnly > len(all)/2 {
		t.Errorf("of %d attacks %d pass the login alone and %d READ ONLY alone", len(all), login, readOnly)
	}
	var text bytes.Buffer
	if through, err := prove.Print(&text, all); err != nil || through != 0 || strings.Count(text.String(), "\n") != len(all)+2 {
		t.Errorf("%d, %v: %s", through, err, text.String())
	}
	t.Log(text.String())
}
