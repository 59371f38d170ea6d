package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Database is a database that statements can name.
type Database struct {
	Name   string
	Reader Reader
	Writer Writer
}

// statusTimeout bounds how long a database has to say that it is there.
const statusTimeout = 1500 * time.Millisecond

// databasesOf returns the databases that a caller may use, in the order of Config.Databases.
func (s *Service) databasesOf(caller sandbox.Key) []Database {
	if len(caller.Databases) == 0 {
		return s.Config.Databases
	}
	return slices.DeleteFunc(slices.Clone(s.Config.Databases),
		func(d Database) bool { return !access.MaySeeDatabase(caller, d.Name) })
}

// database returns the database with a name; "" means the first that the caller may use. The error is a
// *sandbox.Refusal that names the databases which the caller may use, and no others.
func (s *Service) database(caller sandbox.Key, name string) (*Database, error) {
	all := s.databasesOf(caller)
	for i := range all {
		if name == "" || all[i].Name == name {
			return &all[i], nil
		}
	}
	no := sandbox.Refusef(sandbox.UnknownDatabase, "there is no database %q that you may use",
		sandbox.Shorten(name, sandbox.MaxDatabaseName))
	if len(all) == 0 {
		no.Message = "this key may use no database of this service"
		no.Hint = "ask an admin for a key with other databases"
		return nil, no
	}
	names := s.DatabaseNames(caller)
	no.Nearest = policy.Nearest(name, slices.Values(names))
	no.Hint = "the databases are " + strings.Join(names, ", ")
	return nil, no
}

func databaseNames(list []Database) []string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.Name
	}
	return names
}

// DatabaseNames returns the names of the databases that a caller may use, the default one first.
func (s *Service) DatabaseNames(caller sandbox.Key) []string {
	return databaseNames(s.databasesOf(caller))
}

// Databases returns the state of each database that the caller may use, the default one first.
func (s *Service) Databases(ctx context.Context, caller sandbox.Key) ([]sandbox.DatabaseStatus, error) {
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{})
	if err != nil {
		return nil, err
	}
	defer end()
	return statusOf(ctx, s.databasesOf(caller)), nil
}

// statusOf asks databases at the same time how they are.
func statusOf(ctx context.Context, databases []Database) []sandbox.DatabaseStatus {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	list := make([]sandbox.DatabaseStatus, len(databases))
	var asked sync.WaitGroup
	for i, d := range databases {
		asked.Go(func() {
			st := sandbox.DatabaseStatus{Name: d.Name, IsDefault: i == 0, Status: sandbox.DatabaseReady}
			var err error
			if st.ServerVersion, err = d.Reader.Status(ctx); err != nil {
				st.Status, st.Problem = sandbox.DatabaseUnavailable, err.Error()
				if ctx.Err() != nil {
					const late = "the database %q has not answered within %s; try again soon"
					st.Problem = fmt.Sprintf(late, d.Name, statusTimeout)
				}
			}
			list[i] = st
		})
	}
	asked.Wait()
	return list
}

// readyDatabases returns the number of databases that do not answer. It returns FaultUnavailable if none answers.
func (s *Service) readyDatabases(ctx context.Context) (unavailable int, err error) {
	list := statusOf(ctx, s.Config.Databases)
	for _, st := range list {
		if st.Status != sandbox.DatabaseReady {
			unavailable++
			err = errors.Join(err, errors.New(st.Problem))
		}
	}
	if unavailable < len(list) {
		return unavailable, nil
	}
	detail := fmt.Sprintf("none of the %d databases answers; try again soon", len(list))
	if len(list) == 1 {
		detail = list[0].Problem
	}
	return unavailable, &sandbox.Error{
		Fault: sandbox.FaultUnavailable, Detail: detail, RetryAfter: 2, Cause: err,
	}
}
