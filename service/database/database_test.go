package database_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/database"
)

// reader answers unless it is away.
type reader struct {
	database.Reader
	isAway bool
}

func (r *reader) Status(context.Context) (string, error) {
	if r.isAway {
		return "", errors.New("connection refused")
	}
	return "17", nil
}

func start(t *testing.T, names ...string) (*database.Service, map[string]*reader) {
	t.Helper()
	keys := access.New(access.Config{Log: logrus.New()})
	t.Cleanup(keys.Close)
	config, readers := database.Config{Access: keys}, map[string]*reader{}
	for _, name := range names {
		readers[name] = &reader{}
		config.List = append(config.List, database.Database{Name: name, Reader: readers[name]})
	}
	return database.New(config), readers
}

// A key finds the databases that it may use, and reads the names of no others.
func TestKeysFindTheirDatabases(t *testing.T) {
	t.Parallel()
	s, _ := start(t, "knowledge", "sales", "staff")
	for _, c := range []struct {
		allowed   []string // nil: all
		name      string
		want      string // "": a refusal
		wantNames []string
	}{
		{nil, "", "knowledge", []string{"knowledge", "sales", "staff"}},
		{nil, "staff", "staff", []string{"knowledge", "sales", "staff"}},
		{[]string{"staff", "sales"}, "", "sales", []string{"sales", "staff"}},
		{[]string{"sales"}, "staff", "", []string{"sales"}},
		{[]string{"gone"}, "", "", []string{}},
	} {
		caller := sandbox.Key{User: "ada", Databases: c.allowed}
		if names := s.Names(caller); !slices.Equal(names, c.wantNames) {
			t.Errorf("names for a key with %v: got %v, want %v", c.allowed, names, c.wantNames)
		}
		db, err := s.Find(caller, c.name)
		if c.want != "" {
			if err != nil || db.Name != c.want {
				t.Errorf("find %q with a key for %v: got %+v, %v; want %s", c.name, c.allowed, db, err, c.want)
			}
			continue
		}
		no, ok := errors.AsType[*sandbox.Refusal](err)
		if !ok || no.Reason != sandbox.UnknownDatabase || strings.Contains(no.Hint+no.Nearest, "knowledge") {
			t.Errorf("find %q with a key for %v: got %+v, want a refusal without other names", c.name, c.allowed, err)
		}
	}
}

// The service is ready while one database answers, and counts the others.
func TestServiceIsReadyWhileADatabaseAnswers(t *testing.T) {
	t.Parallel()
	s, readers := start(t, "knowledge", "sales")
	readers["knowledge"].isAway = true
	if n, err := s.Ready(t.Context()); n != 1 || err != nil {
		t.Errorf("one of two is away: got %d, %v; want 1 and no error", n, err)
	}
	list, err := s.Statuses(t.Context(), sandbox.Key{User: "ada"})
	if err != nil || len(list) != 2 || list[0].Status != sandbox.DatabaseUnavailable ||
		!strings.Contains(list[0].Problem, "refused") || list[1].ServerVersion != "17" {
		t.Errorf("got %+v, %v; want the first one unavailable with the reason, the second with its version", list, err)
	}
	readers["sales"].isAway = true
	n, err := s.Ready(t.Context())
	if n != 2 || sandbox.FaultOf(err) != sandbox.FaultUnavailable {
		t.Errorf("both are away: got %d, %v; want 2 and %s", n, err, sandbox.FaultUnavailable)
	}
}
