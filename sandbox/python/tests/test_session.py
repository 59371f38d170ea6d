import asyncio
import os
import re
import signal
import sys
import warnings

import pytest
import session


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("1 + 1", 2),
        ("x = 5", None),
        ("", None),
        ("# only a comment", None),
        ("'a docstring alone'", "a docstring alone"),
        ("__result__ = 7\n8", 7),
        ("__result__ = None\n8", None),
        ("__name__", "__main__"),
        ("import asyncio\nawait asyncio.sleep(0, 'slept')", "slept"),
        ("import asyncio\nx = await asyncio.sleep(0, 3)\nx + 1", 4),
        ("async def g():\n    yield 1\n    yield 2\n[x async for x in g()]", [1, 2]),
        ("import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 'ran'\nasyncio.run(main())", "ran"),
        (
            "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nawait f(1) + asyncio.run(f(2)) + await f(4)",
            7,
        ),
        ("from asyncio import run\nasync def f():\n    return 3\nrun(f())", 3),
        (
            "import asyncio\nasync def f():\n    return asyncio.run(g())\nasync def g():\n    return 4\nasyncio.run(f())",
            4,
        ),
        ("if True:\n    9", None),
        ("datetime(2024, 1, 2).isoformat()", "2024-01-02T00:00:00"),
        ("(datetime(2024, 1, 2, tzinfo=timezone.utc) + timedelta(days=1)).day", 3),
        ("import datetime\ndatetime.date(2024, 1, 2)", "2024-01-02"),
        ("from __future__ import annotations\ndef f(x: Missing): return x\nf(2)", 2),
        ("x = 1; x", 1),
        ("def f():\n    return __result__\n__result__ = 3\nf()", 3),
    ],
)
def test_result_of_a_run(run, code, result):
    assert run(code).ok == result


@pytest.mark.parametrize(
    "code",
    [
        "*[1], 2",
        " 1",
        "1 +",
        "1 1",
        "yield 1",
        "a = 1",
        "(b := 2)",
        "1; 2",
        "(lambda: (yield)).__name__",
        "x\0y",
        "'\udc80'",
        "1 is 1",
        "1 / 0",
        "1 # one",
    ]
    + [
        "await 1",
        "print('\\d'); x = 1",
        "[x async for x in 5]",
        "compile('1', '', 'eval')",
        "(" * 300 + ")" * 300,
        "-" * 100_000 + "1",
        "1\r2",
        "0777",
        "f'{'",
    ],
)
def test_single_expression_equals_its_module_form(run, code):
    """A single expression is compiled without a tree."""
    told = []
    for source in (code, code + "\n"):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            made = run(source)
        of_syntax = [each for each in warned if each.category in (SyntaxWarning, DeprecationWarning)]
        result = re.sub(" at 0x[0-9a-f]+", "", str(made.result))  # of an object, the address
        told.append((result, str(made.exception).replace("<execution 2>", "<execution 1>"), len(of_syntax)))
    assert told[0] == told[1]


def test_names_functions_and_imports_stay(run):
    run("import math\nx = 4\ndef root():\n    return math.sqrt(x)")
    assert run("root()").ok == 2
    run("x = 9")
    assert run("root()").ok == 3


def test_result_is_cleared_before_each_run(run):
    run("__result__ = 5")
    assert run("x = 1").ok is None


def test_a_partial_result_survives_a_failure(run):
    out = run("__result__ = {'done': 3}\n1 / 0")
    assert (out.result, out.failure.type) == ({"done": 3}, "ZeroDivisionError")


def test_context_keys_are_variables_and_attributes(run):
    out = run("[rows, context['rows'], context.rows, sorted(context)]", {"rows": [1], "not a name": 2, "class": 3})
    assert out.ok == [[1], [1], [1], ["class", "not a name", "rows"]]


def test_context_cannot_break_the_namespace(run):
    assert run("len(__name__)", {"__builtins__": None, "__name__": 3}).ok == len("__main__")


