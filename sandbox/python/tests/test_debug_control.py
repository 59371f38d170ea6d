"""Stops of a debugged program, and the commands while it is stopped."""

import sys

import protocol
import pytest
import recorder_factory
import recording

GO = {"do": "resume", "mode": "continue"}


@pytest.fixture(autouse=True, params=["extension", "python"] if recorder_factory._fast else ["python"])
def recorder(request, monkeypatch):
    """Runs each test with both recorders."""
    if request.param == "python":
        monkeypatch.setattr(recorder_factory, "_fast", None)
    return request.param


def stopped(run, code, stops, script=None):
    """Runs code and returns the outcome and (reason, line) of each stop.

    script(stop, count) is a generator for each stop: it yields commands and is sent their answers.
    """
    seen = []

    def play(stop):
        steps = recording.Reader(run.channel.recorded).steps
        seen.append((stop["reason"], steps[stop["step"] - 1][1]))
        yield from script(stop, len(seen)) if script else [GO]

    run.channel.script = play
    return run(code, watch=True, stops=stops), seen


LOOP = "def f(n):\n    x = n * 2\n    return x\nfor i in range(6):\n    y = f(i)\nz = y"


def at(line, **more):
    return {"lines": [{"id": 7, "line": line, **more}]}


@pytest.mark.parametrize(
    "stops, want",
    [
        (at(2), [("breakpoint", 2)] * 6),
        (at(2, condition="n == 3 or i > 4"), [("breakpoint", 2)] * 2),
        (at(2, hits="2"), [("breakpoint", 2)]),
        (at(2, hits=">= 5"), [("breakpoint", 2)] * 2),
        (at(2, hits="%3"), [("breakpoint", 2)] * 2),
        (at(2, log="n is {n} and {n +}"), []),
        (at(6), [("breakpoint", 6)]),
        (at(9), [("breakpoint", 6)]),
        (at(2, condition="n > 2", hits="2"), [("breakpoint", 2)]),
        (at(2, condition="n > 2", hits="4"), []),
        ({"entry": True}, [("entry", 1)]),
        ({"data": [{"id": 1, "frame": 0, "name": "y"}]}, [("data breakpoint", 4)] * 6),
    ],
)
def test_program_stops_at_breakpoints(run, stops, want):
    out, seen = stopped(run, LOOP, stops)
    assert (out.exception, seen) == (None, want)


@pytest.mark.parametrize("call", ["breakpoint()", "breakpoint(1, header='x')", "import sys; sys.breakpointhook()"])
def test_breakpoint_stops_at_the_next_line(run, call):
    code = f"def f(n):\n    if n == 2:\n        {call}\n    return n\nfor i in range(4):\n    y = f(i)\ny"
    out, seen = stopped(run, code, {"entry": False})
    assert seen == [("breakpoint", 4)] and out.ok == 3


def test_breakpoint_without_a_debugger_goes_on(run):
    for options in ({}, {"watch": True}):
        out = run("import io, sys\nsys.stderr = io.StringIO()\nbreakpoint()\nsys.stderr.getvalue()", **options)
        assert "debug session" in out.ok


def test_log_point_logs_its_message(run):
    stopped(run, LOOP, at(2, log="n is {n} and {n +}", hits="2"))
    assert run.channel.told == [(protocol.LOG, {"text": "n is 1 and <SyntaxError>", "line": 2})]


def test_failing_condition_stops_with_a_reason(run):
    for condition in ("nothing > 1", "1 +", "1 / 0"):
        _, seen = stopped(run, "x = 1\ny = 2", at(2, condition=condition))
        assert seen == [("breakpoint", 2)]
        assert "condition" in run.channel.told[-1][1]["text"]


@pytest.mark.parametrize(
    "mode, want",
    [
        ("stepIn", [("breakpoint", 5), ("step", 2), ("step", 3), ("step", 4), ("step", 5)]),
        ("next", [("breakpoint", 5), ("step", 4), ("step", 5), ("step", 4), ("step", 5)]),
        ("stepOut", [("breakpoint", 5)]),
    ],
)
def test_stepping(run, mode, want):
    def script(stop, n):
        yield {"do": "resume", "mode": mode, **({"stops": {}} if n == 1 else {})}

    _, seen = stopped(run, LOOP, at(5), script)
    assert seen[:5] == want


