package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"

	"glasshouse/sandbox"
)

// checkCode reads a file as a sandbox would, and says what Python and the policy would
// refuse of it; nothing runs.
func checkCode(ctx context.Context, args []string) error {
	const use = "usage: glasshouse check code [settings] FILE.py (- reads the code from standard input)"
	if len(args) == 0 || args[0] != "code" {
		return errors.New(use)
	}
	config := ""
	c, rest, err := parse("check code", args[1:], func(f *flag.FlagSet) {
		f.StringVar(&config, "config", "{}", `config of the sandbox, as in '{"profile": "strict"}'`)
	})
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	code, err := one(rest, use)
	if err != nil {
		return err
	}
	v, err := verdictOn(ctx, c, string(code), json.RawMessage(config))
	if err != nil {
		return err
	}
	for _, p := range v.Problems {
		fmt.Printf("%s:%d:%d: %s: %s\n", rest[0], p.Line, max(p.Column, 1), p.Kind, p.Message)
		if p.Hint != "" {
			fmt.Println("  hint:", p.Hint)
		}
	}
	switch n := len(v.Problems); n {
	case 0:
		return nil
	case 1:
		return errors.New("1 problem")
	default:
		return fmt.Errorf("%d problems", n)
	}
}

// verdictOn asks the service on this data folder where one runs, else one that lives
// for this question only.
func verdictOn(ctx context.Context, c config, code string, config json.RawMessage) (v sandbox.CheckResult, err error) {
	if r := dial(c); r != nil {
		var made struct {
			ID string `json:"sandbox_id"`
		}
		if err := r.call(ctx, "POST", "/sandbox/create", config, &made); err != nil {
			return v, err
		}
		err = r.call(ctx, "POST", "/sandbox/"+made.ID+"/check", map[string]any{"code": code}, &v)
		return v, errors.Join(err, r.call(context.WithoutCancel(ctx), "DELETE", "/sandbox/"+made.ID, nil, &map[string]any{}))
	}
	a, err := forOne(ctx, c, "pass") // as nothing runs
	if err != nil {
		return v, err
	}
	defer a.close(context.WithoutCancel(ctx), c)
	box, err := a.service.Create(ctx, admin, config)
	if err != nil {
		return v, err
	}
	return a.service.Check(ctx, admin, box.ID, code)
}
