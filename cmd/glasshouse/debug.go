package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

const debugHelp = `  next (n), step (s), out (o), continue (c)   forward: a line, into a call, out of it, to the next breakpoint
  back (b), reverse-continue (rc)             the same way back, in the recording
  goto STEP                                   to any step that was
  break [LINE [if CONDITION]], clear LINE     set or list breakpoints; remove one
  print EXPRESSION (p), where (w), list (l)   a value; the calls; the lines around
  quit (q)                                    end the program and leave; an empty line repeats a move
`

// verbs are the moves, as the protocol names them.
var verbs = map[string]string{
	"next": "next", "n": "next", "step": "stepIn", "s": "stepIn", "out": "stepOut", "o": "stepOut", "continue": "continue", "c": "continue",
	"back": "stepBack", "b": "stepBack", "reverse-continue": "reverseContinue", "rc": "reverseContinue", "goto": "goto",
}

// debugFile steps through a file in a sandbox: of the service on this data folder where
// one runs, else of a service that lives for this command only.
func debugFile(ctx context.Context, args []string) error {
	c, rest, err := parse("debug FILE.py", args, nil)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return errors.New("usage: glasshouse debug [settings] FILE.py")
	}
	code, err := os.ReadFile(rest[0])
	if err != nil {
		return err
	}
	r := dial(c)
	if r == nil {
		a, err := forOne(ctx, c, string(code))
		if err != nil {
			return err
		}
		defer a.close(context.WithoutCancel(ctx), c)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: httpapi.New(httpapi.Config{Service: a.service, Log: a.log, Version: version}), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = server.Serve(listener) }() // until it is closed
		defer server.Close()
		r = &remote{"http://" + listener.Addr().String(), a.secret}
	}
	return r.debug(ctx, string(code), os.Stdin, os.Stdout)
}

// terminal is a debug session as a terminal drives it, line by line.
type terminal struct {
	*remote
	out     io.Writer
	path    string // of the session
	source  []string
	breaks  []debugger.SourceBreakpoint
	where   debugger.Where
	printed bool // the end of the run
}

// place is what opening, looking and moving answer.
type place struct {
	Session string             `json:"session_id"`
	Where   debugger.Where     `json:"where"`
	Result  *sandbox.Execution `json:"result"`
}

func (r *remote) debug(ctx context.Context, code string, in io.Reader, out io.Writer) error {
	var box struct {
		ID string `json:"sandbox_id"`
	}
	if err := r.call(ctx, "POST", "/sandbox/create", nil, &box); err != nil {
		return err
	}
	away := context.WithoutCancel(ctx)
	defer func() { _ = r.call(away, "DELETE", "/sandbox/"+box.ID, nil, &map[string]any{}) }() // it expires by itself
	var p place
	if err := r.call(ctx, "POST", "/sandbox/"+box.ID+"/debug/sessions", map[string]any{"code": code, "stop_on_entry": true}, &p); err != nil {
		return err
	}
	t := &terminal{remote: r, out: out, path: "/debug/sessions/" + p.Session, source: debugger.Source(code)}
	defer func() { _ = r.call(away, "DELETE", t.path, nil, &map[string]any{}) }()
	if err := t.arrive(ctx, p); err != nil {
		return err
	}
	lines, last := bufio.NewScanner(in), ""
	for {
		fmt.Fprint(out, "> ")
		if !lines.Scan() {
			fmt.Fprintln(out)
			return lines.Err()
		}
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			text = last
		}
		word, argument, _ := strings.Cut(text, " ")
		if last = ""; verbs[word] != "" {
			last = text
		}
		if word == "quit" || word == "q" {
			return nil
		}
		if err := t.command(ctx, word, strings.TrimSpace(argument)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintln(out, err)
		}
	}
}

