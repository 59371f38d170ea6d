package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The record of a failed execution, debugged or not, has the variables and the queries before the failure.
func TestFailedExecutionShowsVariablesAndQueries(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	code := `rows = await db_query("SELECT user_id, action FROM user_activities ORDER BY 1 LIMIT 2")
def actions(rows):
    first = rows[0]
    return first["actoin"]
actions(rows)`
	debugged := c.debugStream(t, id, map[string]any{"code": code}).execution
	for _, text := range []string{string(c.run(t, id, code).text), string(mustJSON(t, debugged))} {
		for _, want := range []string{`"nearest":"action"`, `"first":"{'user_id':`, `"rows":"[{'user_id':`,
			`"query":"SELECT user_id, action`, `"rows":2`, `"line":4`} {
			if !strings.Contains(strings.ReplaceAll(text, `": `, `":`), want) {
				t.Errorf("want %s in %s", want, text)
			}
		}
	}
	a := c.run(t, id, "import time\nfor n in range(5): await db_query(f'SELECT {n}')\n1 / 0")
	if list, _ := a.get("exception.queries").([]any); len(list) != 3 ||
		fmt.Sprint(list[2].(map[string]any)["query"]) != "SELECT 4" {
		t.Errorf("got %s, want the last three queries", a.text)
	}
}

// What a model reads of a failure has what Python prints of it: the line of a syntax error with a caret, the notes, and
// the exceptions that led to it.
func TestModelReadsWhatPythonPrintsOfAFailure(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for code, want := range map[string]string{
		"print(1)\nif 1:\n\tx = = 3": "error: SyntaxError: invalid syntax\n  line 3: x = = 3\n              ^\n",
		"e = ValueError('bad')\ne.add_note('the note')\nraise e": "error: ValueError: bad\nthe note\n" +
			"  line 3, in <module>: raise e\n",
		"d = {}\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    d['k']": "error: KeyError: 'k'\n" +
			"  line 5, in <module>: d['k']\nraised while handling ZeroDivisionError: division by zero\n" +
			"  line 3, in <module>: 1 / 0\n",
		"try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise OSError('no') from e": "error: OSError: no\n" +
			"  line 4, in <module>: raise OSError('no') from e\nraised from ZeroDivisionError: division by zero\n" +
			"  line 2, in <module>: 1 / 0\n",
	} {
		a := c.ok(t, "POST", "/sandbox/agent/quick-execute?include=text", map[string]any{"code": code})
		if text, _ := a.get("text").(string); !strings.HasPrefix(text, want) {
			t.Errorf("%q: got %q, want it to begin with %q", code, text, want)
		}
	}
}
