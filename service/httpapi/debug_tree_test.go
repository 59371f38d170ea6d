package httpapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const manyValuesProgram = `import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, uuid
import numpy as np
import pandas as pd
@dataclasses.dataclass
class Point:
    x: int
    more: object = None
class Slots:
    __slots__ = ("one", "two")
class Color(enum.Enum):
    RED = 1
Pair = collections.namedtuple("Pair", "left right")
point = Point(1, Point(2, {"deep": [3]}))
setattr(point, "odd name", 4)
setattr(point, "class", 5)
slots = Slots()
slots.one = [1]
keys = {"plain": 1, "it's": 2, 'a"b': 3, "line\nbreak": 4, "back\\slash": 5, "ü\u2028": 6, "": 7, 8: 9, -1: 10,
        1.5: 11, (1, 2): 12, None: 13, True: 14, b"b\x00": 15, Color.RED: 16, "]": 17, "nested": {"a'b": [18]},
        10 ** 30: 19, frozenset([1]): 20, float("inf"): 21, "\ud800": 22, "\x00": 23}
views = [keys.keys(), keys.values(), keys.items()]
key_view, value_view, item_view = keys.keys(), {"a": [1]}.values(), {"a": [1], "b": 2}.items()
items = [1, "two", 3.0, None, True, b"six", [7], (8,), {9}, frozenset({10}), 1 + 2j, ..., -0.0, 10 ** 40]
queue = collections.deque([1, [2]])
counter, ordered = collections.Counter("aab"), collections.OrderedDict(a=[1])
default = collections.defaultdict(list, {"k": [1]})
pair = Pair([1], "r")
frame = pd.DataFrame({"amt": [1.5, None], "city": ["x", "y"], 3: [4, 5], "a'b": [6, 7]}, index=["r1", "r2"])
series = pd.Series([1.5, 2.5], index=["a", "b"], name="s")
stamps = pd.Series(pd.to_datetime(["2024-01-01", None]))
index, array, matrix = pd.Index(["p", "q"]), np.array([1, 2, 3]), np.array([[1, 2], [3, 4]])
scalars = [np.float64(2.5), np.int64(3), pd.Timestamp("2024-01-01"), pd.NaT, decimal.Decimal("1.10"), uuid.UUID(int=1),
           fractions.Fraction(1, 3), pathlib.PurePosixPath("/a"), datetime.date(2024, 1, 1), range(3), slice(1, 2)]
error = ValueError("bad", [1])
raw = bytearray(b"abc")
cycle = [1]
cycle.append(cycle)
def inside(local):
    nested = {"n": [local]}
    return nested
done = inside([1])
`

// isShownOtherwise matches variables that a recording shows in other words than Python: the parts of tables, whose rows
// are shown by their cells and whose cells as plain numbers, cycles, and a namedtuple.
var isShownOtherwise = regexp.MustCompile(`^Globals / ((frame|series|stamps|index|array|matrix|cycle)\b|pair$)`)

// beginning returns the part of a value that both previews have. They are cut at different lengths.
func beginning(value string) string {
	value = strings.ReplaceAll(value, "complex(1.0, 2.0)", "(1+2j)")
	return value[:min(len(value), 100)]
}

// treeWalk compares each variable below a reference with the value of its evaluateName.
type treeWalk struct {
	*testing.T
	debugClient
	frame    any
	compared int
	unnamed  []string // variables without an evaluateName
}

func (w *treeWalk) visit(reference any, path string, depth int) {
	page := w.command(w.T, "variables", map[string]any{"variablesReference": reference})
	for _, each := range page.get("variables").([]any) {
		v := each.(map[string]any)
		name, _ := v["evaluateName"].(string)
		at := path + " / " + v["name"].(string)
		if name == "" {
			w.unnamed = append(w.unnamed, at)
			continue
		}
		a := w.do(w.T, "POST", "/debug/sessions/"+w.session+"/evaluate",
			map[string]any{"expression": name, "frameId": w.frame, "context": "watch"})
		want, _ := v["value"].(string)
		got, _ := a.get("result").(string)
		if a.status != 200 || !isShownOtherwise.MatchString(at) &&
			(a.get("type") != v["type"] || beginning(got) != beginning(want)) {
			w.Errorf("%s: %s evaluates to %v %.200q, want %v %.200q: %.300s", at, name, a.get("type"), got, v["type"],
				want, a.text)
		}
		w.compared++
		if child, _ := v["variablesReference"].(float64); child > 0 && depth < 4 {
			w.visit(child, at, depth+1)
		}
	}
}

// Each variable that is shown has an expression that evaluates to it.
func TestEvaluateNameLeadsToTheVariable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": manyValuesProgram, "breakpoints": []any{
		strings.Count(manyValuesProgram, "\n") - 1}}, nil)
	if a.get("where.state") != "stopped" {
		t.Fatalf("got %s, want a stop", a.text)
	}
	stack := d.command(t, "stackTrace", map[string]any{"threadId": 1})
	w := &treeWalk{T: t, debugClient: d, frame: stack.get("stackFrames").([]any)[0].(map[string]any)["id"]}
	for _, scope := range d.command(t, "scopes", map[string]any{"frameId": w.frame}).get("scopes").([]any) {
		scope := scope.(map[string]any)
		w.visit(scope["variablesReference"], fmt.Sprint(scope["name"]), 0)
	}
	if w.compared < 200 || len(w.unnamed) > 0 {
		t.Errorf("got %d variables, and %q without a name; want 200, and none without", w.compared, w.unnamed)
	}
}
