package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
	"glasshouse/service/replaytext"
)

// The exit codes of a replay are those of diff and cmp.
const (
	exitDiffers = 1 // the replay differs from its original
	exitTrouble = 2 // it diverged, or there is no replay
)

// errExit is an error that has an exit code, and was printed already.
type errExit int

func (e errExit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func newReplayCommand() *cobra.Command {
	var file, rows, suite, environment string
	var record, asJSON bool
	var last int
	cmd := &cobra.Command{
		Use: "replay [flags] ID", Short: "Run an execution again with the inputs that it had, and compare both",
		Args: func(cmd *cobra.Command, args []string) error {
			if isLast := cmd.Flags().Changed("last"); isLast || suite != "" {
				return suiteArguments(cmd, len(args), last)
			}
			return arguments(1, 1)(cmd, args)
		},
		Long: "Run an ended execution again with the inputs that it had: rows, readings of clocks, randomness and " +
			"files. Print whether the replay did the same, what differs, and what may differ although the code is " +
			"the same. The earlier executions of its session run first. The replay is an execution of its own.\n\n" +
			"The exit code is 0 if the replay is identical, 1 if it differs, and 2 if it diverged or there was an " +
			"error. The replay diverges, and ends, if the code sends another request than the original.\n\n" +
			"With --suite, replay each execution of a file, and print a line for each: the grade, the id and the " +
			"first difference. The exit code is the highest one. With --rows now, the grades are \"still true\" and " +
			"\"no longer true\". With --last, replay the newest executions that you may see, and print a line for " +
			"each that is not identical.\n\n" +
			"With --environment, replay with the packages of another environment, which shows what an update would " +
			"change.\n\n" +
			callsService,
		Example: `  glasshouse replay 3f1c9a7e5b2d4c68
  glasshouse replay --code fixed.py 3f1c9a7e5b2d4c68
  glasshouse replay --rows now 3f1c9a7e5b2d4c68
  glasshouse replay --record --json 3f1c9a7e5b2d4c68
  glasshouse replay --suite answers.txt --rows now
  glasshouse replay --last 1000 --environment lab`,
		Annotations: map[string]string{failureCode: fmt.Sprint(exitTrouble)},
	}
	cmd.Flags().StringVar(&file, "code", "",
		"`FILE` with code that runs in place of the original's; -: standard input; empty: the original's")
	cmd.Flags().StringVar(&rows, "rows", "log",
		"`SOURCE` of the rows: log, as the original got them, or now, from the database")
	cmd.Flags().StringVar(&suite, "suite", "",
		"`FILE` with the id of an execution on each line, which are replayed two at a time; -: standard input")
	cmd.Flags().IntVar(&last, "last", 0, "replay the `N` newest executions, two at a time")
	cmd.Flags().StringVar(&environment, "environment", "",
		"`NAME` of the environment in which the code runs; empty: that of each original")
	cmd.Flags().BoolVar(&record, "record", false, "record the replay, so that it can be stepped and explained")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the replay's execution as JSON; with --suite, a line for each")
	_ = cmd.RegisterFlagCompletionFunc("rows",
		cobra.FixedCompletions([]string{"log", "now"}, cobra.ShellCompDirectiveNoFileComp))
	return withService(cmd, func(ctx context.Context, c *client, args []string) error {
		body := map[string]any{"rows": rows, "record": record}
		if environment != "" {
			body["environment"] = environment
		}
		switch {
		case suite != "":
			ids, err := readSuite(suite)
			if err != nil {
				return err
			}
			return c.replaySuite(ctx, ids, body, suiteOutput{asJSON: asJSON})
		case last > 0:
			ids, err := c.lastExecutions(ctx, last)
			if err != nil {
				return err
			}
			return c.replaySuite(ctx, ids, body, suiteOutput{asJSON: asJSON, onlyOthers: true})
		}
		if file != "" {
			code, err := readFile(file)
			if err != nil {
				return err
			}
			body["code"] = string(code)
		}
		return c.replay(ctx, args[0], body, asJSON)
	})
}

// requestReplay replays an execution, and returns the replay with its comparison and its JSON.
func (c *client) requestReplay(
	ctx context.Context, id string, body map[string]any,
) (*sandbox.Execution, json.RawMessage, error) {
	var answer json.RawMessage
	if err := c.call(ctx, "POST", "/executions/"+url.PathEscape(id)+"/replay", body, &answer); err != nil {
		return nil, nil, err
	}
	var e sandbox.Execution
	if err := json.Unmarshal(answer, &e); err != nil {
		return nil, nil, fmt.Errorf("the service's answer cannot be read: %w", err)
	}
	if e.Replay == nil {
		return nil, nil, errors.New("the service answers without a comparison: it is of another version")
	}
	return &e, answer, nil
}

// replay replays an execution and prints the comparison. It returns errExit unless both are identical.
func (c *client) replay(ctx context.Context, id string, body map[string]any, asJSON bool) error {
	e, answer, err := c.requestReplay(ctx, id, body)
	if err != nil {
		return err
	}
	if asJSON {
		var text bytes.Buffer
		if err := json.Indent(&text, answer, "", "  "); err != nil {
			return err
		}
		text.WriteByte('\n')
		if _, err := text.WriteTo(os.Stdout); err != nil {
			return err
		}
	} else {
		fmt.Println(replaytext.Describe(e))
		fmt.Printf("The replay is execution %s.\n", e.ID)
	}
	if code := exitCodeOf(e.Replay.Grade); code != 0 {
		return errExit(code)
	}
	return nil
}
