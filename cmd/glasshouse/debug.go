package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/debugger"
	"glasshouse/debugger/dap"
	"glasshouse/debugger/program"
	"glasshouse/sandbox"
)

const debugHelp = `  next (n), step (s), out (o), continue (c)   forward: a line, into a call, out of it, to the next breakpoint
  back (b), reverse-continue (rc)             backward in the recording: a line, to the previous breakpoint
  goto STEP                                   to any recorded step
  break [LINE [if CONDITION]], clear LINE     set or list breakpoints; remove one
  print EXPRESSION (p), where (w), list (l)   a value; the calls; the lines around
  quit (q)                                    end the program and leave; an empty line repeats a move
`

// moveCommands maps a typed command to the DAP request that moves the program.
var moveCommands = map[string]string{
	"next": "next", "n": "next", "step": "stepIn", "s": "stepIn", "out": "stepOut", "o": "stepOut", "continue": "continue", "c": "continue",
	"back": "stepBack", "b": "stepBack", "reverse-continue": "reverseContinue", "rc": "reverseContinue", "goto": "goto",
}

func newDebugCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "debug [flags] FILE.py", Short: "Step through a file, forward and back", Args: arguments(1, 1),
		Long: "Step through a file in a sandbox, forward and back, from the terminal. The commands are:\n\n" + debugHelp +
			"\n" + callsServiceOrStarts,
		Example: "  glasshouse debug report.py",
	}
	url := urlFlag(cmd)
	return withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		return debugFile(ctx, s, *url, args)
	})
}

func debugFile(ctx context.Context, s settings, url string, args []string) error {
	if args[0] == "-" {
		return errors.New("debug reads its commands from standard input: name a file with the program")
	}
	code, err := readFile(args[0])
	if err != nil {
		return err
	}
	return withServiceForCode(ctx, s, url, string(code), func(c *client) error {
		return c.debug(ctx, string(code), os.Stdin, os.Stdout)
	})
}

// terminal is a debug session that a terminal drives line by line.
type terminal struct {
	*client
	out         io.Writer
	path        string // of the session in the API
	source      []string
	breakpoints []dap.SourceBreakpoint
	where       debugger.Position
	ended       bool // the output of the program has been printed
}

// sessionState is the answer of the API to opening, reading and moving a session.
type sessionState struct {
	Session string             `json:"session_id"`
	Where   debugger.Position  `json:"where"`
	Result  *sandbox.Execution `json:"result"`
}

// debug opens a session for code and runs the commands that it reads from in, until its end or quit.
func (c *client) debug(ctx context.Context, code string, in io.Reader, out io.Writer) error {
	var box struct {
		ID string `json:"sandbox_id"`
	}
	if err := c.call(ctx, "POST", "/sandbox/create", nil, &box); err != nil {
		return err
	}
	cleanup := context.WithoutCancel(ctx)
	// The errors of both deletions are ignored, as the sandbox and its session expire.
	defer func() { _ = c.call(cleanup, "DELETE", "/sandbox/"+box.ID, nil, &map[string]any{}) }()
	var state sessionState
	if err := c.call(ctx, "POST", "/sandbox/"+box.ID+"/debug/sessions", map[string]any{"code": code, "stop_on_entry": true}, &state); err != nil {
		return err
	}
	t := &terminal{client: c, out: out, path: "/debug/sessions/" + state.Session, source: program.Split(code)}
	defer func() { _ = c.call(cleanup, "DELETE", t.path, nil, &map[string]any{}) }()
	if err := t.showStop(ctx, state); err != nil {
		return err
	}
	lines, lastMove := bufio.NewScanner(in), ""
	for {
		fmt.Fprint(out, "> ")
		if !lines.Scan() {
			fmt.Fprintln(out)
			return lines.Err()
		}
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			line = lastMove
		}
		command, argument, _ := strings.Cut(line, " ")
		if lastMove = ""; moveCommands[command] != "" {
			lastMove = line
		}
		if command == "quit" || command == "q" {
			return nil
		}
		if err := t.command(ctx, command, strings.TrimSpace(argument)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintln(out, err)
		}
	}
}

