"""The rows and cells behind a value."""

import ast
import builtins
import json

import cell_things
import cell_trace
import pytest
from cell_programs import HARD, HEAD, PROGRAMS, SALES
from tracing import cell, traced


def programs(*names):
    return [p for p in PROGRAMS if p[0] in names]


@pytest.mark.parametrize("name, program, path, value, lines, ends", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_cell_has_the_rows_behind_it(name, program, path, value, lines, ends):
    names = {"__name__": "program", "old": [5]}
    found = cell(HEAD + program, path, names)
    assert found["value"] == value, found
    assert ends in found["ends"] and bool(ends) == bool(found["ends"]), found
    for line, (rows, values) in lines.items():
        steps = [step for step in found["from"] if step["line"] == line]
        assert steps, (line, found)
        assert any(step["rows"] == rows for step in steps) or not rows, (line, steps)
        shown = {c["value"] for step in steps for c in step["cells"]}
        assert set(values) <= shown, (line, shown, steps)


@pytest.mark.parametrize("name, program, path, value, words, wrong", HARD, ids=[p[0] for p in HARD])
def test_answer_is_right_or_ends(name, program, path, value, words, wrong):
    found = cell(HEAD + program, path)
    assert found["value"] == value and words in str(found), found
    assert wrong not in str(found["from"]), found


@pytest.mark.parametrize("program", [p[1] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_trace_changes_no_value(program):
    plain = {"__name__": "program", "old": [5]}
    exec(HEAD + program, plain)
    _, names = traced(HEAD + program, "x[0]", {"__name__": "program", "old": [5]})
    kept = [n for n, v in plain.items() if not callable(v) and not n.startswith("__") and n not in ("p", "g", "random")]
    for name in kept:
        assert repr(names[name]) == repr(plain[name]), name
    assert plain.keys() == names.keys()


def test_trace_ends_with_the_run():
    traced("x = [1]\n", "x[0]")
    hook = getattr(builtins, cell_trace.HOOK)
    assert hook(1, "value") == "value" and hook.__name__ == "_no_hook"


def test_code_of_the_program_does_not_run():
    source = """
log = []
class Value:
    def __init__(self, n):
        self.n = n
    def __eq__(self, other):
        log.append("eq")
        return True
    def __hash__(self):
        log.append("hash")
        return 1
    def __repr__(self):
        log.append("repr")
        return "value"
    def __getattr__(self, name):
        log.append(name)
        raise AttributeError(name)
    def __deepcopy__(self, memo):
        log.append("copy")
    __copy__ = __deepcopy__
xs = [Value(1), Value(2)]
t = pd.DataFrame({"k": [1, 2], "v": xs})
u = t[t["k"] > 1]
d = {"a": xs[0]}
n = [u["k"].sum()]
w = t.drop_duplicates("v")
m = t.merge(t, on="v")
before = len(log)
"""
    for path in ("n[0]", "u.iloc[0, 0]", "u.iloc[0, 1]", "xs[1]", "xs[1].n", "d['a']", "d['a'].m", "t.loc[1, 'v']",
                 "w.iloc[0, 0]", "m.iloc[0, 0]"):  # fmt: skip
        found, names = traced(HEAD + source, path)
        assert names["log"][names["before"] :] == [], path
        json.dumps(found)
    plain = {"__name__": "program"}
    exec(HEAD + source, plain)
    assert plain["log"] == names["log"]


def test_objects_live_as_long_as_without_a_trace():
    source = """
import weakref
class Value: pass
def make():
    value = Value()
    return weakref.ref(value), [value]
ref, held = make()
alive = [ref() is not None]
del held
alive.append(ref() is not None)
"""
    names = traced(source, "alive[0]")[1]
    assert names["alive"] == [True, False]


def test_answer_is_bounded():
    source = HEAD + "t = pd.DataFrame({'k': [0] * 5000, 'v': range(5000)})\ng = t.groupby('k')['v'].sum()\n"
    found = cell(source, "g[0]")
    step = found["from"][0]
    assert step["rows"] == list(range(20)) and len(step["cells"]) == 20
    assert (step["total_rows"], step["of"]) == (5000, 5000) and "5000 rows are not followed" in found["ends"]
    steps = "".join(f"x{n} = x{n - 1} + 1\n" for n in range(1, 300))
    found = cell("x0 = 1\n" + steps + "y = [x299]\n", "y[0]")
    assert len(found["from"]) == 40 and "too many" in found["ends"]
    assert len(json.dumps(found)) < 1 << 19


def test_trace_of_many_events_says_so():
    source = "n = 0\n" + "for k in range(9_000):\n    a = k + 1\n    b = a + 1\n    n += b\n" * 3 + "y = [n]\n"
    assert "more than 120000 expressions" in cell(source, "y[0]")["ends"]


def test_large_copies_are_not_kept(monkeypatch):
    monkeypatch.setattr(cell_things, "MAX_KEPT", 100_000)
    program = "a = np.arange(50_000)\nb = a * 2\nc = b + 1\n"
    found = cell(HEAD + program, "c[7]")
    assert found["value"] == "15" and "too large to keep" in found["ends"]


def test_failure_of_a_look_ends_the_answer(monkeypatch):
    def fail(*args):
        raise ValueError

    monkeypatch.setattr(cell_things.Things, "made", fail)
    found, names = traced("x = [1, 2]\ny = [x[1]]\n", "y[0]")
    assert found["ends"] == "not followed: a value could not be read (ValueError)" and names["y"] == [2]


def test_session_returns_the_cell(run):
    job = {"execution_id": "e1", "code": "xs = [3, 4]\nd = {'s': sum(xs)}\nd", "context": {}, "facts": [[1, 3]]}
    found = run.session.run({**job, "cell": "d['s']"})["cell"]
    assert found["value"] == "7" and found["from"][0]["rows"] == [0, 1]
    assert "cell" not in run.session.run({**job, "execution_id": "e2"})


def test_lines_of_tracebacks_are_those_of_the_code():
    source = SALES + "for n in range(3):\n    x = [\n        1 / (n - 1)\n    ]\n"
    trace = cell_trace.Trace(HEAD + source, "x[0]")
    code = compile(trace.instrument(ast.parse(HEAD + source)), "program", "exec")
    with pytest.raises(ZeroDivisionError) as raised:
        exec(code, {"__name__": "program"})
    trace.end({})
    assert raised.traceback[-1].lineno + 1 == 11
