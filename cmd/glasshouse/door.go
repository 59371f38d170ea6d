package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/prove"
	"glasshouse/sandbox"
)

// check says whether a statement would be run: offline, or against the database
// that --dsn names.
func check(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "code" {
		return checkCode(ctx, args)
	}
	const use = "usage: glasshouse check code FILE.py, or glasshouse check sql [--dsn URL] FILE (- reads the statement from standard input)"
	if len(args) == 0 || args[0] != "sql" {
		return errors.New(use)
	}
	var dsn string
	c, rest, err := parse("check sql", args[1:], func(f *flag.FlagSet) {
		f.StringVar(&dsn, "dsn", "", "judge by what this database has; empty: offline, by what PostgreSQL itself has")
	})
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	sql, err := one(rest, use)
	if err != nil {
		return err
	}
	if dsn == "" {
		checker := dbaccess.NewChecker()
		defer checker.Close()
		err = checker.Check(ctx, string(sql))
	} else {
		var r *dbaccess.Reader
		if r, err = dbaccess.Open(ctx, dbaccess.Config{URL: dsn, AllowFunctions: c.functions(), MaskColumns: c.hiddenColumns()}); err != nil {
			return err
		}
		defer r.Close()
		err = because(r.Check(ctx, string(sql)))
	}
	var no *sandbox.Refusal
	if errors.As(err, &no) {
		where := ""
		if no.Line > 0 {
			where = fmt.Sprintf(" at line %d, character %d", no.Line, no.Position)
		}
		return fmt.Errorf("refused (%s)%s: %w", no.Reason, where, no)
	}
	if err == nil {
		fmt.Println("allowed")
	}
	return err
}

// proveDoor attacks the knowledge database: that of --dsn, of the service's own
// settings, or the embedded one.
func proveDoor(ctx context.Context, args []string) error {
	var dsn, owner string
	c, rest, err := parse("prove", args, func(f *flag.FlagSet) {
		f.StringVar(&dsn, "dsn", "", "database to attack, with the login that agents read with; empty: the service's")
		f.StringVar(&owner, "owner-dsn", "", "the same database with a login that may write, to see what READ ONLY alone stops; empty: the reader's")
	})
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("prove takes no argument, and there is %q", rest[0])
	}
	if dsn == "" {
		dsn = c.knowledgeURL
	}
	if dsn == "" {
		stop, err := c.embedded(ctx)
		if err != nil {
			return err
		}
		defer stop()
		if dsn, err = embedded.URL(c.dataDir, embedded.RoleReader, embedded.DatabaseKnowledge); err != nil {
			return err
		}
		if owner, err = embedded.URL(c.dataDir, embedded.RoleOwner, embedded.DatabaseKnowledge); err != nil {
			return err
		}
	}
	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: dsn, AllowFunctions: c.functions(), MaskColumns: c.hiddenColumns()})
	if err != nil {
		return err
	}
	defer r.Close()
	outcomes, err := prove.Run(ctx, r, dsn, owner)
	if err != nil {
		return because(err)
	}
	through, err := prove.Print(os.Stdout, outcomes)
	if err != nil {
		return err
	}
	if through > 0 {
		return fmt.Errorf("%d attacks pass the door", through)
	}
	if err := because(r.AuditLogin(ctx)); err != nil {
		return fmt.Errorf("nothing passes the door, and yet: %w", err)
	}
	fmt.Println("Nothing passes the door, and the login may only read.")
	return nil
}

// embedded sees that the private PostgreSQL runs: the service's, where one runs on
// the data folder, or else one that stop ends again.
func (c config) embedded(ctx context.Context) (stop func(), err error) {
	if dial(c) != nil {
		return func() {}, nil
	}
	if err := os.MkdirAll(c.dataDir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFolder(c.dataDir)
	if err != nil {
		return nil, err
	}
	s, err := embedded.Start(ctx, embedded.Config{Dir: c.dataDir, Log: newLog(c)})
	if err == nil {
		if err = s.LoadDemo(ctx); err != nil {
			_ = s.Close()
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = s.Close()
		_ = lock.Close()
	}, nil
}

// because shows why the database does not answer: the operator may know.
func because(err error) error {
	var known *sandbox.Error
	if errors.As(err, &known) && known.Cause != nil {
		return fmt.Errorf("the database does not answer: %w", known.Cause)
	}
	return err
}

func roleSQL(_ context.Context, args []string) error {
	if len(args) > 2 || len(args) > 0 && args[0][:1] == "-" {
		return errors.New("usage: glasshouse role-sql [ROLE [DATABASE]] (glasshouse_reader and postgres where they are left out)")
	}
	role, database := "glasshouse_reader", "postgres"
	if len(args) > 0 {
		role = args[0]
	}
	if len(args) > 1 {
		database = args[1]
	}
	fmt.Print(dbaccess.RoleSQL(role, database))
	return nil
}
