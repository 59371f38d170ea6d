import pytest


def trace(run, code):
    outcome = run(code, watch=True)
    return outcome, run.channel.steps


def lines(steps):
    return [s["line_number"] for s in steps]


def test_each_line_that_ran(run):
    out, steps = trace(run, "x = 1\nfor i in range(2):\n    x += i\nif x > 9:\n    x = 0\ny = x")
    assert out.exception is None
    assert lines(steps) == [1, 2, 3, 2, 3, 2, 4, 6]
    assert [s["step"] for s in steps] == list(range(1, 9))
    first, last = steps[0], steps[-1]
    assert (first["line_code"], first["result"], first["state"]) == (
        "x = 1",
        {"status": "executed"},
        {"variables": {"x": "1"}, "changed": ["x"], "function": "<module>"},
    )
    assert last["state"]["variables"] == {"x": "2", "i": "1", "y": "2"}
    assert steps[2]["state"]["changed"] == []
    assert steps[4]["state"]["changed"] == ["x"]


def test_lines_of_functions_have_their_own_variables(run):
    _, steps = trace(run, "def add(a, b):\n    total = a + b\n    return total\nx = add(1, 2)")
    assert lines(steps) == [1, 4, 2, 3, 4]
    called, body, _, over = steps[1:]
    assert called["result"] == {"status": "executed", "during_call": True}
    assert (body["state"]["function"], body["state"]["variables"], body["state"]["changed"]) == (
        "add",
        {"a": "1", "b": "2", "total": "3"},
        ["total"],
    )
    assert (over["state"]["variables"], over["state"]["changed"]) == ({"x": "3"}, ["x"])


def test_the_last_expression_is_a_line(run):
    out, steps = trace(run, "x = 2\nx + 1")
    assert (out.ok, lines(steps)) == (3, [1, 2])


def test_top_level_await(run):
    code = (
        "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nx = await f(3)\ny = await asyncio.gather(f(1), f(2))\nx"
    )
    out, steps = trace(run, code)
    assert out.ok == 3
    assert {1, 2, 3, 4, 5, 6, 7} == set(lines(steps))
    assert steps[-1]["state"]["variables"] == {"x": "3", "y": "[1, 2]"}


def test_an_exception_is_on_its_line(run):
    out, steps = trace(run, "x = 1\nint('no')\ny = 2")
    assert out.failure.type == "ValueError"
    assert lines(steps) == [1, 2]
    assert steps[-1]["result"] == {"status": "exception", "error": "ValueError: invalid literal for int() with base 10: 'no'"}


def test_an_exception_in_a_function_is_seen_in_each_frame(run):
    _, steps = trace(run, "def f():\n    raise KeyError('k')\ntry:\n    f()\nexcept KeyError:\n    x = 1")
    failed = [(s["line_number"], s["state"]["function"]) for s in steps if s["result"]["status"] == "exception"]
    assert failed == [(2, "f"), (4, "<module>")]
    assert lines(steps)[-1] == 6


def test_iteration_that_ends_is_no_exception(run):
    _, steps = trace(
        run,
        "class It:\n    def __iter__(self): return self\n    def __next__(self): raise StopIteration\nfor x in It():\n    pass\ndef g():\n    yield 1\nz = list(g())",
    )
    assert [s for s in steps if s["result"]["status"] == "exception" and s["state"]["function"] != "__next__"] == []


def test_a_stop_iteration_that_is_an_error_is_one(run):
    out, steps = trace(run, "x = 1\nnext(iter([]))")
    assert out.failure.type == "StopIteration"
    assert steps[-1]["result"]["status"] == "exception"


def test_comprehensions_are_one_line(run):
    _, steps = trace(run, "x = sum(n for n in range(50))\ny = {k for k in range(3)}")
    assert set(lines(steps)) == {1, 2}


def test_lines_of_threads(run):
    _, steps = trace(
        run, "import threading\ndef work():\n    n = 1\n    return n\nt = threading.Thread(target=work)\nt.start()\nt.join()\nx = 1"
    )
    assert {3, 4, 8} <= set(lines(steps))


def test_only_the_submitted_code_is_traced(run):
    run("def old():\n    return 1")
    _, steps = trace(run, "import json\nx = old() + len(json.dumps([1]))")
    assert lines(steps) == [1, 2]


def test_not_watched_sends_nothing(run):
    run("x = 1")
    assert run.channel.steps == []


def test_nothing_is_traced_after_the_run(run):
    import sys
    import threading

    trace(run, "1 / 0")
    assert sys.gettrace() is None and threading.gettrace() is None


