package service

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"strings"

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

// Example is one titled piece of code that runs as it is.
type Example struct {
	Title string `json:"title"`
	Code  string `json:"code"`
}

// Examples are the examples that help serves; the tests run every one.
func Examples() []Example {
	names, _ := fs.Glob(helpFiles, "help/examples/*.py")
	var out []Example
	for _, name := range names {
		title, code, _ := strings.Cut(helpFile(strings.TrimPrefix(name, "help/")), "\n")
		out = append(out, Example{Title: strings.TrimPrefix(title, "# "), Code: code})
	}
	return out
}

// Helper is one function that code finds already there.
type Helper struct {
	Name        string `json:"name"`
	Signature   string `json:"signature"`
	Description string `json:"description"`
}

// Helpers lists the helper functions by group.
func Helpers() map[string][]Helper {
	return map[string][]Helper{
		"database": {
			{"db_query", "await db_query(sql, params={})", "Rows of one read-only statement as a list of dicts; :name parameters; works with and without await"},
			{"db_frame", "await db_frame(sql, params={})", "The same as a pandas DataFrame with right dtypes, and quicker for many rows"},
			{"db_explain", "await db_explain(sql, params={})", "How a statement would run, without running it: total_cost, rows (an estimate) and the plan"},
			{"db_tables", "await db_tables()", "Names of the tables and views that may be read"},
			{"db_schema", "await db_schema(table)", "Columns of a table: column_name, data_type, is_nullable, column_default, comment, primary_key, unique, references, row_estimate"},
		},
		"debugging": {
			{"debug", "debug(message, level=\"INFO\", data=None)", "Keeps a note; level is DEBUG, INFO, WARNING or ERROR"},
			{"inspect_var", "inspect_var(name, value)", "Records the value's type, size and a bounded repr"},
			{"get_debug_info", "get_debug_info()", "What was noted so far"},
			{"get_execution_history", "get_execution_history()", "This sandbox's earlier executions"},
			{"get_sandbox_state", "get_sandbox_state()", "This sandbox's variables and usage"},
		},
		"output": {
			{"display", "display(obj)", "Adds a rich output: a DataFrame, a figure, an image"},
			{"__result__", "__result__ = value", "What the execution returns; where it is not set, the value of a last expression is"},
		},
	}
}

// Rules are what code in a sandbox may import and call.
func (s *Service) Rules(ctx context.Context, caller sandbox.Key, id string) (policy.CodeRules, policy.Policy, error) {
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return policy.CodeRules{}, policy.Policy{}, err
	}
	return policy.Rules(l.box.Policy, s.environments()[l.box.Policy.Environment]), l.box.Policy, nil
}

// Template is the code of a processor and how to use it. An unknown kind falls
// back to data_processor.
func (s *Service) Template(ctx context.Context, caller sandbox.Key, id, kind string) (used, code string, err error) {
	if _, err := s.find(ctx, caller, id); err != nil {
		return "", "", err
	}
	if code := helpFile("template_" + kind + ".py"); code != "" && !strings.ContainsAny(kind, "/.") {
		return kind, code, nil
	}
	return "data_processor", helpFile("template_data_processor.py"), nil
}

// Analyze looks at a table in a sandbox of its own: kind summary or schema, or
// anything else for the list of tables; limit bounds the sample.
func (s *Service) Analyze(ctx context.Context, caller sandbox.Key, table, kind string, limit int) (*sandbox.Execution, error) {
	if table == "" && (kind == "summary" || kind == "schema") {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "table_name", Detail: "name the table to look at; analysis_type \"tables\" lists them"}
	}
	input, err := json.Marshal(map[string]any{"table_name": table, "analysis_type": kind, "limit": limit})
	if err != nil {
		return nil, err
	}
	return s.QuickExecute(ctx, caller, Job{Code: helpFile("analyze.py"), Context: input, Kind: sandbox.KindAnalyze}, nil)
}
