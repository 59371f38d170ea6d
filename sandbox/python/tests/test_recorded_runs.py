"""Recorded runs of a session. They are recorded completely, and have the same results as other runs."""

import signal
import threading
import time

import pytest
import recording


def watched(run, code):
    outcome = run(code, watch=True)
    return outcome, recording.Reader(run.channel.recorded)


def lines(reader):
    return [line for _, line in reader.steps]


def test_each_line_of_the_submitted_code_is_a_step(run):
    run("def old():\n    return 1")
    out, reader = watched(run, "import json\nx = old() + len(json.dumps([1]))\nfor i in range(2):\n    x += i\nx")
    assert (out.ok, lines(reader)) == (5, [1, 2, 3, 4, 3, 4, 3, 5])


def test_top_level_await(run):
    code = "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nx = await f(3)\ny = await asyncio.gather(f(1), f(2))\nx"
    out, reader = watched(run, code)
    assert out.ok == 3
    assert {1, 2, 3, 4, 5, 6, 7} == set(lines(reader))


def test_unwatched_run_records_nothing(run):
    run("x = 1")
    assert run.channel.recorded == b""


def test_earlier_variables_are_recorded_and_helpers_are_not(run):
    run("old = 7")
    _, reader = watched(run, "new = db_query")
    assert "global old = 7" in reader.text[: reader.text.index("line 1")]
    assert not any(text.startswith(("global db_query", "global context")) for text in reader.text)


LOOPS = {
    "a tight loop": "n = 0\nring()\nwhile True: n += 1",
    "calls": "def f(n):\n    return [n]\nring()\nwhile True: f(1)",
    "a library": "import pandas as pd\nring()\nwhile True: pd.DataFrame({'a': [1, 2]}).sum()",
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("attempt", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 10))])
def test_interrupt_ends_a_recorded_run_and_leaves_whole_records(run, name, attempt):
    """An interrupt arrives mostly in a hook, where it must wait."""

    def ring():
        threading.Timer(0.02 + attempt / 1000, _kill).start()

    run.session._names["ring"] = ring
    signal.signal(signal.SIGINT, run.channel.on_interrupt)
    began = time.monotonic()
    out, reader = watched(run, LOOPS[name])
    assert (out.interrupt, out.exception["type"]) == (True, "KeyboardInterrupt")
    assert time.monotonic() - began < 60
    assert any("raise KeyboardInterrupt" in text for text in reader.text) or any(
        "interrupted" in why for _, why in reader.lost
    )
    assert run("1 + 1").ok == 2


def _kill():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


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
def test_recorder_does_not_change_the_program(name, run):
    plain, traced = type(run)()(SAME[name]), type(run)()(SAME[name], watch=True)
    del plain["compile_ms"], traced["compile_ms"]
    assert plain == traced


def test_a_frame_of_a_query_is_recorded(run):
    run.channel.answers(i=("int", [1, 2]), f=("float", [1.5, None]))
    _, reader = watched(run, "frame = db_frame('q', {})\nn = len(frame)")
    assert any("<DataFrame 2x2: i int64, f float64 (1 null) | 1, 1.5 | 2, nan>" in text for text in reader.text)


def test_a_recording_begins_with_the_statements(run):
    _, reader = watched(run, "x = 1\ny = x + 1")
    assert [b'"reads":["x"]' in each for each in reader.statements[:-1]] == [False, True]
    assert reader.statements[-1] == b'{"kind":"lines","ranges":[[1,2]]}'
