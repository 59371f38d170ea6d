import pytest


@pytest.mark.parametrize(
    ("code", "kind", "line", "hint"),
    [
        ("lenght = 1\nlenth", "NameError", 2, "'lenght'"),
        ("x = 1\n\npirnt(x)", "NameError", 3, "'print'"),
        ("def f():\n    total = 1\n    return totl\nf()", "NameError", 3, "'total'"),
        ("pd.DataFrame()", "NameError", 1, "import pandas as pd"),
        ("math.pi", "NameError", 1, "import math"),
        ("[].appendd(1)", "AttributeError", 1, "'append'"),
        ("import math\nmath.squareroot(2)\n", "AttributeError", 2, ""),
        ("{'colour': 1, 'size': 2}['color']", "KeyError", 1, ""),
        ("d = {'colour': 1}\nd['color']", "KeyError", 2, "'colour'"),
        ("d = {'Total': 1}\nd['total']", "KeyError", 2, "'Total'"),
        (
            "import pandas as pd\ndf = pd.DataFrame({'amount': [1], 'name': ['x']})\ndf['amout']",
            "KeyError",
            3,
            "'amount'",
        ),
        ("import pandas as pd\npd.DataFrame({'amount': [1]})['zzz']", "KeyError", 2, "'amount'"),
        ("import pandas as pd\ndf = pd.DataFrame({'amount': [1]})\ndf.amout", "AttributeError", 3, "'amount'"),
        ("rows = [{'name': 1}]\nrows[0]['nmae']", "KeyError", 2, "'name'"),
        ("a = {'north': 1}\nb = {'south': 2}\nb['north']", "KeyError", 3, ""),
        ("d = {7: 1}\nd['7']", "KeyError", 2, "the number 7"),
        ("d = {'7': 1}\nd[7]", "KeyError", 2, "the text '7'"),
        ("import pandas as pd\npd.Series(['2024-01-31']).dt.day", "AttributeError", 2, "pd.to_datetime"),
        ("import pandas as pd\npd.Series([1]).str.upper()", "AttributeError", 2, "astype(str)"),
        ("import pandsa", "ModuleNotFoundError", 1, "'pandas'"),
        ("from math import squrt", "ImportError", 1, "'sqrt'"),
        ("async def f(): pass\nc = f()\nc.x\n", "AttributeError", 3, "await"),
        ("async def f(): return [1]\nc = f()\nc[0]\n", "TypeError", 3, "await"),
        ("raise MemoryError", "MemoryError", 1, "max_memory_mb is 256"),
        ("def f(): f()\nf()", "RecursionError", 1, "calls itself"),
        ("open('/etc/nothing/here')", "FileNotFoundError", 1, "/session"),
        ("raise OSError(28, 'No space left')", "OSError", 1, "workspace_max_bytes is 67108864"),
        ("raise OSError(24, 'Too many open files')", "OSError", 1, "max_open_files is 100"),
        ("raise PermissionError(13, 'Permission denied', '/x')", "PermissionError", 1, "only /session"),
        ("raise OSError(101, 'Network is unreachable')", "OSError", 1, "network is off"),
        (
            "import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')",
            "gaierror",
            2,
            "network is off",
        ),
        ("import requests\nraise requests.exceptions.ConnectionError('no')", "ConnectionError", 2, "network is off"),
        ('raise RuntimeError("can\'t start new thread")', "RuntimeError", 1, "max_threads is 10"),
        (
            "try:\n    int('x')\nexcept ValueError as e:\n    raise RuntimeError('bad input') from e",
            "RuntimeError",
            4,
            "",
        ),
        ("raise ExceptionGroup('two', [ValueError('a'), KeyError('b')])", "ExceptionGroup", 1, ""),
    ],
)
def test_exceptions(run, code, kind, line, hint):
    failure = run(code).failure
    assert (failure.type, failure.line) == (kind, line)
    assert hint in failure.hint
    assert "north" not in (failure.get("hint") or "")


def test_key_hint_ignores_unrelated_tables(run):
    table = "import pandas as pd\ndf = pd.DataFrame({'amount': [1]})\n"
    assert run(table + "d = {'host': 1}\nd['missing']").failure.hint == ""


