package service

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"strings"
	"sync"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

//go:embed help
var helpFiles embed.FS

func helpFile(name string) string {
	body, err := helpFiles.ReadFile("help/" + name)
	if err != nil {
		return ""
	}
	return string(body)
}

// Example is a titled program that runs without a change.
type Example struct {
	Title string `json:"title"`
	Code  string `json:"code"`
}

// Examples returns the examples of help/examples, in the order of their file names. The tests run every one.
func Examples() []Example {
	names, _ := fs.Glob(helpFiles, "help/examples/*.py")
	var out []Example
	for _, name := range names {
		title, code, _ := strings.Cut(helpFile(strings.TrimPrefix(name, "help/")), "\n")
		out = append(out, Example{Title: strings.TrimPrefix(title, "# "), Code: code})
	}
	return out
}

// Helper is a name that code in a sandbox can use without an import.
type Helper struct {
	Name        string `json:"name"`
	Signature   string `json:"signature"`
	Description string `json:"description"`
	Awaitable   bool   `json:"awaitable"`
}

//go:generate python3 ../sandbox/python/guest/helpers.py help/helpers.json ../docs/helpers.md

var helpers = sync.OnceValue(func() (groups map[string][]Helper) {
	if err := json.Unmarshal([]byte(helpFile("helpers.json")), &groups); err != nil {
		panic(err) // the file is embedded, and a test reads it
	}
	return groups
})

// Helpers returns the helpers by group. The registry in sandbox/python/guest declares them.
func Helpers() map[string][]Helper { return helpers() }

// Rules returns the code rules and the policy of a sandbox. The code rules say which modules and functions its code may
// use.
func (s *Service) Rules(ctx context.Context, caller sandbox.Key, id string) (policy.CodeRules, policy.Policy, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return policy.CodeRules{}, policy.Policy{}, err
	}
	return policy.Rules(live.sandbox.Policy,
		sandbox.ModulesOf(s.Environments.Environments())[live.sandbox.Policy.Environment]), live.sandbox.Policy, nil
}

// Template returns the code of a processor template and its kind. An unknown kind falls back to data_processor.
func (s *Service) Template(ctx context.Context, caller sandbox.Key, id, kind string) (used, code string, err error) {
	if _, err := s.find(ctx, caller, id); err != nil {
		return "", "", err
	}
	if code := helpFile("template_" + kind + ".py"); code != "" && !strings.ContainsAny(kind, "/.") {
		return kind, code, nil
	}
	return "data_processor", helpFile("template_data_processor.py"), nil
}

// Analyze runs help/analyze.py in a new sandbox. database is the name of a database; "" means the caller's default.
// kind is "summary", "schema", or "tables", which lists the tables. limit is the number of rows of the sample.
func (s *Service) Analyze(
	ctx context.Context, caller sandbox.Key, database, table, kind string, limit int,
) (*sandbox.Execution, error) {
	if table == "" && kind != "tables" {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "table_name",
			Detail: "table_name is missing: name the table; analysis_type \"tables\" lists all tables",
		}
	}
	input, err := json.Marshal(map[string]any{
		"database": database, "table_name": table, "analysis_type": kind, "limit": limit,
	})
	if err != nil {
		return nil, err
	}
	request := sandbox.Request{Code: helpFile("analyze.py"), Context: input, Kind: sandbox.KindAnalyze}
	return s.QuickExecute(ctx, caller, request, nil)
}