@pytest.mark.parametrize("mode, first, want", [("next", 4, 5), ("stepIn", 2, 5), ("stepOut", 2, 5), ("next", 2, 5)])
def test_the_last_expression_is_stepped_to_like_a_statement(run, mode, first, want):
    def script(stop, n):
        yield {"do": "resume", "mode": mode} if n == 1 else GO

    out, seen = stopped(
        run, "def f():\n    return 1\na = 2\nb = f()\na + b", {"lines": [{"id": 1, "line": first, "hits": "1"}]}, script
    )
    assert (out.ok, [line for _, line in seen]) == (3, [first, want])


def test_step_out_comes_to_the_caller(run):
    def script(stop, n):
        yield {"do": "resume", "mode": "stepOut", "stops": {}} if n == 1 else GO

    assert stopped(run, LOOP, at(3), script)[1] == [("breakpoint", 3), ("step", 4)]


def test_step_over_await_stays_in_its_task(run):
    code = "import asyncio\nasync def w(n):\n    a = n\n    await asyncio.sleep(0)\n    b = n\n    return b\nawait asyncio.gather(w(1), w(2))"
    out, seen = stopped(run, code, at(3, condition="n == 1"), lambda stop, n: [{"do": "resume", "mode": "next"}])
    assert (out.ok, seen[:4]) == ([1, 2], [("breakpoint", 3), ("step", 4), ("step", 5), ("step", 6)])


RAISES = "def f():\n    raise ValueError('v')\ntry:\n    f()\nexcept ValueError:\n    x = 1\nwith open('/dev/null') as file:\n    int('no')"


@pytest.mark.parametrize(
    "filters, want", [(["raised"], [("exception", 2), ("exception", 8)]), (["uncaught"], [("exception", 8)]), ([], [])]
)
def test_exceptions(run, filters, want):
    out, seen = stopped(run, RAISES, {"exceptions": filters})
    assert (out.failure.type, seen) == ("ValueError", want)


def test_commands_while_the_program_is_stopped(run):
    answers = []

    def script(stop, n):
        frame = 2
        for command in (
            {"do": "evaluate", "expression": "n + 1", "frame": frame},
            {"do": "evaluate", "expression": "[n, i]", "frame": frame},
            {"do": "evaluate", "expression": "i * 10", "frame": 1},
            {"do": "evaluate", "expression": "1 / 0", "frame": frame},
            {"do": "evaluate", "expression": "import json", "frame": 0},
            {"do": "evaluate", "expression": "made = 5", "frame": 0, "statements": True},
            {"do": "set", "name": "n", "expression": "n + 100", "frame": frame},
            {"do": "set", "name": "i", "expression": "9", "frame": 0},
            {"do": "set", "name": "no such", "expression": "9", "frame": 0},
            {"do": "page", "expression": "big", "start": 500000, "count": 2, "frame": 0},
            {"do": "page", "expression": "table", "start": 1, "count": 1, "frame": 0},
            {"do": "page", "expression": "pairs", "start": 1, "count": 5, "frame": 0},
            {"do": "complete", "text": "x = big.app", "frame": frame},
            {"do": "complete", "text": "mad", "frame": frame},
            {"do": "complete", "text": "no_such.", "frame": frame},
            {"do": "complete", "text": "if.", "frame": frame},
            {"do": "evaluate", "expression": "n", "frame": 77},
        ):
            answers.append((yield command))
        yield {**GO, "stops": {}}

    code = "import pandas\nbig = list(range(10 ** 6))\npairs = {'a': 1, 'b': [2]}\ntable = pandas.DataFrame({'u': [1, 2], 'v': ['x', 'y']})\n"
    out, seen = stopped(run, code + LOOP, at(6), script)
    assert out.exception is None and seen == [("breakpoint", 6)]
    assert [a.get("value") for a in answers[:3]] == ["1", "[0, 0]", "0"]
    assert answers[3]["error"].startswith("ZeroDivisionError") and "SyntaxError" in answers[4]["error"]
    assert answers[5] == {"value": "", "type": ""} and run("made").ok == 5
    assert answers[6]["value"] == "100" and "error" in answers[8]
    assert answers[9] == {
        "items": [
            {"name": f"[{n}]", "value": str(n), "type": "int", "path": {"prefix": "", "suffix": f"[{n}]"}}
            for n in (500000, 500001)
        ],
        "length": 10**6,
    }
    assert answers[10]["items"][0]["value"] == "{'u': 2, 'v': 'y'}"
    ((name, item),) = ((item.pop("name"), item) for item in answers[11]["items"])
    assert name == "'b'" and item["path"] == {"prefix": "", "suffix": "['b']"}
    assert (item["value"], item["type"], item["length"]) == ("[2]", "list", 1)
    assert "append" in answers[12]["names"] and "made" in answers[13]["names"]
    assert answers[14]["names"] == answers[15]["names"] == []
    assert answers[16] == {"error": "this frame has ended"}
    text = recording.Reader(run.channel.recorded).text
    assert "set n = 100" in text and "set x = 200" in text  # the program uses what was set