TABLES = """import pandas as pd
other = pd.DataFrame({'norht': [1], 'nrth': [2]})
d = {'norht': 1}
df = pd.DataFrame({'city': ['a', 'b'], 'total': [1, 2]}, index=['north', 'south'])
s = df['total']
"""


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("s['nort']", "did you mean 'north'?"),
        ("s.loc['zzz']", "the labels are 'north', 'south'"),
        ("df.loc['totl']", "the labels are 'north', 'south'"),
        ("df.loc['north', 'totl']", "did you mean 'total'?"),
        ("df.at['sout', 'total']", "did you mean 'south'?"),
        ("df.apply(lambda row: row['totl'], axis=1)", "did you mean 'total'?"),
        ("df.groupby('nrth')", "the columns are 'city', 'total'"),
        ("df.merge(other, on='nrth')", "the columns are 'city', 'total'"),
        ("s.groupby('nrth')", ""),
        ("pd.Series([1])['0']", "the key is the number 0"),
        ("pd.Series(range(300))[300]", "19, ... (300 in all)"),
    ],
    ids=str,
)
def test_hint_for_a_label_is_about_the_table_that_was_searched(run, code, hint):
    failure = run(TABLES + code).failure
    assert (failure.type, failure.line) == ("KeyError", 6)
    assert hint in failure.hint if hint else not failure.hint


@pytest.mark.parametrize(
    ("code", "kind", "line", "column", "hint", "source"),
    [
        ("x = 1\ny = (", "SyntaxError", 2, 5, "", "y = ("),
        ("if x:\nprint()", "IndentationError", 2, 1, "", "print()"),
        ("a b", "SyntaxError", 1, 3, "", "a b"),
        ("x = 'é'; a b", "SyntaxError", 1, 12, "", "x = 'é'; a b"),
        ("def f():\n    await g()", "SyntaxError", 2, 5, "async", "await g()"),
        ("return 5", "SyntaxError", 1, 1, "", "return 5"),
        ("```python\nx=1\n```", "SyntaxError", 1, 1, "fence", "```python"),
        ("!wget x", "SyntaxError", 1, 1, "", "!wget x"),
        ("x = 1\ny = '\0'", "SyntaxError", 2, 1, "", "y = '"),
        ("x = 1\n# \ud800", "SyntaxError", 2, 1, "", "# \\ud800"),
        ("if 1:\n\tx = = 3", "SyntaxError", 2, 6, "", "x = = 3"),
    ],
)
def test_syntax_errors(run, code, kind, line, column, hint, source):
    failure = run(code).failure
    assert (failure.type, failure.line) == (kind, line)
    assert failure.column == column
    assert hint in failure.hint and failure.message
    (place,) = failure.traceback
    assert (place["line"], place["function"], place["code"]) == (line, "", source)
    indent = len(code.split("\n")[line - 1]) - len(code.split("\n")[line - 1].lstrip())
    assert place["column"] == column - indent


def test_a_long_line_is_shown_around_its_syntax_error(run):
    (place,) = run("x = [" + "1, " * 1000 + "2 3, " + "4, " * 1000 + "]").failure.traceback
    assert len(place["code"]) <= 500 and place["code"][place["column"] - 1 :].startswith("2 3")


@pytest.mark.parametrize("code", ["import ast\nast.parse('y = = 2')", "compile('y = = 2', 'f', 'exec')"])
def test_a_syntax_error_in_text_that_code_parses_shows_the_text(run, code):
    traceback = run(code).failure.traceback
    assert [frame["code"] for frame in traceback] == [code.split("\n")[-1], "y = = 2"]
    assert traceback[1]["file"] and traceback[1]["column"] == 5


NOTE = "e = ValueError('bad')\n"


@pytest.mark.parametrize(
    ("code", "notes"),
    [
        ("e.add_note('one')\ne.add_note('two\\nlines')\nraise e", ["one", "two\nlines"]),
        ("raise e", None),
        ("e.__notes__ = 5\nraise e", None),
        ("e.__notes__ = [5, 'x' * 5000]\nraise e", ["x" * 997 + "..."]),
    ],
    ids=str,
)
def test_notes(run, code, notes):
    failure = run(NOTE + code).failure
    assert failure.message == "bad" and failure.get("notes") == notes


@pytest.mark.parametrize(
    ("code", "chain"),
    [
        (
            "d = {}\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    d['x']",
            [("ZeroDivisionError", "division by zero", [3], False)],
        ),
        (
            "try:\n    int('x')\nexcept ValueError as e:\n    raise RuntimeError('bad') from e",
            [("ValueError", "invalid literal for int() with base 10: 'x'", [2], True)],
        ),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise RuntimeError('bad') from None", []),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise", []),
        ("raise RuntimeError('bad') from OSError('made')", [("OSError", "made", [], True)]),
        ("import pandas as pd\npd.DataFrame({'a': [1]})['b']", []),
        ("e = ValueError('own')\ne.__cause__ = e\nraise e", []),
        (
            "e = None\nfor n in range(9):\n    try:\n        raise ValueError(str(n)) from e\n"
            "    except ValueError as x:\n        e = x\nraise e",
            [("ValueError", str(n), [4], True) for n in range(3, 8)],
        ),
    ],
    ids=str,
)
def test_the_exceptions_before(run, code, chain):
    found = run(code).failure.get("chain") or []
    assert [
        (x["type"], x["message"], [f["line"] for f in x["traceback"]], x.get("is_cause", False)) for x in found
    ] == chain


