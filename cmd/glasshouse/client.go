package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// admin is the first admin's key, as this process knows it.
var admin = sandbox.Key{User: "admin", Role: sandbox.RoleAdmin}

// runFile runs a file in a sandbox: of the service on this data folder where one
// runs, else of a service that lives for this run only.
func runFile(ctx context.Context, args []string) error {
	c, rest, err := parse("run FILE.py", args, nil)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	code, err := one(rest, "usage: glasshouse run [settings] FILE.py (- reads the code from standard input)")
	if err != nil {
		return err
	}
	var e sandbox.Execution
	if remote := dial(c); remote != nil {
		err = remote.call(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": string(code)}, &e)
	} else {
		var a *app
		if a, err = forOne(ctx, c, string(code)); err != nil {
			return err
		}
		defer a.close(context.WithoutCancel(ctx), c)
		var done *sandbox.Execution
		if done, err = a.service.QuickExecute(ctx, admin, service.Job{Code: string(code), Kind: sandbox.KindQuick}, nil); done != nil {
			e = *done
		}
	}
	if err != nil {
		return err
	}
	fmt.Print(e.Stdout)
	fmt.Fprint(os.Stderr, e.Stderr)
	for what, n := range e.Truncated {
		fmt.Fprintf(os.Stderr, "glasshouse: %s: %d were cut\n", what, n)
	}
	if string(e.Result) != "null" && len(e.Result) > 0 {
		fmt.Println(shown(e.Result))
	}
	if left := leftBy(&e); left != "" {
		fmt.Fprintf(os.Stderr, "glasshouse: it left %s; history has them, as %s\n", left, e.ID)
	}
	if e.Exception != nil {
		for n, f := range e.Exception.Traceback {
			if n == 0 {
				fmt.Fprintln(os.Stderr, "Traceback (most recent call last):")
			}
			fmt.Fprintf(os.Stderr, "  line %d, in %s\n    %s\n", f.Line, f.Function, f.Code)
		}
		if e.Exception.Hint != "" {
			defer fmt.Fprintln(os.Stderr, "hint:", e.Exception.Hint)
		}
	}
	if e.Error != nil {
		return fmt.Errorf("%s: %s", e.Status, *e.Error)
	}
	return nil
}

// shown is a result for a terminal: what JSON has no form for is an object with its repr.
func shown(result json.RawMessage) string {
	var object struct{ Type, Repr string }
	if json.Unmarshal(result, &object) == nil && object.Type != "" && object.Repr != "" {
		return object.Repr
	}
	return string(result)
}

// leftBy names what a terminal does not show of a run: outputs that are no plain text, and files.
func leftBy(e *sandbox.Execution) string {
	var all []string
	for _, o := range e.Outputs {
		for _, kind := range slices.Sorted(maps.Keys(o.Data)) {
			if strings.HasPrefix(kind, "image/") {
				all = append(all, "a picture ("+kind+")")
				break
			}
		}
	}
	for _, a := range e.Artifacts {
		all = append(all, a.Path)
	}
	return strings.Join(all, ", ")
}

// remote is the service that runs on a data folder.
type remote struct{ address, key string }

func dial(c config) *remote {
	address, err := os.ReadFile(filepath.Join(c.dataDir, "address"))
	key, err2 := os.ReadFile(filepath.Join(c.dataDir, "admin.key"))
	if err != nil || err2 != nil {
		return nil
	}
	r := &remote{strings.TrimSpace(string(address)), strings.TrimSpace(string(key))}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if r.call(ctx, "GET", "/healthz", nil, &map[string]any{}) != nil {
		return nil // left behind by a service that was killed
	}
	return r
}

func (r *remote) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.address+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		var p struct{ Detail string }
		_ = json.NewDecoder(res.Body).Decode(&p)
		return fmt.Errorf("%s: %s", res.Status, p.Detail)
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// keys creates, lists and revokes keys, in the running service or, where none
// runs, in the database itself.
func keys(ctx context.Context, args []string) error {
	const use = "usage: glasshouse keys create --name NAME [--user USER] [--role agent|developer|admin] [--expires 720h] | list | revoke ID"
	if len(args) == 0 || !slices.Contains([]string{"create", "list", "revoke"}, args[0]) {
		return errors.New(use)
	}
	var name, user, role string
	var expires time.Duration
	c, rest, err := parse("keys "+args[0], args[1:], func(f *flag.FlagSet) {
		f.StringVar(&name, "name", "", "what the key is for")
		f.StringVar(&user, "user", "", "whose sandboxes and executions it sees; the name where it is left out")
		f.StringVar(&role, "role", "agent", "agent, developer or admin")
		f.DurationVar(&expires, "expires", 0, "how long it lasts, as in 720h; 0: until it is revoked")
	})
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	r := dial(c)
	if r == nil {
		return errors.New("no service runs on " + c.dataDir + ": start it with `glasshouse serve`, or name its --data-dir")
	}
	switch args[0] {
	case "create":
		if name == "" {
			return errors.New("say what the key is for with --name")
		}
		if user == "" {
			user = name
		}
		body := map[string]any{"name": name, "user_id": user, "role": role}
		if expires > 0 {
			body["expires_at"] = time.Now().Add(expires).UTC()
		}
		var made struct {
			sandbox.Key
			Secret string `json:"key"`
		}
		if err := r.call(ctx, "POST", "/keys", body, &made); err != nil {
			return err
		}
		fmt.Printf("%s\n", made.Secret)
		fmt.Fprintf(os.Stderr, "key %s for user %s (%s): it is shown only now\n", made.ID, made.User, made.Role)
	case "list":
		var list struct{ Keys []sandbox.Key }
		if err := r.call(ctx, "GET", "/keys", nil, &list); err != nil {
			return err
		}
		out := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(out, "ID\tNAME\tUSER\tROLE\tCREATED\tSTATE")
		for _, k := range list.Keys {
			state := "good"
			if k.RevokedAt != nil {
				state = "revoked"
			} else if k.ExpiresAt != nil {
				state = "until " + k.ExpiresAt.Format(time.RFC3339)
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.User, k.Role, k.CreatedAt.Format(time.RFC3339), state)
		}
		return out.Flush()
	case "revoke":
		if len(rest) != 1 {
			return errors.New(use)
		}
		return r.call(ctx, "DELETE", "/keys/"+rest[0], nil, &map[string]any{})
	}
	return nil
}

// one reads the file that a command was given, - being standard input; use is the
// error where it was given none, or more.
func one(files []string, use string) ([]byte, error) {
	if len(files) != 1 {
		return nil, errors.New(use)
	}
	if files[0] == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(files[0])
}