def test_columns_with_one_name_have_their_own_values(run):
    answers = []

    def script(stop, n):
        for start in (0, 1):
            answers.append(
                (yield {"do": "page", "expression": "t", "start": start, "count": 5, "columns": 4, "frame": 0})
            )
        yield {**GO, "stops": {}}

    code = "import pandas\nt = pandas.DataFrame([[10, 20, 30, 40]], columns=['same', 'same', 'same', 'other'])\nz = 1"
    out, _ = stopped(run, code, at(3), script)
    assert out.exception is None
    *columns, row = answers[0]["items"]
    assert [(c["name"], c["path"]["suffix"]) for c in columns] == [
        ("same", ".iloc[:, 0]"),
        ("same_2", ".iloc[:, 1]"),
        ("same_3", ".iloc[:, 2]"),
        ("other", "['other']"),
    ]
    assert [run(f"int(t{c['path']['suffix']}[0])").ok for c in columns] == [10, 20, 30, 40]
    assert row["value"] == "{'same': 10, 'same_2': 20, 'same_3': 30, 'other': 40}"
    assert answers[1]["items"] == answers[0]["items"][1:]


def test_other_threads_wait_while_one_is_stopped(run):
    code = "import threading\nn = 0\ndef work():\n    global n\n    for _ in range(50):\n        n += 1\nt = [threading.Thread(target=work) for _ in range(2)]\n[x.start() for x in t]\n[x.join() for x in t]\nn"

    def script(stop, count):
        before = yield {"do": "evaluate", "expression": "n", "frame": 0}
        after = yield {"do": "evaluate", "expression": "(__import__('time').sleep(0.02), n)[1]", "frame": 0}
        assert before == after
        yield {**GO, **({"stops": {}} if count == 3 else {})}

    out, seen = stopped(run, code, at(6), script)
    assert (out.ok, len(seen)) == (100, 3)


def test_stop_request_stops_at_the_next_line(run):
    code = "ring()\nx = 1\ny = 2"
    run.session._names["ring"] = lambda: run.channel.on_attention()
    assert stopped(run, code, {})[1] == [("attention", 2)]


def test_a_closure_is_evaluated_and_its_program_stays_right(run):
    code = "def make():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n        return n\n    return inc\ninc = make()\n[inc() for _ in range(5)]"
    out, seen = stopped(run, code, at(6, condition="n % 2 == 0"))
    assert (out.ok, len(seen)) == ([1, 2, 3, 4, 5], 2)


def test_program_uses_assigned_variables(run, recorder):
    answers = []

    def script(stop, n):
        for command in (
            {"do": "evaluate", "expression": "b = 20\nnew = 5", "frame": 4, "statements": True},
            {"do": "set", "name": "shared", "expression": "1000", "frame": 4},
            {"do": "set", "name": "a", "expression": "100", "frame": 3},
            {"do": "evaluate", "expression": "b + shared", "frame": 4},
        ):
            answers.append((yield command))
        yield GO

    code = "def outer(a):\n    def inner(b):\n        c = b\n        return c + shared\n    shared = 1\n    d = inner(a)\n    return d + a\nouter(1)"
    out, seen = stopped(run, code, at(3), script)
    assert (seen, answers[3]["value"]) == ([("breakpoint", 3)], "1020")
    if recorder == "extension" or sys.version_info >= (3, 13):  # 3.13 writes to the variables of every frame
        assert (answers[2]["value"], out.ok) == ("100", 1120)
    else:
        assert "innermost" in answers[2]["error"] and out.ok == 1021