func (t *terminal) command(ctx context.Context, word, argument string) error {
	if verb := verbs[word]; verb != "" {
		step := 0
		if verb == "goto" {
			var err error
			if step, err = strconv.Atoi(argument); err != nil {
				return errors.New("goto needs the number of a step")
			}
		}
		var p place
		if err := t.do(ctx, verb, map[string]any{"step": step}, &p); err != nil {
			return err
		}
		return t.arrive(ctx, p)
	}
	switch word {
	case "":
		return nil
	case "break", "clear":
		return t.setBreaks(ctx, word, argument)
	case "print", "p":
		var body struct{ Result string }
		if err := t.do(ctx, "evaluate", map[string]any{"expression": argument, "frameId": t.where.Frame}, &body); err != nil {
			return err
		}
		fmt.Fprintln(t.out, body.Result)
		return nil
	case "where", "w":
		var body struct {
			Frames []struct {
				Name string
				Line int64
			} `json:"stackFrames"`
		}
		if err := t.do(ctx, "stackTrace", map[string]any{"threadId": t.where.Lane}, &body); err != nil {
			return err
		}
		for _, f := range body.Frames {
			fmt.Fprintf(t.out, "  line %d, in %s: %s\n", f.Line, f.Name, strings.TrimSpace(debugger.SourceLine(t.source, f.Line)))
		}
		return nil
	case "list", "l":
		for _, s := range debugger.Around(t.source, t.where.Line) {
			mark := "  "
			if s.Current {
				mark = "=>"
			}
			fmt.Fprintf(t.out, "%s %4d  %s\n", mark, s.Line, s.Code)
		}
		return nil
	}
	fmt.Fprint(t.out, debugHelp)
	return nil
}

func (t *terminal) setBreaks(ctx context.Context, word, argument string) error {
	if argument != "" {
		number, condition, _ := strings.Cut(argument, " ")
		line, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%s needs the number of a line", word)
		}
		list := slices.DeleteFunc(slices.Clone(t.breaks), func(b debugger.SourceBreakpoint) bool { return b.Line == line })
		if word == "break" {
			list = append(list, debugger.SourceBreakpoint{Line: line, Condition: strings.TrimPrefix(strings.TrimSpace(condition), "if ")})
		}
		var body struct{ Breakpoints []debugger.BreakpointView }
		if err := t.do(ctx, "setBreakpoints", map[string]any{"breakpoints": list}, &body); err != nil {
			return err
		}
		t.breaks = nil
		for i, view := range body.Breakpoints {
			if view.Verified {
				t.breaks = append(t.breaks, list[i])
			} else {
				fmt.Fprintf(t.out, "line %d: %s\n", view.Line, view.Message)
			}
		}
	}
	for _, b := range t.breaks {
		fmt.Fprintf(t.out, "  break %d %s\n", b.Line, b.Condition)
	}
	return nil
}

func (t *terminal) do(ctx context.Context, command string, arguments, body any) error {
	return t.call(ctx, "POST", t.path+"/"+command, arguments, body)
}

// arrive waits until the program stands, and says where, why, and what has changed.
func (t *terminal) arrive(ctx context.Context, p place) error {
	for p.Where.State == debugger.StateRunning {
		if err := t.call(ctx, "GET", t.path, nil, &p); err != nil {
			return err
		}
		if p.Where.State == debugger.StateRunning {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	t.where = p.Where
	for _, name := range p.Where.Changed {
		if value, ok := p.Where.Variables[name]; ok {
			fmt.Fprintf(t.out, "  %s = %s\n", name, value)
		} else {
			fmt.Fprintf(t.out, "  %s is gone\n", name)
		}
	}
	fmt.Fprintf(t.out, "step %d of %d, %s, line %d in %s: %s\n", p.Where.Step, p.Where.Steps, p.Where.Reason, p.Where.Line, p.Where.Function, strings.TrimSpace(p.Where.Code))
	if e := p.Result; e != nil && !t.printed {
		t.printed = true
		fmt.Fprint(t.out, e.Stdout, e.Stderr)
		fmt.Fprintf(t.out, "the program has ended: %s\n", e.Status)
		if e.Error != nil {
			fmt.Fprintln(t.out, *e.Error)
		}
	}
	return nil
}
