// Package database knows the databases that statements can name.
//
//	s := database.New(database.Config{...})
//	db, err := s.Find(caller, "sales") // "": the caller's default
//	tables, err := s.Schema(ctx, caller, "sales")
//
// It says which of them a caller may use, how they are and which tables they have. Package run runs statements. A
// Service is safe for concurrent use.
package database

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
	"glasshouse/sandbox/stages"
	"glasshouse/service/access"
)

// Reader reads a database.
type Reader interface {
	Query(
		ctx context.Context,
		sql string,
		params map[string]any,
		l sandbox.QueryLimits,
		sink sandbox.RowSink,
	) (sandbox.QuerySummary, error)
	// Stages counts the rows after each stage of a query. Its error is that of Query, or that there are no stages.
	Stages(
		ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, o stages.Options,
	) (*stages.Stages, error)
	// Why finds the rows of tables behind a cell of a query's result, and WhyNot the stage that loses a row. The
	// summary is that of the query. The error is that of Query, or that the rows cannot be followed.
	Why(
		ctx context.Context, sql string, params map[string]any, row int, column string, l sandbox.QueryLimits,
	) (*stages.Why, sandbox.QuerySummary, error)
	WhyNot(
		ctx context.Context, sql string, params, values map[string]any, l sandbox.QueryLimits,
	) (*stages.WhyNot, sandbox.QuerySummary, error)
	// Permit returns the text that PostgreSQL would run for a statement today, without running it, or the error of
	// Query.
	Permit(ctx context.Context, sql string, names []string, l sandbox.QueryLimits) (ran string, err error)
	Tables(context.Context) ([]string, error)
	Schema(ctx context.Context, names ...string) ([]sandbox.Table, error) // without names, all tables
	Status(context.Context) (serverVersion string, err error)
}

// Writer plans statements that would write, and runs statements that an admin has approved.
type Writer interface {
	Capture(ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits) (sandbox.WritePlan, error)
	SampleQueries(
		ctx context.Context, sql string, params map[string]any,
	) (rows, count sandbox.BoundQuery, err error)
	Preview(
		ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits,
	) (sandbox.WritePreview, error)
	ApplyKeepingUndo(
		ctx context.Context, sql string, params map[string]any, estimate int64,
		keep func(context.Context, sandbox.WriteUndo) error,
	) (int64, error)
}

// Database is a database that statements can name.
type Database struct {
	Name   string
	Reader Reader
	Writer Writer
}

// Config configures a Service.
type Config struct {
	Access *access.Service // holds inspections to their limits
	List   []Database      // at least one; the first is the default
}

// Service knows databases. New returns one.
type Service struct{ Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config} }

// statusTimeout bounds how long a database has to say that it is there.
const statusTimeout = 1500 * time.Millisecond

// of returns the databases that a caller may use, in the order of Config.List.
func (s *Service) of(caller sandbox.Key) []Database {
	if len(caller.Databases) == 0 {
		return s.List
	}
	return slices.DeleteFunc(slices.Clone(s.List),
		func(d Database) bool { return !access.MaySeeDatabase(caller, d.Name) })
}

// Find returns the database with a name; "" means the first that the caller may use. The error is a
// *sandbox.Refusal that names the databases which the caller may use, and no others.
func (s *Service) Find(caller sandbox.Key, name string) (*Database, error) {
	all := s.of(caller)
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
	names := s.Names(caller)
	no.Nearest = policy.Nearest(name, slices.Values(names))
	no.Hint = "the databases are " + strings.Join(names, ", ")
	return nil, no
}

// Names returns the names of the databases that a caller may use, the default one first.
func (s *Service) Names(caller sandbox.Key) []string {
	all := s.of(caller)
	names := make([]string, len(all))
	for i, d := range all {
		names[i] = d.Name
	}
	return names
}

// Statuses returns the state of each database that the caller may use, the default one first.
func (s *Service) Statuses(ctx context.Context, caller sandbox.Key) ([]sandbox.DatabaseStatus, error) {
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{})
	if err != nil {
		return nil, err
	}
	defer end()
	return statusOf(ctx, s.of(caller)), nil
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

// Ready returns the number of databases that do not answer. It returns FaultUnavailable if none answers.
func (s *Service) Ready(ctx context.Context) (unavailable int, err error) {
	list := statusOf(ctx, s.List)
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

// Schema returns the tables of a database that may be read, with their columns: the named ones, or all if no name is
// given. The name of the database may be "", which is the caller's default. The error is a *sandbox.Refusal if there is
// no such table.
func (s *Service) Schema(
	ctx context.Context, caller sandbox.Key, database string, tables ...string,
) ([]sandbox.Table, error) {
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{})
	if err != nil {
		return nil, err
	}
	defer end()
	db, err := s.Find(caller, database)
	if err != nil {
		return nil, err
	}
	return db.Reader.Schema(ctx, tables...)
}