func (t *terminal) command(ctx context.Context, command, argument string) error {
	if request := moveCommands[command]; request != "" {
		return t.move(ctx, request, argument)
	}
	switch command {
	case "":
		return nil
	case "break", "clear":
		return t.setBreakpoints(ctx, command, argument)
	case "print", "p":
		var body struct{ Result string }
		if err := t.request(ctx, "evaluate", map[string]any{"expression": argument, "frameId": t.where.Frame}, &body); err != nil {
			return err
		}
		fmt.Fprintln(t.out, body.Result)
		return nil
	case "where", "w":
		return t.showCalls(ctx)
	case "list", "l":
		for _, line := range debugger.SourceContext(t.source, t.where.Line) {
			mark := "  "
			if line.Current {
				mark = "=>"
			}
			fmt.Fprintf(t.out, "%s %4d  %s\n", mark, line.Line, line.Code)
		}
		return nil
	}
	fmt.Fprint(t.out, debugHelp)
	return nil
}

func (t *terminal) move(ctx context.Context, request, argument string) error {
	step := 0
	if request == "goto" {
		var err error
		if step, err = strconv.Atoi(argument); err != nil {
			return errors.New("goto needs the number of a step")
		}
	}
	var state sessionState
	if err := t.request(ctx, request, map[string]any{"step": step}, &state); err != nil {
		return err
	}
	return t.showStop(ctx, state)
}

func (t *terminal) showCalls(ctx context.Context) error {
	var body struct {
		Frames []struct {
			Name string
			Line int64
		} `json:"stackFrames"`
	}
	if err := t.request(ctx, "stackTrace", map[string]any{"threadId": t.where.Thread}, &body); err != nil {
		return err
	}
	for _, f := range body.Frames {
		fmt.Fprintf(t.out, "  line %d, in %s: %s\n", f.Line, f.Name,
			strings.TrimSpace(program.Line(t.source, f.Line)))
	}
	return nil
}

// setBreakpoints sets or clears the breakpoint that argument names, and lists all.
func (t *terminal) setBreakpoints(ctx context.Context, command, argument string) error {
	if argument != "" {
		number, condition, _ := strings.Cut(argument, " ")
		line, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%s needs the number of a line", command)
		}
		list := slices.DeleteFunc(slices.Clone(t.breakpoints),
			func(b dap.SourceBreakpoint) bool { return b.Line == line })
		if command == "break" {
			condition = strings.TrimPrefix(strings.TrimSpace(condition), "if ")
			list = append(list, dap.SourceBreakpoint{Line: line, Condition: condition})
		}
		var body struct{ Breakpoints []debugger.BreakpointView }
		if err := t.request(ctx, "setBreakpoints", map[string]any{"breakpoints": list}, &body); err != nil {
			return err
		}
		t.breakpoints = nil
		for i, view := range body.Breakpoints {
			if view.Verified {
				t.breakpoints = append(t.breakpoints, list[i])
			} else {
				fmt.Fprintf(t.out, "line %d: %s\n", view.Line, view.Message)
			}
		}
	}
	for _, b := range t.breakpoints {
		fmt.Fprintf(t.out, "  break %d %s\n", b.Line, b.Condition)
	}
	return nil
}

// request sends a DAP request to the session.
func (t *terminal) request(ctx context.Context, name string, arguments, body any) error {
	return t.call(ctx, "POST", t.path+"/"+name, arguments, body)
}

// pollInterval is the time between two questions to a session whether its program has stopped.
const pollInterval = 100 * time.Millisecond

// showStop waits until the program stops, and prints where, why, and the variables that have changed.
func (t *terminal) showStop(ctx context.Context, state sessionState) error {
	for state.Where.State == debugger.StateRunning {
		if err := t.call(ctx, "GET", t.path, nil, &state); err != nil {
			return err
		}
		if state.Where.State == debugger.StateRunning {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pollInterval):
			}
		}
	}
	w := state.Where
	t.where = w
	for _, name := range w.Changed {
		if value, ok := w.Variables[name]; ok {
			fmt.Fprintf(t.out, "  %s = %s\n", name, value)
		} else {
			fmt.Fprintf(t.out, "  %s is deleted\n", name)
		}
	}
	if w.Steps > 0 {
		fmt.Fprintf(t.out, "step %d of %d, %s, line %d in %s: %s\n", w.Step, w.Steps, w.Reason, w.Line, w.Function,
			strings.TrimSpace(w.Code))
	}
	if e := state.Result; e != nil && !t.ended {
		t.ended = true
		fmt.Fprint(t.out, e.Stdout, e.Stderr)
		fmt.Fprintf(t.out, "the program has ended: %s\n", e.Status)
		if e.Error != nil {
			fmt.Fprintln(t.out, *e.Error)
		}
	}
	return nil
}
