package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Columns of one name have values, names and expressions of their own, in a stopped program and in its past.
func TestColumnsOfOneNameAreTheirOwn(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": `import pandas as pd
df = pd.DataFrame([[10, 20, 30, 40]], columns=["same", "same", "same", "other"])
a = 1
b = 2`, "breakpoints": []any{4}}, nil)
	if a.get("where.state") != "stopped" {
		t.Fatalf("got %s, want a stop", a.text)
	}
	for _, moment := range []string{"stopped", "past"} {
		if moment == "past" {
			d.command(t, "stepBack", nil)
		}
		_, refs := d.variables(t, "Globals")
		list, _ := d.command(t, "variables", map[string]any{
			"variablesReference": refs["df"], "filter": "named",
		}).get("variables").([]any)
		var names []string
		for i, each := range list {
			column := each.(map[string]any)
			names = append(names, column["name"].(string))
			value, expression := column["value"].(string), column["evaluateName"].(string)
			if want := fmt.Sprint(10 * (i + 1)); !strings.Contains(value, want) || column["type"] != "pandas.Series" {
				t.Errorf("%s: column %d: got %v, want a Series with %s", moment, i, column, want)
			}
			wantExpression := fmt.Sprintf("df.iloc[:, %d]", i)
			if i == 3 {
				wantExpression = "df['other']"
			}
			if expression != wantExpression {
				t.Errorf("%s: column %d: got the expression %s, want %s", moment, i, expression, wantExpression)
			}
		}
		if got := strings.Join(names, " "); got != "same same_2 same_3 other" {
			t.Errorf("%s: got the columns %s, want same same_2 same_3 other", moment, got)
		}
	}
}