def test_helpers_modules_and_functions_are_not_variables(run):
    _, steps = trace(run, "import json\ndef f(): pass\nclass C: pass\nclass M(type): pass\nclass D(metaclass=M): pass\nx = 1")
    assert steps[-1]["state"]["variables"] == {"x": "1"}


def test_variables_of_earlier_runs_have_not_changed(run):
    run("old = 1")
    _, steps = trace(run, "new = 2")
    assert (steps[0]["state"]["variables"], steps[0]["state"]["changed"]) == ({"old": "1", "new": "2"}, ["new"])


def test_bounds(run):
    code = "big = list(range(10 ** 6))\ntext = '\\U0001f600' * 10 ** 6\nfor i in range(200): globals()['v' + str(i) * 99] = text\nx = 1"
    _, steps = trace(run, code)  # the channel checks the size of each
    assert len(steps[-1]["state"]["variables"]) == 50


def test_a_long_run_is_cut_and_says_so(run, monkeypatch):
    import tracer

    monkeypatch.setattr(tracer, "MAX_STEPS", 20)
    out, steps = trace(run, "for i in range(1000):\n    x = i\nx")
    assert (out.ok, len(steps), steps[-1]["result"]["status"]) == (999, 21, "lost")


def test_no_code_of_the_users_objects_runs(run):
    code = """
ran = []
class Loud:
    def __repr__(self): ran.append('repr')
    def __len__(self): ran.append('len')
    def __eq__(self, other): ran.append('eq')
    def __bool__(self): ran.append('bool')
    def __getattribute__(self, name): ran.append(name)
    __class__ = property(lambda self: ran.append('class'))
class Boom(Exception):
    def __str__(self): ran.append('str')
    args = property(lambda self: ran.append('args'))
def f(loud):
    held = [loud]
    return held
x = f(Loud())
try:
    raise Boom
except Boom:
    pass
ran
"""
    out, steps = trace(run, code)
    assert out.ok == []
    assert "[<Loud>]" in {s["state"]["variables"].get("held") for s in steps}


SAME = {
    "closure": "def make():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc\ni = make()\n[i() for _ in range(5)]",
    "threads and a closure": "import threading\ndef run():\n    n = 0\n    lock = threading.Lock()\n    def work():\n        nonlocal n\n        for _ in range(100):\n            with lock:\n                n += 1\n"
    "    ts = [threading.Thread(target=work) for _ in range(4)]\n    for t in ts: t.start()\n    for t in ts: t.join()\n    return n\nrun()",
    "generators": "def g():\n    x = yield 1\n    y = yield x\n    return y\na = g()\n[next(a), a.send(5), next(a, 'end')]",
    "super": "class A:\n    def f(self): return 1\nclass B(A):\n    def f(self):\n        x = super().f()\n        return x + 1\nB().f()",
    "del": "log = []\nclass D:\n    def __del__(self): log.append('gone')\ndef f():\n    d = D()\n    del d\n    log.append('after')\nf()\nlog",
    "class body": "class C:\n    x = 1\n    y = [x for _ in range(2)] if False else x\n    z = x + 1\n[C.x, C.y, C.z]",
    "recursion": "def f(n):\n    return 1 if n == 0 else n * f(n - 1)\nf(50)",
    "recursion error": "def f():\n    return f()\ntry:\n    f()\nexcept RecursionError:\n    x = 'deep'\nx",
    "contexts": "import contextlib\n@contextlib.contextmanager\ndef c():\n    yield 3\nwith c() as v:\n    w = v + 1\nw",
    "exceptions": "def f():\n    try:\n        return 1 / 0\n    except ZeroDivisionError as e:\n        return str(e)\n    finally:\n        pass\nf()",
    "async": "import asyncio\nout = []\nasync def w(n):\n    for i in range(2):\n        out.append((n, i))\n        await asyncio.sleep(0)\nawait asyncio.gather(w('a'), w('b'))\nout",
    "match": "def f(x):\n    match x:\n        case [a, *rest]: return rest\n        case {'k': v}: return v\nf([1, 2]), f({'k': 3})",
    "pandas": "import pandas as pd\ndf = pd.DataFrame({'g': ['a', 'b', 'a'], 'v': [1, 2, 3]})\ndef double(x):\n    y = x * 2\n    return y\ndf['w'] = df['v'].apply(double)\ndf.groupby('g')['w'].sum().to_dict()",
    "exit": "x = 1\nexit(0)",
    "syntax error": "x = (",
}


@pytest.mark.parametrize("name", SAME)
def test_the_program_is_the_same_with_and_without(name, run):
    plain, watched = type(run)()(SAME[name]), type(run)()(SAME[name], watch=True)
    assert plain == watched
