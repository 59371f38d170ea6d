package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/replaytext"
)

// suiteParallel is the number of replays of a suite that run at a time.
const suiteParallel = 2

// gradeError is the grade of an execution of a suite that has no replay.
const gradeError sandbox.ReplayGrade = "error"

// suiteResult is a replay of a suite, as --json prints it.
type suiteResult struct {
	Of     string              `json:"execution_id"`
	Grade  sandbox.ReplayGrade `json:"grade"`
	ID     string              `json:"replay_id,omitempty"`
	Replay *sandbox.Replay     `json:"replay,omitempty"`
	Error  string              `json:"error,omitempty"`
}

// readSuite returns the ids of a file that has one on each line. A comment begins with #.
func readSuite(name string) (ids []string, err error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		switch fields := strings.Fields(line); len(fields) {
		case 0:
		case 1:
			ids = append(ids, fields[0])
		default:
			return nil, fmt.Errorf("%s:%d: got %q, want one id of an execution on a line", name, n+1, line)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%s has no id of an execution; write one on each line", name)
	}
	return ids, nil
}

// lastExecutions returns the ids of the newest executions that the caller may see, and that can be replayed.
func (c *client) lastExecutions(ctx context.Context, count int) (ids []string, err error) {
	for after := ""; len(ids) < count; {
		var page struct {
			Executions []sandbox.ExecutionSummary `json:"executions"`
			Next       string                     `json:"next"`
		}
		query := url.Values{"limit": {"100"}}
		if after != "" {
			query.Set("after", after)
		}
		if err := c.call(ctx, "GET", "/executions?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		for _, e := range page.Executions {
			switch e.Kind {
			case sandbox.KindQuery, sandbox.KindReplay, sandbox.KindRestore: // they ran no code of their own
				continue
			}
			if e.Status != sandbox.StatusRunning && len(ids) < count {
				ids = append(ids, e.ID)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if len(ids) == 0 {
		return nil, errors.New("history has no execution that has ended")
	}
	return ids, nil
}

// printPackages prints the packages in which an environment differs from the default one.
func (c *client) printPackages(ctx context.Context, environment string) error {
	versions := [2]map[string]string{{}, {}}
	for n, name := range []string{policy.Default().Environment, environment} {
		var list struct {
			Packages []sandbox.Package `json:"packages"`
		}
		if err := c.call(ctx, "GET", "/environments/"+url.PathEscape(name)+"/packages", nil, &list); err != nil {
			return err
		}
		for _, p := range list.Packages {
			versions[n][p.Name] = p.Version
		}
	}
	all := maps.Clone(versions[0])
	maps.Copy(all, versions[1])
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was, is := versions[0][name], versions[1][name]; was != is {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", name, cmp.Or(was, "(none)"), cmp.Or(is, "(none)")))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no package differs"}
	}
	_, err := fmt.Printf("%s -> %s: %s\n", policy.Default().Environment, environment, strings.Join(parts, ", "))
	return err
}

// suiteOutput says how the replays of a suite are printed.
type suiteOutput struct {
	asJSON     bool
	onlyOthers bool // no line for those that are identical, unless it is JSON
}

// replaySuite replays executions and prints a line for each, in their order, and a sum. Its error is errExit unless all
// are identical, or says that ctx has ended.
func (c *client) replaySuite(ctx context.Context, ids []string, body map[string]any, out suiteOutput) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if name, ok := body["environment"].(string); ok && name != policy.Default().Environment && !out.asJSON {
		if err := c.printPackages(ctx, name); err != nil {
			return err
		}
	}
	words := gradeWords(body["rows"] == "now")
	counts, worst, ended := map[sandbox.ReplayGrade]int{}, 0, 0
	for _, result := range c.startSuite(ctx, ids, body) {
		var r suiteResult
		select {
		case r = <-result:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		ended++
		counts[r.Grade]++
		worst = max(worst, exitCodeOf(r.Grade))
		if out.onlyOthers && !out.asJSON && r.Grade == sandbox.ReplayIdentical {
			continue
		}
		if err := printResult(&r, words, out.asJSON); err != nil {
			return err
		}
	}
	if !out.asJSON {
		fmt.Println(sumOf(ended, counts, words))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %d of %d executions were not replayed", len(ids)-ended, len(ids))
	}
	if worst != 0 {
		return errExit(worst)
	}
	return nil
}

// startSuite starts the replays, suiteParallel at a time, until ctx ends. It returns a channel for each.
func (c *client) startSuite(ctx context.Context, ids []string, body map[string]any) []chan suiteResult {
	results, next := make([]chan suiteResult, len(ids)), make(chan int)
	for n := range results {
		results[n] = make(chan suiteResult, 1)
	}
	for range min(suiteParallel, len(ids)) {
		go func() {
			for n := range next {
				results[n] <- c.resultOf(ctx, ids[n], body)
			}
		}()
	}
	go func() {
		defer close(next)
		for n := range ids {
			select {
			case next <- n:
			case <-ctx.Done():
				return
			}
		}
	}()
	return results
}

// resultOf replays one execution of a suite.
func (c *client) resultOf(ctx context.Context, id string, body map[string]any) suiteResult {
	e, _, err := c.requestReplay(ctx, id, body)
	if err != nil {
		return suiteResult{Of: id, Grade: gradeError, Error: err.Error()}
	}
	return suiteResult{Of: id, Grade: e.Replay.Grade, ID: e.ID, Replay: e.Replay}
}

// gradeWords returns the words for grades. With the rows of now, a replay says whether an old answer is still true.
func gradeWords(rowsNow bool) map[sandbox.ReplayGrade]string {
	words := map[sandbox.ReplayGrade]string{
		sandbox.ReplayIdentical: "identical", sandbox.ReplayDiffers: "differs", sandbox.ReplayDiverged: "diverged",
		gradeError: "error",
	}
	if rowsNow {
		words[sandbox.ReplayIdentical], words[sandbox.ReplayDiffers] = "still true", "no longer true"
	}
	return words
}

// printResult prints the line of a replay.
func printResult(r *suiteResult, words map[sandbox.ReplayGrade]string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	text := strings.Join(strings.Fields(r.Error), " ")
	if r.Replay != nil {
		text = replaytext.FirstDifference(r.Replay)
	}
	width := len(words[sandbox.ReplayIdentical])
	for _, word := range words {
		width = max(width, len(word))
	}
	_, err := fmt.Println(strings.TrimRight(fmt.Sprintf("%-*s  %s  %s", width, words[r.Grade], r.Of, text), " "))
	return err
}

// sumOf returns the last line of a suite.
func sumOf(ended int, counts map[sandbox.ReplayGrade]int, words map[sandbox.ReplayGrade]string) string {
	var parts []string
	for _, grade := range []sandbox.ReplayGrade{
		sandbox.ReplayIdentical, sandbox.ReplayDiffers, sandbox.ReplayDiverged, gradeError,
	} {
		if n := counts[grade]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", words[grade], n))
		}
	}
	noun := "executions"
	if ended == 1 {
		noun = "execution"
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", ended, noun, strings.Join(parts, ", ")), ": ")
}

// exitCodeOf returns the exit code of a replay with a grade.
func exitCodeOf(grade sandbox.ReplayGrade) int {
	switch grade {
	case sandbox.ReplayIdentical:
		return 0
	case sandbox.ReplayDiffers:
		return exitDiffers
	default:
		return exitTrouble
	}
}

// suiteArguments returns an error if a command with a suite, or with the last executions, has what is of one execution:
// code, or count ids.
func suiteArguments(cmd *cobra.Command, count, last int) error {
	switch flags := cmd.Flags(); {
	case flags.Changed("suite") && flags.Changed("last"):
		return errors.New("--suite has the ids: leave --last out")
	case flags.Changed("last") && last < 1:
		return fmt.Errorf("--last %d: give the number of executions, from 1", last)
	case count > 0 && flags.Changed("suite"):
		return errors.New("--suite FILE has the ids: give no other one")
	case count > 0:
		return errors.New("--last replays the newest executions: give no id")
	case flags.Changed("code"):
		return errors.New("--code is for one execution: replay the others one by one")
	}
	return nil
}
