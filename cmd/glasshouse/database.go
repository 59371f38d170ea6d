package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/prove"
	"glasshouse/sandbox"
)

func newProveCommand() *cobra.Command {
	var dsn, ownerDSN string // of a database that the settings need not name
	cmd := &cobra.Command{
		Use: "prove", Short: "Attack the database through the reader and directly, and print which layer stops each attack",
		Args: arguments(0, 0),
		Example: `  glasshouse prove
  glasshouse prove --database sales
  glasshouse prove --dsn postgres://reader@db/shop --owner-dsn postgres://owner@db/shop`,
	}
	cmd.Flags().
		StringVar(&dsn, "dsn", "", "`URL` of the database to attack, with the login that agents use; "+
			"empty: that of --database NAME, or of --knowledge-url")
	cmd.Flags().StringVar(&ownerDSN, "owner-dsn", "",
		"`URL` of the same database with a login that may write, which shows what READ ONLY alone stops; empty: the reader's login")
	return withSettings(cmd, func(ctx context.Context, s settings, _ []string) error {
		name, url, stop, err := s.chosenDatabase(ctx, dsn)
		if err != nil {
			return err
		}
		defer stop()
		if dsn == "" && name == sandbox.DefaultDatabase && s.databases.knowledgeURL == "" {
			ownerDSN, err = embedded.URL(s.server.dataDir, embedded.RoleOwner, embedded.DatabaseKnowledge)
			if err != nil {
				return err
			}
		}
		return proveReader(ctx, s, name, url, ownerDSN)
	})
}

// proveReader attacks a database and prints the outcomes. An attack that succeeds is an error, and so is a
// login with more privileges than SELECT.
func proveReader(ctx context.Context, s settings, name, dsn, ownerDSN string) error {
	reader, err := dbaccess.Open(ctx, s.readerConfig(name, dsn))
	if err != nil {
		return err
	}
	defer reader.Close()
	outcomes, err := prove.Run(ctx, reader, dsn, ownerDSN)
	if err != nil {
		return withCause(err)
	}
	succeeded, err := prove.Print(os.Stdout, outcomes)
	if err != nil {
		return err
	}
	generated, err := prove.Generate(ctx, reader, dsn, s.readerConfig(name, dsn).AllowFunctions)
	if err != nil {
		return withCause(err)
	}
	if err := prove.PrintGenerated(os.Stdout, generated); err != nil {
		return err
	}
	if succeeded += len(generated.Calls); succeeded > 0 {
		return fmt.Errorf("%d attacks succeeded", succeeded)
	}
	if err := withCause(reader.AuditLogin(ctx)); err != nil {
		return fmt.Errorf("no attack succeeded, but the login has too many privileges: %w", err)
	}
	masks, err := reader.LoginMasks(ctx)
	if err != nil {
		return withCause(err)
	}
	if text := masks.String(); text != "" {
		fmt.Println("Masked columns: " + text + ".")
	}
	reachable, err := prove.Reachable(ctx, dsn)
	if err != nil {
		return err
	}
	if len(reachable) == 0 {
		fmt.Println("No attack succeeded, and the login can only read.")
		return nil
	}
	fmt.Println("No attack succeeded, and the login can write no table.")
	return prove.PrintReachable(os.Stdout, reachable)
}

// ensureEmbedded makes the embedded PostgreSQL run: that of the service on the data folder, or one that
// stop ends.
func (s *settings) ensureEmbedded(ctx context.Context) (stop func(), err error) {
	dataDir := s.server.dataDir
	if dial(dataDir) != nil {
		return func() {}, nil
	}
	if err := os.MkdirAll(dataDir, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dataDir)
	if err != nil {
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{Dir: dataDir, Log: newLog(*s)})
	if err == nil {
		if err = server.LoadDemo(ctx); err != nil {
			_ = server.Close()
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return func() {
		_ = server.Close()
		_ = lock.Close()
	}, nil
}

// withCause returns the cause of an error instead of the message for the service's users. The operator may see the
// cause.
func withCause(err error) error {
	if isUnreachable(err) {
		known, _ := errors.AsType[*sandbox.Error](err)
		return fmt.Errorf("the database does not answer: %w", known.Cause)
	}
	return err
}

// isUnreachable reports whether an error means that a database does not answer.
func isUnreachable(err error) bool {
	known, ok := errors.AsType[*sandbox.Error](err)
	return ok && known.Fault == sandbox.FaultUnavailable && known.Cause != nil
}
func newRoleSQLCommand() *cobra.Command {
	var options dbaccess.RoleOptions
	cmd := &cobra.Command{
		Use: "role-sql [flags] [ROLE [DATABASE]]", Short: "Print the SQL that creates a login which can only read",
		Args: arguments(0, 2),
		Long: "Print the SQL that creates a login which can only read. ROLE is glasshouse_reader and DATABASE postgres if " +
			"they are left out.",
		Example: `  glasshouse role-sql agents shop | psql shop
  glasshouse role-sql --mask users.email,orders.iban agents shop | psql shop
  glasshouse role-sql --revoke-from-public agents shop   # read what others lose before you run it`,
		Run: func(cmd *cobra.Command, args []string) {
			names := []string{"glasshouse_reader", "postgres"}
			copy(names, args)
			fmt.Fprint(cmd.OutOrStdout(), dbaccess.RoleSQL(names[0], names[1], options))
		},
	}
	cmd.Flags().StringSliceVar(&options.Mask, "mask", nil,
		"comma-separated `COLUMNS` of tables that the login may not read, those of `serve --mask-columns`")
	cmd.Flags().BoolVar(&options.ServerCheck, "server-check", false,
		"also keep the analysis of each query that `serve --server-check` asks for out of the server's log; "+
			"the log then has no errors of this login, too")
	cmd.Flags().BoolVar(&options.RevokeFromPublic, "revoke-from-public", false,
		"also revoke from every login the functions that run a text as SQL, show what others do, cancel, lock, sleep, or "+
			"use large objects")
	return cmd
}