def test_changes_by_commands_are_recorded_between_events(run, recorder):
    def script(stop, n):
        for number, command in enumerate(
            (
                {"do": "set", "name": "b", "expression": "20", "frame": 3},
                {"do": "evaluate", "expression": "xs.append(3)", "frame": 0},
                {"do": "evaluate", "expression": "total = 7; 1 / 0", "frame": 0, "statements": True},
                {"do": "set", "name": "b", "expression": "nothing", "frame": 3},
            ),
            1,
        ):
            yield {**command, "edit": number}
        yield GO

    code = "xs = [1]\ntotal = 0\ndef outer(a):\n    def inner(b):\n        c = b\n        return c\n"
    code += "    return inner(a)\nd = outer(1)"
    out, seen = stopped(run, code, at(5), script)
    can_set = recorder == "extension" or sys.version_info[:2] != (3, 12)  # which writes nothing back
    b = 20 if can_set else 1
    assert (out.exception, seen, run("d").ok) == (None, [("breakpoint", 5)], b)
    text = [
        line
        for line in recording.Reader(run.channel.recorded).text
        if line.split()[0] in ("line", "event", "set", "global", "mutate", "frame")
    ]
    begin = text.index("event edit 1")
    assert text[begin - 1].startswith("line")
    (mutation,) = (line for line in text if line.startswith("mutate"))
    assert text[begin:][: 11 + can_set] == [
        "event edit 1",
        *(["set b = 20"] if can_set else []),
        "event edit 0",
        "event edit 2",
        mutation,
        "event edit 0",
        "event edit 3",
        "global total = 7",
        "event edit 0",
        "event edit 4",
        "event edit 0",
        f"set c = {b}",
    ]


def lines(code: str) -> int:
    """Returns the number of the line that has the comment "here"."""
    return next((n for n, line in enumerate(code.splitlines(), 1) if "# here" in line), 0)