def test_context_is_each_runs_own(run):
    run("1", {"a": 1})
    assert run("dict(context)").ok == {}
    failure = run("context.a").failure
    assert (failure.type, "no 'a'" in failure.message) == ("AttributeError", True)


def test_tasks_and_loop_objects_live_across_runs(run):
    run(
        "import asyncio\nqueue = asyncio.Queue()\nasync def feed():\n    await queue.put('fed')\ntask = asyncio.create_task(feed())\nawait asyncio.sleep(0)"
    )
    assert run("await queue.get()").ok == "fed"


def test_asyncio_run_leaves_a_usable_event_loop(run):
    run("import asyncio\nasync def f():\n    return 1\nasyncio.run(f())")
    assert run("asyncio.get_event_loop().run_until_complete(f())").ok == 1
    assert run("await f()").ok == 1


ASYNC = "import asyncio, threading\nasync def f(n=7):\n    await asyncio.sleep(0)\n    return n\n"


@pytest.mark.parametrize(
    ("code", "after", "value"),
    [
        ("asyncio.get_event_loop().run_until_complete(f())", "", 7),
        ("loop = asyncio.get_event_loop()\nloop.run_until_complete(asyncio.gather(f(1), f(2)))", "", [1, 2]),
        ("t = asyncio.create_task(f(5))", "await t", 5),
        ("t = asyncio.ensure_future(f(5))", "await t", 5),
        ("t = asyncio.get_event_loop().create_task(f(5))", "await t", 5),
        ("t = asyncio.gather(f(1), f(2))", "await t", [1, 2]),
        ("t = asyncio.get_event_loop().create_future()\nt.set_result(3)", "await t", 3),
        ("t = asyncio.create_task(f(5), name='mine')\nt.get_name()", "", "mine"),
        ("asyncio.get_event_loop().close()", "asyncio.get_event_loop().run_until_complete(f())", 7),
        ("own = asyncio.new_event_loop()\nasyncio.set_event_loop(own)\nasyncio.get_event_loop() is own", "", True),
        ("asyncio.run(f())", "asyncio.get_event_loop().run_until_complete(f(8))", 8),
        ("await f()", "t = asyncio.create_task(f(5))\nasyncio.get_event_loop().run_until_complete(t)", 5),
        ("await f()\nasyncio.get_event_loop() is asyncio.get_running_loop()", "", True),
    ],
    ids=str,
)
def test_the_event_loop_at_the_top_level(run, code, after, value):
    assert run(ASYNC).ok is None
    result = run(code).ok
    assert (run(after).ok if after else result) == value


def test_another_thread_has_no_event_loop(run):
    code = "def g():\n    try: asyncio.get_event_loop()\n    except RuntimeError as e: seen.append(str(e))\n"
    code += "seen = []\nt = threading.Thread(target=g)\nt.start()\nt.join()\nseen[0]"
    assert "no current event loop" in run(ASYNC + code).ok


@pytest.mark.parametrize("wait", ["", "await asyncio.sleep(0)\n"], ids=["plain", "awaiting"])
def test_a_task_begins_in_the_run_that_makes_it(run, wait):
    run(ASYNC + "out = []\nasync def g():\n    out.append(1)\n    await asyncio.sleep(0)\n    out.append(2)\n")
    run(wait + "t = asyncio.create_task(g())")
    assert run("list(out)").ok[:1] == [1]
    assert run("await t\nout").ok == [1, 2]


def test_asyncio_run_in_a_thread(run):
    assert run(
        "import asyncio, threading\nout = []\nasync def f():\n    out.append(1)\nt = threading.Thread(target=lambda: asyncio.run(f()))\nt.start()\nt.join()\nout"
    ).ok == [1]


def test_a_nested_run_that_fails_leaves_the_outer_loop_alone(run):
    code = "import asyncio\nasync def bad():\n    raise ValueError('inner')\ntry:\n    asyncio.run(bad())\nexcept ValueError as e:\n    seen = str(e)\nawait asyncio.sleep(0, seen)"
    assert run(code).ok == "inner"


