"""Code that a person writes into the debugger: of the console, of log points, and the places of breakpoints."""

import debug_expressions
import pytest
import recorder_source
from test_debug_control import GO, at, recorder, stopped  # noqa: F401

FRAME = """\
import asyncio
total, names = 7, ["n"]
async def five(wait=0):
    await asyncio.sleep(wait)
    return 5
def f(xs, k):
    y = 0
    return y
z = f([1, 2], 5)
"""


@pytest.mark.parametrize(
    "code, then, want",
    [
        ("ys = [i + k for i in xs]", "ys", "[6, 7]"),
        ("h = lambda a: a + k", "h(1)", "6"),
        ("def g(a):\n    return a + k + total", "g(1)", "13"),
        ("class C:\n    v = k", "C.v", "5"),
        ("[a := i * k for i in xs]", "a", "10"),
        ("k = 9", "k", "9"),
        ("y = sum(x for x in xs)", "y", "3"),
        ("total = 3", "global total", "7"),
        ("global total; total = 3", "global total", "3"),
        ("def g():\n    global total\n    total = k\ng()", "global total", "5"),
        ("for i in xs: total += i", "total", "10"),
        ("import json as j", "j.dumps(k)", "'5'"),
        ("x1 = 1; 1 / 0", "x1", "1"),
        ("y = await five()", "y", "5"),
    ],
)
def test_console_sees_the_variables_of_its_frame(run, code, then, want):
    answers = []

    def script(stop, n):
        expression = then.removeprefix("global ")
        for each, frame in ((code, 2), (expression, 0 if expression != then else 2)):
            answers.append((yield {"do": "evaluate", "expression": each, "frame": frame, "statements": True}))
        yield GO

    out, _ = stopped(run, FRAME, at(8), script)
    assert (out.exception, answers[1].get("value")) == (None, want), answers


@pytest.mark.parametrize(
    "code, want",
    [
        ("await five()", "5"),
        ("(await five()) + k", "10"),
        ("[await five() for _ in xs]", "[5, 5]"),
        ("await five(1)", "stands still"),
        ("await asyncio.gather(five(), five())", "stands still"),
        ("await 3", "can't be used in 'await'"),
    ],
)
def test_console_awaits_what_needs_no_event_loop(run, code, want):
    answers = []

    def script(stop, n):
        answers.append((yield {"do": "evaluate", "expression": code, "frame": 3, "statements": True}))
        answers.append((yield {"do": "evaluate", "expression": code, "frame": 1, "statements": True}))
        yield GO

    code_of_program = FRAME.replace("z = f(", "async def main():\n    f(") + "await main()\nq = 1"
    out, _ = stopped(run, code_of_program, at(8), script)
    assert out.exception is None and want in (answers[0].get("value") or answers[0]["error"]), answers


@pytest.mark.parametrize(
    "message, want",
    [
        ("plain", "plain"),
        ("{n} and {n + 1}", "1000 and 1001"),
        ("{f:.2f}", "2.50"),
        ("{n:,}|{n:>{w}}", "1,000|  1000"),
        ("{s!r} {s} {s!s:>3}", "'a' a   a"),
        ("{n = } {n=}", "n = 1000 n=1000"),
        ("{{n}} {{", "{n} {"),
        ("{{{n}}}", "{1000}"),
        ("{d['k']} {d.get('x', {})}", "1 {}"),
        ("{ {'a': n}['a'] }", "1000"),
        ("{[i for i in range(2)]}", "[0, 1]"),
        ("{n != 3} {n if n else 0}", "True 1000"),
        ("{'}'} {s + '\\n'}", "} a\n"),
        ("{n +} {missing} {1 / 0}", "<SyntaxError> <NameError> <ZeroDivisionError>"),
        ("{} {n", "<SyntaxError> {n"),
        ("}", "}"),
        ("{f'{n}'}", "1000"),
        ("{x:.2f}", "<NameError>"),
    ],
)
def test_log_message_has_fields_as_an_f_string(run, message, want):
    code = "n, f, s, w, d = 1000, 2.5, 'a', 6, {'k': 1}\npass"
    stopped(run, code, at(2, log=message))
    assert [body["text"] for _, body in run.channel.told] == [want]


def test_wrong_fields_of_a_log_message_are_compiled_a_bounded_number_of_times(run, monkeypatch):
    compiled = []
    monkeypatch.setattr(debug_expressions, "_compile", lambda *a: compiled.append(a) or compile(*a))
    stopped(run, "n = 1\npass", at(2, log="{n}" + "{a b}" * 1000))
    assert [body["text"] for _, body in run.channel.told] == ["1" + ("<SyntaxError>" * 1000)[:9999]]
    assert len(compiled) < 1000


LINES = """\
def f(x):
    '''doc
    more'''
    global G
    if x:
        a = [
            1,
        ]
    else:
        a = []
    # a comment
    return a

text = '''
one
'''
class C:
    '''doc'''
    def m(self): return 1
y = (lambda v:
     v + 1)(1)
f(1)
f(0)
z = C().m()
"""


EXECUTABLE = recorder_source.executable_lines([compile(LINES, "x", "exec")])


@pytest.mark.parametrize("line", range(1, LINES.count("\n") + 1))
def test_breakpoint_moves_to_the_line_before_that_has_code(run, line):
    _, seen = stopped(run, LINES, at(line))
    assert {each[1] for each in seen} == {max(n for n in EXECUTABLE if n <= line)}


def test_lines_with_code():
    without = [n for n in range(1, LINES.count("\n") + 1) if n not in EXECUTABLE]
    assert [n for n in without if n != 18] == [2, 3, 4, 8, 9, 11, 13, 15, 16]


@pytest.mark.parametrize(
    "condition, is_one",
    [("n > 1", True), ("", True), ("n >", False), ("n = 1", False), ("import x", False), ("(", False)],
)
def test_condition_is_checked_when_it_is_set(run, condition, is_one):
    answers = []

    def script(stop, n):
        answers.append((yield {"do": "check", "conditions": [condition], "frame": 0}))
        yield {**GO, "stops": {"lines": [{"id": 8, "line": 3, "condition": condition, "hits": "100"}]}}
        yield GO

    stopped(run, "n = 1\nx = 2\ny = 3", {"entry": True}, script)
    told = [body for _, body in run.channel.told if "breakpoint" in body]
    assert (answers[0]["errors"] == [""]) == is_one
    assert told == ([] if is_one else [{"breakpoint": 8, "error": answers[0]["errors"][0]}])
