"""Private names and names without a value, in what a person writes into the debugger."""

import protocol
import pytest
from test_debug_control import GO, at, recorder, stopped  # noqa: F401

CLASSES = """\
class _M:
    __shared = 3
    def __init__(self, n):
        self.__secret = n
        __local = 6
        self.seen = __local
    def inner(self):
        def g(m):
            return m
        return g(self)
class __:
    def f(self):
        self.__own = 2
        return self
def outside(m):
    return m
m = _M(5)
m.inner()
outside(m)
__().f()
"""


@pytest.mark.parametrize(
    "line, expression, want",
    [
        (6, "self.__secret", "5"),
        (6, "self.__secret + __local + _M.__shared", "14"),
        (6, "(lambda: self.__secret)()", "5"),
        (6, "[self.__secret for _ in '1']", "[5]"),
        (6, "self.__class__.__name__", "'_M'"),
        (6, "'__secret'", "'__secret'"),
        (9, "m.__secret", "5"),  # in a function of a method
        (13, "self.__class__.__mro__[0].__name__", "'__'"),
        (14, "self.__own", "2"),  # no class name is left, so the name stays
        (16, "m.__secret", "AttributeError"),
        (16, "m._M__secret", "5"),
        (16, "m.__class__.__name__", "'_M'"),
    ],
)
def test_private_names_mean_what_they_mean_in_the_frame(run, line, expression, want):
    answers = []

    def script(stop, n):
        for frame in range(1, 12):
            found = yield {"do": "evaluate", "expression": expression, "frame": frame}
            if "ended" not in found.get("error", ""):
                answers.append(found.get("value") or found["error"])
        yield GO

    out, seen = stopped(run, CLASSES, at(line), script)
    assert out.exception is None and seen == [("breakpoint", line)]
    assert answers[-1].startswith(want), answers


def test_statements_conditions_and_messages_have_private_names(run):
    frames = []

    def script(stop, n):
        for frame in range(1, 12):
            found = yield {"do": "evaluate", "expression": "self", "frame": frame}
            if "value" in found:
                frames.append(frame)
        evaluate = {"do": "evaluate", "frame": frames[-1], "statements": True}
        yield {**evaluate, "expression": "self.__secret = 9\nclass A:\n    __x = 1\nself.a = A"}
        assert (yield {**evaluate, "expression": "self._M__secret, self.a._A__x"})["value"] == "(9, 1)"
        assert "__secret" in (yield {"do": "complete", "text": "self.__s", "frame": frames[-1]})["names"]
        yield GO

    stops = at(6, condition="self.__secret == 5")
    out, seen = stopped(run, CLASSES, stops, script)
    assert out.exception is None and seen == [("breakpoint", 6)]


def test_log_messages_have_private_names(run):
    stopped(run, CLASSES, at(6, log="{self.__secret} {self.__secret!r:>3}"))
    assert run.channel.told == [(protocol.LOG, {"text": "5   5", "line": 6})]


LATE = "def f():\n    for i in range(6):\n        t = i\n    del t\n    return i\nx = f()\nlast = x\n"


@pytest.mark.parametrize(
    "line, condition, want",
    [
        (2, "i > 3", [("breakpoint", 2)] * 2),  # the line of the loop, also before the first turn
        (3, "t == 3", [("breakpoint", 3)]),
        (5, "t == 5", []),  # has no value any longer
        (6, "last == 1", []),  # a global name that comes later
        (3, "last == 1", []),
        (3, "lst == 1", [("breakpoint", 3)] * 6),  # the program has no such name: a person should know
        (3, "x.y == 1", []),
        (3, "i.y == 1", [("breakpoint", 3)] * 6),
        (3, "t +", [("breakpoint", 3)] * 6),
        (7, "x == 5 and last == 5", []),
        (7, "x == 5", [("breakpoint", 7)]),
    ],
)
def test_condition_with_a_name_that_has_no_value_does_not_hold(run, line, condition, want):
    out, seen = stopped(run, LATE, at(line, condition=condition))
    assert (out.exception, seen) == (None, want)


def test_condition_stops_if_a_function_of_the_program_lacks_a_name(run):
    code = "def bad():\n    return later\nx = 1\nlater = 2\n"
    assert stopped(run, code, at(3, condition="bad()"))[1] == [("breakpoint", 3)]
