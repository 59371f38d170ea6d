package httpapi_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// evidentScore is the score from which on a finding accuses a step.
const evidentScore = 70

const minRightAnalyses = 20

// Correct programs such as people often write get no finding that accuses a step. The head of each program in
// testdata/right has the name to ask for.
func TestWhyAccusesNoCorrectAnalysis(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/right/*.py")
	if err != nil || len(files) < minRightAnalyses {
		t.Fatalf("got %d programs, %v, want at least %d", len(files), err, minRightAnalyses)
	}
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		y := c.why(t, c.recorded(t, id, string(code)), "name="+headField.FindStringSubmatch(string(code))[2])
		if len(y.Steps) == 0 || strings.Contains(y.Text, "Check first") {
			t.Errorf("%s: got %d steps, want some, and no accusation:\n%s", file, len(y.Steps), y.Text)
		}
		for _, f := range y.Findings {
			if f.Score >= evidentScore {
				t.Errorf("%s: got %s in line %d with score %d, want less than %d: %s", file, f.Kind, f.Line, f.Score,
					evidentScore, f.Text)
			}
		}
	}
}

// borders are pairs of programs of x that differ in whether the values of the run show an effect. Facts that correct
// code often has, too, such as missing values, are not accusations: least is the score of the finding about the wrong
// program, or 0 for evidentScore.
var borders = []struct {
	kind, wrong, right string
	least              int
}{
	{"aliasing", "a = [1, 2]\nb = a\nb.append(3)\nx = sum(a)",
		"rows = [{'n': 1}, {'n': 2}]\nfor row in rows:\n    row['n'] += 1\nx = [row['n'] for row in rows]", 0},
	{"aliasing", "row = {}\nx = []\nfor n in [1, 2]:\n    x.append(row)\nrow['n'] = 3",
		"row = {}\nx = [row]\nrow['n'] = 3", 0},
	{"aliasing", "x = [1, 2]\nlast = x\nlast.append(3)",
		"x = {'n': 0, 'next': {'n': 0, 'next': None}}\nnode = x\nwhile node:\n    node['n'] = 1\n    node =" +
			" node['next']", 0},
	{"handled_exception", "x = 0\nfor s in ['1', '1,200']:\n    try:\n        x += float(s)\n    except ValueError:\n" +
		"        pass",
		"x = 0\nfor s in ['1', 'n/a']:\n    try:\n        x += float(s)\n    except ValueError:\n        pass", 0},
	{"handled_exception", "x = 0\nfor k in 'ab':\n    try:\n        x += {'a': 1}[k]\n    except:\n        pass",
		"x = 0\nfor k in 'ab':\n    try:\n        x += {'a': 1}[k]\n    except KeyError:\n        pass", 0},
	{"handled_exception", "x = 0\nfor k in 'ab':\n    try:\n        x += {'a': 1}[k]\n    except Exception:\n" +
		"        pass",
		"x = 0\nfor k in 'ab':\n    try:\n        x += {'a': 1}[k]\n    except Exception as e:\n        print(e)", 0},
	{"mutable_default", "def add(n, seen={}):\n    seen[n] = 1\n    return seen\nadd(1)\nx = len(add(2))",
		"def square(n, seen={}):\n    if n not in seen:\n        seen[n] = n * n\n    return seen[n]\nsquare(1)\n" +
			"x = square(2)", 0},
	{"default_item", "d = {'Bo': 2}\nx = 0\nfor k in ['Bo', 'bo ']:\n    x += d.get(k, 0)",
		"d = {'Bo': 2}\nx = 0\nfor k in ['Bo', 'Cy']:\n    x += d.get(k, 0)", 0},
	{"default_item", "d = {1: 2}\nx = 0\nfor k in ['1']:\n    x += d.get(k, 0)",
		"d = {1: 2}\nx = 0\nfor k in [3]:\n    x += d.get(k, 0)", 0},
	{"text order", "a = ['9', '10']\nx = max(a)", "a = ['2023', '2024']\nx = max(a)", 0},
	{"text order", frames + "x = t['text'].max()", frames + "x = t['day'].max()", 0},
	{"missing", frames + "t['price'] = pd.to_numeric(t['price'], errors='coerce')\nx = t['price'].sum()",
		frames + "t['age'] = pd.to_numeric(t['age'], errors='coerce')\nx = t['age'].sum()", 60},
	{"missing", frames + "t['n'] = t['k'].map({'a': 1})\nx = t['n'].sum()",
		frames + "t['n'] = t['k'].map({'a': 1})\nx = t.dropna(subset=['n'])['n'].sum()", 60},
	{"missing", frames + "t['n'] = t['k'].map({'a': 1})\nx = t['n'].sum()",
		frames + "t['n'] = t['v'].shift(1)\nx = t['n'].sum()", 60},
	{"multiplied", frames + "m = t.merge(u, on='k')\nx = m['v'].sum()",
		frames + "m = t.merge(u, on='k')\nx = m['w'].sum()", 60},
	{"multiplied", frames + "m = t.merge(u, on='k', how='left')\nx = m['v'].sum()",
		frames + "m = t.merge(u, on='k', how='left').fillna(0)\nx = m['w'].sum()", 60},
	{"query", "rows = db_query('SELECT id FROM users WHERE id < 0')\nx = rows[0] if rows else None",
		"rows = db_query('SELECT id FROM users WHERE id < 0')\nx = len(rows)", 0},
	{"earlier_execution", "for n in [1, 2]:\n    kept = kept + n\nx = kept", "x = kept + 1", 0},
}

const frames = "import pandas as pd\n" +
	"t = pd.DataFrame({'k': list('abc'), 'v': [1, 2, 3], 'text': ['9', '10', '8'], 'day': ['2024-01-09', " +
	"'2024-01-10', '2023-12-01'], 'year': ['2024', '2023', '2022'], 'price': ['1', '$2', '3'], " +
	"'age': ['4', 'n/a', '6']})\n" +
	"u = pd.DataFrame({'k': list('aabbc'), 'w': [5, 6, 7, 8, 9]})\n"

// A finding accuses a step if the values of the run show an effect, and not if only the code looks like a mistake.
func TestWhyAccusesOnEvidence(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for _, p := range borders {
		for i, code := range []string{p.wrong, p.right} {
			id, done := c.fresh(t)
			c.run(t, id, "kept = 7")
			y := c.why(t, c.recorded(t, id, code), "name=x")
			kinds, accuses := []string{}, false
			for _, f := range y.Findings {
				accuses = accuses || f.Score >= evidentScore
				if f.Score >= cmp.Or(p.least, evidentScore) {
					kinds = append(kinds, f.Kind)
				}
			}
			if isWrong := i == 0; isWrong && !slices.Contains(kinds, p.kind) || !isWrong && accuses {
				t.Errorf("%s\ngot findings %q, want %s: %v\n%s", code, kinds, p.kind, isWrong, y.Text)
			}
			done()
		}
	}
}