def test_decimal_context_set_in_async_code_stays(run):
    run("import decimal, asyncio\nawait asyncio.sleep(0)\ndecimal.setcontext(decimal.Context(prec=5))")
    assert run("await asyncio.sleep(0, decimal.getcontext().prec)").ok == 5
    assert run("decimal.getcontext().prec").ok == 5


@pytest.mark.parametrize(
    ("code", "exit", "failed"),
    [
        ("exit()", 0, False),
        ("quit(0)", 0, False),
        ("raise SystemExit", 0, False),
        ("exit(3)", 3, True),
        ("exit('why')", 1, True),
        ("exit(True)", 1, True),
        ("import sys\nsys.exit(10 ** 30)", 0, False),
        ("import asyncio\nawait asyncio.sleep(0)\nexit(2)", 2, True),
    ],
)
def test_exit(run, code, exit, failed):
    out = run(code)
    assert (out.exit, out.exception is not None) == (exit, failed)
    if failed:
        assert out.exception["type"] == "SystemExit"
    assert run("1").ok == 1


def test_exit_with_a_message_says_it_on_stderr(run, capsys):
    run2 = type(run)()
    assert run2("exit('no data')").failure.message == "no data"
    assert capsys.readouterr().err == "no data\n"


def test_exit_zero_keeps_the_result(run):
    assert run("__result__ = 4\nexit()").ok == 4


# -- interrupts


def interrupted(run, code):
    """Runs code that calls ring() at the point where SIGINT must arrive."""
    signal.signal(signal.SIGINT, run.channel.on_interrupt)
    run.session._names["ring"] = lambda: os.kill(os.getpid(), signal.SIGINT)
    return run(code)


def test_interrupt_ends_a_run_and_keeps_the_session(run):
    out = interrupted(run, "x = 1\nring()\nwhile True: pass")
    assert (out.interrupt, out.exception["type"]) == (True, "KeyboardInterrupt")
    assert run("x").ok == 1


def test_interrupt_ends_async_code_and_its_tasks(run):
    code = "import asyncio\nran = []\nasync def later():\n    await asyncio.sleep(0)\n    ran.append(1)\n    while True: await asyncio.sleep(0.01)\n"
    code += "t = asyncio.create_task(later())\nasyncio.get_running_loop().call_later(0.01, ring)\nawait asyncio.sleep(60)\nran.append('never')"
    assert interrupted(run, code).interrupt
    assert run("await asyncio.sleep(0)\n[ran, t.cancelled()]").ok == [[1], True]


def test_interrupt_ends_the_tasks_of_code_that_does_not_await(run):
    code = "import asyncio\nran = []\nasync def later():\n    ran.append(1)\n    await asyncio.sleep(60)\n"
    code += "t = asyncio.ensure_future(later())\nasyncio.get_event_loop().call_later(0.01, ring)\n"
    code += "asyncio.get_event_loop().run_until_complete(asyncio.sleep(60))"
    assert interrupted(run, code).interrupt
    assert run("await asyncio.sleep(0)\n[ran, t.cancelled()]").ok == [[1], True]


def test_interrupt_while_the_result_is_described(run):
    out = interrupted(
        run, "class Slow:\n    def __repr__(self):\n        ring()\n        while True: pass\nx = 3\nSlow()"
    )
    assert out.interrupt
    assert run("x").ok == 3


def test_interrupt_while_an_error_is_described(run):
    out = interrupted(
        run,
        "class Slow(Exception):\n    def __str__(self):\n        ring()\n        while True: pass\nx = 3\nraise Slow",
    )
    assert out.interrupt
    assert run("x").ok == 3


def test_interrupt_between_runs_has_no_effect(run):
    interrupted(run, "1")
    os.kill(os.getpid(), signal.SIGINT)
    assert run("2").ok == 2


def test_caught_interrupt_does_not_end_the_run(run):
    out = interrupted(run, "try:\n    ring()\n    while True: pass\nexcept KeyboardInterrupt:\n    x = 'caught'\nx")
    assert (out.ok, out.interrupt) == ("caught", False)


