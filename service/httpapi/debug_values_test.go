package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const valuesProgram = `import pandas as pd, numpy as np, collections
df = pd.DataFrame({'amt': [1.5, 2.5], 'a b': ['x', None], 3: pd.to_datetime(['2024-01-01', None])}, index=['p', 'q'])
mean = df['amt'].mean()
series = df['amt']
array, flat, index = np.array([[1, 2], [3, 4]]), np.array([5, 6]), df.index
kind = pd.Categorical(['u', 'v'])
when, queue = pd.Timestamp('2024-01-01'), collections.deque([1, [2]])
keys = {'k': 1, 2: [3], None: 4, (5, 6): 7, 1.5: 8}
views = keys.keys(), keys.items()
names = {'only'}
error = ValueError('bad', 3)
class Point:
    pass
point = Point()
point.x = [1]
setattr(point, 'odd name', 2)
setattr(point, 'class', 3)
done = 1`

// Values of data analysis have the same text in the recording and live, and each part can be evaluated.
func TestDebugOpensValuesOfDataAnalysis(t *testing.T) {
	t.Parallel()
	d, _ := newUser(t, sandbox.RoleDeveloper).openDebugSession(t, map[string]any{"code": valuesProgram,
		"stop_on_entry": true}, nil)
	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 18}}})
	wantStop(t, d.command(t, "continue", nil), "breakpoint 18")
	values, refs := d.variables(t, "Globals")
	for name, want := range map[string]string{
		"mean": "2.0", "when": "Timestamp('2024-01-01 00:00:00')", "error": "ValueError('bad', 3)",
		"series": "<Series amt float64 2: 1.5, 2.5>", "index": "<Index str 2: 'p', 'q'>",
		"array": "<ndarray int64 2x2: [1, 2], [3, 4]>", "queue": "collections.deque([1, [2]])",
		"df": "<DataFrame 2x3: amt float64, a b str (1 null), 3 datetime64[us] (1 null) | " +
			"1.5, 'x', 2024-01-01 00:00:00 | 2.5, nan, NaT>",
	} {
		if values[name] != want {
			t.Errorf("recorded %s: got %s, want %s", name, values[name], want)
		}
		if got := d.command(t, "evaluate", map[string]any{"expression": name}).get("result"); got != want {
			t.Errorf("live %s: got %s, want %s", name, got, want)
		}
	}
	parts := 0
	for _, name := range []string{"df", "series", "array", "flat", "index", "kind", "queue", "keys", "views", "names",
		"error", "point"} {
		if refs[name] == nil || refs[name] == 0.0 {
			t.Errorf("%s: got no reference, want one", name)
			continue
		}
		found, _ := d.command(t, "variables", map[string]any{"variablesReference": refs[name]}).get("variables").([]any)
		if len(found) == 0 {
			t.Errorf("%s: got no parts, want some", name)
		}
		for _, each := range found {
			part := each.(map[string]any)
			expression, _ := part["evaluateName"].(string)
			if expression == "" {
				t.Errorf("%s, part %v: got no evaluateName, want one", name, part["name"])
				continue
			}
			parts++
			a := d.command(t, "evaluate", map[string]any{"expression": expression})
			result, _ := a.get("result").(string)
			text, _ := part["value"].(string)
			// The text of a part that is a table shows its values only.
			isTable := strings.HasPrefix(result, "<Series") || strings.HasPrefix(result, "<ndarray")
			if !isTable && result != text && !strings.Contains(result, "'"+text+"'") {
				t.Errorf("%s: got %s, want %s", expression, result, text)
			}
		}
	}
	if parts < 25 {
		t.Errorf("got %d parts, want at least 25", parts)
	}
	for filter, want := range map[string]string{"named": "amt,a b,3", "indexed": "p,q", "": "amt,a b,3,p,q"} {
		arguments := map[string]any{"variablesReference": refs["df"]}
		if filter != "" {
			arguments["filter"] = filter
		}
		list, _ := d.command(t, "variables", arguments).get("variables").([]any)
		var names []string
		for _, each := range list {
			names = append(names, each.(map[string]any)["name"].(string))
		}
		if got := strings.Join(names, ","); got != want {
			t.Errorf("parts of a DataFrame, filter %q: got %s, want %s", filter, got, want)
		}
	}
	d.command(t, "stepBack", nil)
	got := d.command(t, "evaluate", map[string]any{"expression": "mean > 1.5 and mean + 1 == 3"})
	if got.get("result") != "True" {
		t.Errorf("a past numpy number: got %s, want True", got.text)
	}
	_, refs = d.variables(t, "Globals")
	list, _ := d.command(t, "variables", map[string]any{"variablesReference": refs["df"]}).get("variables").([]any)
	if len(list) != 5 || list[4].(map[string]any)["value"] != "{'amt': 2.5, 'a b': nan, 3: NaT}" {
		t.Errorf("a past DataFrame: got %v, want 3 columns and 2 rows", list)
	}
}