def test_code_with_a_syntax_error_does_not_run(run):
    run("x = 1\nx = 2\n(")
    assert run("x").failure.type == "NameError"


def test_code_nested_too_deep(run):
    assert run("(" * 5000 + ")" * 5000).failure.type == "SyntaxError"
    assert run("-" * 200_000 + "1").failure.type == "SyntaxError"
    assert run("1").ok == 1


def test_a_syntax_error_in_text_that_code_compiles_is_at_the_codes_line(run):
    failure = run("x = 1\nimport ast\nast.parse('(')").failure
    assert (failure.type, failure.line) == ("SyntaxError", 3)


def test_traceback_has_the_users_frames_with_their_lines(run):
    failure = run("def inner(x):\n    return 1 / x\n\ndef outer():\n    return inner(0)\nouter()").failure
    assert [(f["line"], f["function"], f["code"]) for f in failure.traceback] == [
        (6, "<module>", "outer()"),
        (5, "outer", "return inner(0)"),
        (2, "inner", "return 1 / x"),
    ]
    assert failure.line == 2


def test_library_frames_are_left_out(run):
    failure = run("import pandas as pd\npd.DataFrame({'a': [1]})['b']").failure
    assert [f["line"] for f in failure.traceback] == [2]


def test_frames_of_earlier_runs_name_their_file(run):
    run("def fail():\n    raise ValueError('old')")
    failure = run("x = 1\nfail()").failure
    assert [(f["line"], f.get("file")) for f in failure.traceback] == [(2, None), (2, "<execution 1>")]
    assert (failure.line, failure.traceback[1]["code"]) == (2, "raise ValueError('old')")


def test_top_level_await_has_the_same_frames(run):
    failure = run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError\nawait f()").failure
    assert [(f["line"], f["function"]) for f in failure.traceback] == [(5, "<module>"), (4, "f")]


def test_recursion_is_bounded(run):
    failure = run("def f(n): return f(n + 1)\nf(0)").failure
    assert len(failure.traceback) == 50


def test_lines_are_pythons_lines_not_unicodes(run):
    failure = run("x = 'a\\x0c'\n# \u2028 \x0c\ny = 1\n1 / 0").failure
    assert (failure.line, failure.traceback[0]["code"]) == (4, "1 / 0")


def test_windows_line_ends(run):
    failure = run("x = 1\r\ny = 2\r\n1 / 0\r\n").failure
    assert (failure.line, failure.traceback[0]["code"]) == (3, "1 / 0")


def test_users_own_traceback_shows_source(run):
    out = run(
        "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    text = traceback.format_exc()\ntext"
    ).ok
    assert "    1 / 0" in out


def test_exception_group_names_its_parts(run):
    failure = run(
        "import asyncio\nasync def f(n):\n    raise ValueError(f'part {n}')\nasync with asyncio.TaskGroup() as g:\n    g.create_task(f(1))\n    g.create_task(f(2))"
    ).failure
    assert failure.type == "ExceptionGroup"
    assert "ValueError: part 1 (line 3); ValueError: part 2 (line 3)" in failure.message


@pytest.mark.parametrize(
    "body",
    [
        "def __str__(self): raise ValueError",
        "def __str__(self): raise SystemExit",
        "def __str__(self): return 5",
        "def __str__(self): return 'x' * 10_000_000",
        "def __str__(self): return '\\ud800'",
        "def __str__(self): return str(self)",
        "hint = property(lambda self: 1 / 0)",
        "hint = 5",
        "__traceback__ = property(lambda self: 1 / 0)",
        "__cause__ = property(lambda self: 1 / 0)",
        "__class__ = property(lambda self: SyntaxError)",
        "def __getattribute__(self, name): raise ValueError",
        "lineno = 10 ** 100",
    ],
)
def test_hostile_exceptions(run, body):
    failure = run(f"class Bad(Exception):\n    {body}\nraise Bad('x')").failure
    assert (failure.type, failure.line) == ("Bad", 3)
    assert len(failure.message) <= 4000
    assert run("1").ok == 1


def test_a_syntax_error_with_a_hostile_position(run):
    failure = run("raise SyntaxError('m', ('<execution 1>', 10 ** 100, 'x', None))").failure
    assert failure.type == "SyntaxError"


def test_an_error_that_has_a_hint_of_its_own_keeps_it(run):
    assert run("e = ValueError('x')\ne.hint = 'do that'\nraise e").failure.hint == "do that"