# -- hostile code


@pytest.mark.parametrize(
    "code",
    [
        "import builtins\nfor n in ('len', 'isinstance', 'print', 'type', 'repr', 'getattr', 'list', 'str', 'range'): globals()['old_' + n] = getattr(builtins, n)",
        "import json\njson.dumps = json.loads = None",
        "import sys\nsys.stdout = sys.stderr = None",
        "import sys\nsys.modules['numpy'] = sys.modules['pandas'] = 5",
        "import sys\nsys.modules.pop('matplotlib.pyplot')",
        "import asyncio\nasyncio.run = None",
        "import linecache, difflib\nlinecache.getline = difflib.get_close_matches = None",
        "import gc\ngc.disable()",
        "del datetime, db_query",
        "__name__ = None",
    ],
)
def test_session_survives_replaced_modules(run, monkeypatch, code):
    # monkeypatch puts back what this process needs
    import builtins
    import difflib
    import gc
    import json
    import linecache

    for module, names in (
        (json, ("dumps", "loads")),
        (linecache, ("getline",)),
        (difflib, ("get_close_matches",)),
        (asyncio, ("run",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))
    for name in ("numpy", "pandas", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, sys.modules[name])
    assert builtins and gc
    session = run.session
    first = session.run({"code": code})
    last = [session.run({"code": c}) for c in ("[1, {'a': 2}]", "undefined_name", "object()")]
    gc.enable()
    monkeypatch.undo()
    assert first["exception"] is None
    assert (last[0]["result"], last[1]["exception"]["type"], last[2]["result"]["type"]) == (
        [1, {"a": 2}],
        "NameError",
        "object",
    )


def test_run_succeeds_with_replaced_builtins(run):
    import builtins

    kept = {n: getattr(builtins, n) for n in ("len", "isinstance", "print", "issubclass", "repr", "str")}
    try:
        first = run.session.run(
            {"code": "import builtins\nbuiltins.len = builtins.print = builtins.repr = lambda *a: 1 / 0"}
        )
        second = run.session.run({"code": "{'a': [1, object]}"})
    finally:
        for name, value in kept.items():
            setattr(builtins, name, value)
    assert first["exception"] is None
    assert second["result"]["a"][0] == 1


def test_stdout_is_each_runs_own(run, capfd):
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    mine = type(run)()
    mine("import io, sys\nsys.stdout = io.StringIO()\nprint('lost')")
    mine("print('seen')")
    assert sys.stdout is sys.__stdout__


def test_a_failed_run_leaves_no_garbage_alive(run):
    run(
        "import weakref\nclass Big: pass\ndef fail():\n    local = Big()\n    globals()['ref'] = weakref.ref(local)\n    raise ValueError"
    )
    run("fail()")
    assert run("ref() is None").ok is True


# -- inspecting


def test_variables_are_listed_without_running_code(run):
    run(
        "ran = []\nclass Loud:\n    def __repr__(self): ran.append('repr')\n    def __len__(self): ran.append('len')\n    def __eq__(self, o): ran.append('eq')\n    __hash__ = None\n"
        "class Meta(type):\n    def __hash__(cls): ran.append('hash'); return 1\n    def __eq__(cls, o): ran.append('meta eq'); return False\nclass Odd(metaclass=Meta): pass\n"
        "loud, odd, n, s = Loud(), Odd(), 5, 'text'\nimport pandas as pd, numpy as np\ndf, arr = pd.DataFrame({'a': [1, 2]}), np.zeros((2, 3))\n_private = 1\nrows = [{'a': 1}]\nran.clear()"
    )
    look = run.session.variables()
    shown = look["variables"]
    assert run("ran").ok == []
    assert shown["n"] == {"type": "int", "repr": "5"}
    assert shown["loud"] == {"type": "Loud", "repr": "<Loud>"}
    assert shown["df"] == {"type": "pandas.DataFrame", "repr": "<DataFrame 2x1: a int64 | 1 | 2>", "shape": [2, 1]}
    assert shown["arr"]["shape"] == [2, 3]
    assert shown["rows"]["repr"] == "[{'a': 1}]"
    assert not {"_private", "pd", "db_query", "context"} & set(shown)
    assert {"n", "db_query"} <= set(look["globals"])
    assert look["total"] == len(shown)


def test_variables_are_bounded(run):
    import json

    run("for i in range(5000): globals()['name%d' % i + 'x' * 300] = '\\U0001f600' * 10_000")
    look = run.session.variables()
    assert len(json.dumps(look)) < 1 << 20
    assert look["total"] > 5000 > len(look["variables"]) > 10


def test_user_code_cannot_import_guest_modules(run, monkeypatch):
    import session
    import values

    monkeypatch.setitem(sys.modules, "values", values)
    monkeypatch.setattr(session, "_OWN", os.path.dirname(values.__file__))
    kept = {
        n: m
        for n, m in sys.modules.items()
        if str(getattr(m, "__file__", "")).startswith(os.path.dirname(values.__file__))
    }
    try:
        fresh = type(run)()
        assert fresh("import values").failure.type == "ModuleNotFoundError"
        assert fresh("from processor_pipeline import AsyncProcessor\n1").ok == 1
        assert fresh("{'a': undefined}").failure.type == "NameError"
    finally:
        sys.modules.update(kept)


def test_forgotten_run_leaves_no_names(run):
    import linecache

    before = dict(run.session._names)
    for _ in range(2):
        assert run("print(end='')", context={}).ok is None
        run.session.forget_runs()
    assert run.session._names == before and "<execution 1>" not in linecache.cache
    run("def f(): pass")
    assert run.session._names["f"].__code__.co_filename == "<execution 1>"


def test_a_pause_during_a_rehearsal_is_for_the_first_run(run):
    for is_rehearsal in (True, False):
        run.session._channel.attention = True
        run.session.run({"code": "1", "context": {}, "rehearsal": is_rehearsal})
        assert run.session._channel.attention is is_rehearsal


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_source_of_each_line_is_kept(run, end):
    import linecache

    run(end.join(["a = 1", "", "b = '\u2028\x0c'", "c = 2"]))
    assert linecache.getlines("<execution 1>") == ["a = 1\n", "\n", "b = '\u2028\x0c'\n", "c = 2\n"]


def test_namespaces_have_variables_and_a_working_directory_of_their_own(run, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.setattr(session.directories, "session", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    where, inner = "import os; os.getcwd()", str(tmp_path / "inner")
    assert run("x = 1; x").ok == 1
    assert run("'x' in globals()", namespace="a").ok is False
    assert run(where, namespace="b", folder="inner").ok == inner
    run("x = 2", namespace="b")
    assert (run("x").ok, run(where).ok) == (1, str(tmp_path))
    assert (run("x", namespace="b").ok, run(where, namespace="b").ok) == (2, inner)
    assert run("import __main__; __main__.__dict__ is globals()", namespace="b").ok is True
    assert run("'x' in globals()", namespace="b", forget=["b"]).ok is False
    assert run("x").ok == 1
    assert run("'x' in globals()", forget=[""]).ok is False


def test_environment_variables_of_one_run(run, monkeypatch):
    monkeypatch.setenv("KEPT", "before")
    code = "import os; os.environ.get('KEPT'), os.environ.get('NEW')"
    assert run(code, environ={"KEPT": "now", "NEW": "1"}).ok == ["now", "1"]
    run("1 / 0", environ={"NEW": "2"})
    assert run(code).ok == ["before", None]


def test_time_of_the_compiler(run):
    assert 0 < run("1").compile_ms < run("x = [1, 2, 3]\n" * 20_000).compile_ms
    wrong = run("x = 1\n" * 20_000 + "1 +")
    assert wrong.failure.type == "SyntaxError" and wrong.compile_ms > 0