HANDLED_BY_LIBRARIES = [
    "class T:\n    def __getitem__(self, i):\n        if i > 2: raise IndexError\n        return i\nlist(T())",
    "class C:\n    def __getattr__(self, n):\n        raise AttributeError(n)\ngetattr(C(), 'y', 3), hasattr(C(), 'z')",
    "import contextlib\nwith contextlib.suppress(ValueError):\n    int('a')",
    "def g():\n    try:\n        yield 1\n    finally:\n        x = 1\nnext(g())\nlist(g())\nnext(iter([]), None)",
    "import asyncio\nasync def f():\n    raise ValueError\nawait asyncio.gather(f(), return_exceptions=True)",
    "class D(dict):\n    def __missing__(self, k):\n        raise KeyError(k)\nD().get('a')\n'a' in D()",
    "from concurrent.futures import *\ndef f():\n    1 / 0\nwith ThreadPoolExecutor(1) as p:\n    p.submit(f).exception()",
    "class M:\n    def __enter__(self): pass\n    def __exit__(self, *a): return True\nwith M():\n    1 / 0",
]
HANDLED_BY_THE_PROGRAM = [
    "try:\n    int('a')\nexcept (KeyError, ValueError):\n    pass",
    "def f():\n    int('a')\ntry:\n    f()\nexcept ValueError:\n    pass",
    "try:\n    raise ExceptionGroup('g', [ValueError(), KeyError()])\nexcept* (ValueError, KeyError):\n    pass",
    "try:\n    try:\n        int('a')\n    except ValueError:\n        raise\nexcept Exception:\n    pass",
    "import sys\nsys.exit(0)",
    "import sys\nsys.exit()",
    "raise KeyboardInterrupt",
]
UNCAUGHT = [
    "try:\n    int('a')  # here\nexcept KeyError:\n    pass",
    "try:\n    int('a')  # here\nexcept ValueError:\n    raise",
    "def f():\n    int('a')  # here\ntry:\n    f()\nexcept KeyError:\n    pass\nfinally:\n    x = 1",
    "try:\n    raise ExceptionGroup('g', [ValueError(), KeyError()])  # here\nexcept* ValueError:\n    x = 1",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('v') from e  # here",
    "try:\n    int('a')  # here\nfinally:\n    try:\n        {}['k']\n    except KeyError:\n        x = 1",
    "import contextlib\nwith contextlib.suppress(KeyError):\n    int('a')  # here",
    "class C:\n    def __getattr__(self, n):\n        raise AttributeError(n)  # here\ngetattr(C(), 'y')",
    "class C:\n    def __getattr__(self, n):\n        raise ValueError(n)  # here\ngetattr(C(), 'y', 3)",
    "import asyncio\nasync def f():\n    raise ValueError  # here\nawait asyncio.gather(f())",
    "def g():\n    yield 1\n    raise ValueError  # here\nlist(g())",
    "import sys\nsys.exit(3)  # here",
    "import sys\nsys.exit('the message')  # here",
    "x = 1\nnext(iter([]))  # here",
    "x = 1\nassert x == 2  # here",
    "import threading\ndef f():\n    int('a')  # here\nt = threading.Thread(target=f)\nt.start()\nt.join()",
    "import json\njson.loads('{')  # here",
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("filters", [["uncaught"], ["raised", "uncaught"]])
@pytest.mark.parametrize("code", UNCAUGHT + HANDLED_BY_THE_PROGRAM + HANDLED_BY_LIBRARIES)
def test_uncaught_is_what_leaves_the_program(run, code, filters):
    _, seen = stopped(run, code, {"exceptions": filters})
    want = [("exception", lines(code))] if lines(code) else []
    if "raised" not in filters:
        assert seen == want
    else:  # it has stopped where the exception was raised, and does not stop again
        assert seen.count(("exception", lines(code))) == len(want)


def test_frames_of_an_uncaught_exception_can_be_read(run):
    answers = []

    def script(stop, n):
        for frame, text in ((2, "n * 10"), (1, "n + 5"), (2, "later"), (0, "total"), (77, "n")):
            answers.append((yield {"do": "evaluate", "expression": text, "frame": frame}))
        yield {"do": "resume", "mode": "next"}

    code = "total = 7\ndef f(n):\n    try:\n        return [][n]\n    finally:\n        later = 1\nx = f(4)"
    out, seen = stopped(run, code, {"exceptions": ["uncaught"]}, script)
    assert (out.failure.type, seen) == ("IndexError", [("exception", 4)])
    assert [a.get("value") for a in answers] == ["40", None, "1", "7", None]
    assert answers[4] == {"error": "this frame has ended"}


@pytest.mark.parametrize(
    "code, want",
    [
        ("x = 1\nbreakpoint()", 2),
        ("x = 1\ndef f():\n    breakpoint()\nf()", 3),
        ("x = 1\ndef f():\n    breakpoint()\nf()\ny = 1", 5),
        ("import asyncio\nawait asyncio.sleep(0)\nbreakpoint()", 3),
    ],
)
def test_breakpoint_in_the_last_line_stops_at_the_end(run, code, want):
    answers = []

    def script(stop, n):
        answers.append((yield {"do": "evaluate", "expression": "x", "frame": 1}))
        yield GO

    out, seen = stopped(run, code, {}, script)
    assert (out.exception, seen) == (None, [("breakpoint", want)])
    assert "x = 1" not in code or answers[0].get("value") == "1"


@pytest.mark.parametrize(
    "line",
    [
        "a = all(i == j for i, j in zip(z, z))",
        "a = list(i for i in z)",
        "a = [i for i in z]",
        "a = dict((i, j) for i in z for j in z)",
    ],
)
def test_next_passes_over_generator_expressions(run, line):
    def script(stop, n):
        yield {"do": "resume", "mode": "next" if n == 1 else "continue"}

    _, seen = stopped(run, f"z = [1, 2]\n{line}\ny = 1\n", at(2), script)
    assert seen == [("breakpoint", 2), ("step", 3)]


@pytest.mark.parametrize(
    "code, want",
    [
        ("z = [1, 2]\ng = (i for i in z)\na = list(g)", 2),  # run from another line
        ("z = [1, 2]\ndef f(): yield from z\na = list(f())", 2),
        ("z = [1, 2]\na = sorted(z, key=lambda i: -i)", 3),
    ],
)
def test_breakpoint_stops_in_functions_of_its_line(run, code, want):
    _, seen = stopped(run, code, at(2))
    assert len(seen) == want


def test_next_at_the_end_comes_to_the_last_expression(run):
    def script(stop, n):
        yield {"do": "resume", "mode": "next"}

    assert stopped(run, "x = 1\ny = sum(i for i in [1, 2])\nx + y", at(1), script)[1] == [
        ("breakpoint", 1),
        ("step", 2),
        ("step", 3),
    ]
