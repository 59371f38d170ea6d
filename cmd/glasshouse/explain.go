package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newExplainCommand() *cobra.Command {
	return newGroup("explain", "Explain the result of a SQL statement", newExplainSQLCommand())
}

// explainSQLFlags are the flags of `explain sql`, which name the question.
type explainSQLFlags struct {
	params, column, missing string
	row                     int
	all, asJSON             bool
}

func newExplainSQLCommand() *cobra.Command {
	var f explainSQLFlags
	cmd := &cobra.Command{
		Use: "sql [flags] FILE", Short: "Say where the rows of a SELECT went, and what may be wrong in it",
		Args: arguments(1, 1),
		Long: "Run a SELECT, and print the number of rows after each table, join, condition and group of it, and " +
			"what may be wrong, with the evidence of the data.\n\n" +
			"With --column, print which rows of tables are behind a cell of the result. With --missing, print which " +
			"table, join, condition or group loses a row.\n\n" +
			callsService,
		Example: `  glasshouse explain sql revenue.sql
  glasshouse explain sql --params '{"city": "Oslo"}' --database sales revenue.sql
  glasshouse explain sql --column revenue --row 2 revenue.sql
  glasshouse explain sql --missing '{"orders.id": 17}' - <revenue.sql`,
		Annotations: map[string]string{databaseOfService: "true"},
	}
	cmd.Flags().StringVar(&f.params, "params", "{}", "`JSON` object with the values of :name")
	cmd.Flags().StringVar(&f.column, "column", "", "`NAME` of the column of the cell whose rows are wanted")
	cmd.Flags().IntVar(&f.row, "row", 0, "`ROW` of the cell, from 0")
	cmd.Flags().StringVar(&f.missing, "missing", "", "`JSON` object with values of a row that the result lacks")
	cmd.Flags().BoolVar(&f.all, "all", false, "print findings that are only possible, too, and count what takes long")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print the whole answer as JSON")
	address := urlFlag(cmd)
	withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		sql, err := readFile(args[0])
		if err != nil {
			return err
		}
		path, body, err := f.request(strings.TrimRight(string(sql), " \t\r\n"), s.databases.named.chosen)
		if err != nil {
			return err
		}
		c, err := serviceClient(s.server.dataDir, *address)
		if err != nil {
			return err
		}
		return c.printExplanation(ctx, path, body, f.asJSON)
	})
	database := cmd.Flags().Lookup("database")
	database.Hidden, database.Usage = false, "`NAME` of a database of the service; empty: the default one"
	return cmd
}

// request returns the path and the body of the request for the question of the flags.
func (f *explainSQLFlags) request(sql, database string) (path string, body map[string]any, err error) {
	params, err := jsonObject("params", f.params)
	if err != nil {
		return "", nil, err
	}
	body = map[string]any{"sql": sql, "params": params}
	if database != "" {
		body["database"] = database
	}
	switch {
	case f.column != "" && f.missing != "":
		return "", nil, errors.New("--column and --missing are two questions: give one of them")
	case f.column != "":
		body["row"], body["column"] = f.row, f.column
		return "/database/why", body, nil
	case f.missing != "":
		if body["values"], err = jsonObject("missing", f.missing); err != nil {
			return "", nil, err
		}
		return "/database/why-not", body, nil
	}
	body["all"] = f.all
	return "/database/stages", body, nil
}

// jsonObject returns the value of a flag as it is: decoded, large integers would lose digits.
func jsonObject(flag, text string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("--%s is not a JSON object, such as {\"city\": \"Oslo\"}", flag)
	}
	return json.RawMessage(text), nil
}

// printExplanation prints the text of an answer about a statement, or all of it as JSON.
func (c *client) printExplanation(ctx context.Context, path string, body map[string]any, asJSON bool) error {
	var answer json.RawMessage
	if err := c.call(ctx, "POST", path, body, &answer); err != nil {
		return err
	}
	var fields struct{ Text string }
	if err := json.Unmarshal(answer, &fields); err != nil {
		return fmt.Errorf("the service's answer cannot be read: %w", err)
	}
	out := bytes.NewBufferString(fields.Text)
	if asJSON {
		out.Reset()
		if err := json.Indent(out, answer, "", "  "); err != nil {
			return err
		}
		out.WriteByte('\n')
	}
	_, err := out.WriteTo(os.Stdout)
	return err
}
