package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/check"
	"glasshouse/sandbox"
)

func newCheckCommand() *cobra.Command {
	return newGroup("check", "Check code or SQL without running it", newCheckCodeCommand(), newCheckSQLCommand())
}

func newCheckCodeCommand() *cobra.Command {
	config := ""
	cmd := &cobra.Command{
		Use: "code [flags] FILE.py", Short: "List what a sandbox would refuse in a file", Args: arguments(1, 1),
		Long: "List what Python or the sandbox's policy would refuse in a file, and the modules that are " +
			"not installed. Nothing runs.\n\n" +
			callsServiceOrStarts,
		Example: `  glasshouse check code report.py
  glasshouse check code --config '{"profile": "strict"}' - <report.py`,
	}
	url := urlFlag(cmd)
	cmd.Flags().
		StringVar(&config, "config", "{}", "`JSON` configuration of the sandbox, such as {\"profile\": \"strict\"}")
	return withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		code, err := readFile(args[0])
		if err != nil {
			return err
		}
		result, err := checkCode(ctx, s, *url, string(code), json.RawMessage(config))
		if err != nil {
			return err
		}
		for _, p := range result.Problems {
			fmt.Printf("%s:%d:%d: %s: %s\n", args[0], p.Line, max(p.Column, 1), p.Kind, p.Message)
			if p.Hint != "" && !strings.Contains(p.Message, p.Hint) {
				fmt.Println("  hint:", p.Hint)
			}
		}
		switch n := len(result.Problems); n {
		case 0:
			return nil
		case 1:
			return errors.New("1 problem")
		default:
			return fmt.Errorf("%d problems", n)
		}
	})
}

// checkCode has a service check code.
func checkCode(
	ctx context.Context, s settings, url, code string, config json.RawMessage,
) (result sandbox.CheckResult, err error) {
	// The code does not run, so its imports need not be warm.
	err = withServiceForCode(ctx, s, url, "pass", func(c *client) error {
		return c.call(ctx, "POST", "/sandbox/check", map[string]any{"code": code, "config": config}, &result)
	})
	return result, err
}

func newCheckSQLCommand() *cobra.Command {
	dsn := ""
	cmd := &cobra.Command{
		Use: "sql [flags] FILE", Short: "Say whether the read-only reader would run a statement", Args: arguments(1, 1),
		Long: "Say whether the read-only reader would run a statement, or why not. Nothing runs.\n\n" +
			"Without --database and --dsn no database is needed: the statement may then call the functions that " +
			"PostgreSQL itself has.",
		Example: `  glasshouse check sql report.sql
  echo 'DELETE FROM users' | glasshouse check sql -
  glasshouse check sql --database sales report.sql
  glasshouse check sql --dsn postgres://reader@db/shop --allow-functions shop.total report.sql`,
	}
	cmd.Flags().StringVar(&dsn, "dsn", "",
		"`URL` of the database whose catalog decides; empty: that of --database NAME, or no database")
	return withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		sql, err := readFile(args[0])
		if err != nil {
			return err
		}
		if err = checkSQL(ctx, s, dsn, string(sql)); err == nil {
			fmt.Println("allowed")
			return nil
		}
		if refusal, ok := errors.AsType[*sandbox.Refusal](err); ok {
			position := ""
			if refusal.Line > 0 {
				position = fmt.Sprintf(" at line %d, character %d", refusal.Line, refusal.Position)
			}
			return fmt.Errorf("refused (%s)%s: %w", refusal.Reason, position, refusal)
		}
		return err
	})
}

func checkSQL(ctx context.Context, s settings, dsn, sql string) error {
	if dsn == "" && s.databases.named.chosen == "" {
		checker := check.New(check.Config{})
		defer checker.Close()
		return checker.Check(ctx, sql)
	}
	name, url, stop, err := s.chosenDatabase(ctx, dsn)
	if err != nil {
		return err
	}
	defer stop()
	reader, err := dbaccess.Open(ctx, s.readerConfig(name, url))
	if err != nil {
		return err
	}
	defer reader.Close()
	return withCause(reader.Check(ctx, sql))
}
