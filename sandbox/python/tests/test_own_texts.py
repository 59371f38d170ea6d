"""Texts that the classes of a program make, where it is stopped."""

import own_texts
import protocol
import pytest
from test_debug_control import GO, at, recorder, stopped  # noqa: F401

CLASSES = """\
import collections, dataclasses, enum, itertools
called = []
class X:
    def __init__(self, v=1): self.v = v
    def __repr__(self):
        called.append(1)
        return f"own-{self.v}"
class Endless(X):
    def __iter__(self): return itertools.count()
class Plain:
    def __init__(self): self.x = X(2)
class Bad:
    def __repr__(self): return 1 / 0
class NoText:
    def __repr__(self): return 5
class List(list):
    def __repr__(self): return "own list"
class Text(str):
    def __repr__(self): return "own text"
class Color(enum.Enum):
    RED = 1
    def __repr__(self): return "own color"
class Meta(type):
    def __repr__(cls): return "own class"
class WithMeta(metaclass=Meta): pass
class Hidden:
    def __getattribute__(self, name): called.append(name)
    __repr__ = property(lambda self: called.append(2))
@dataclasses.dataclass
class Data:
    x: X
Pair = collections.namedtuple("Pair", "a b")
v = VALUE
done = 1
"""


def described(run, value, **command):
    answers = []

    def script(stop, n):
        answers.append((yield {"do": "evaluate", "expression": "v", "frame": 0, **command}))
        answers.append((yield {"do": "texts", "names": ["v", "called", "missing"], "frame": 0}))
        yield GO

    code = CLASSES.replace("VALUE", value)
    out, _ = stopped(run, code, at(code.count("\n")), script)
    assert out.exception is None
    return answers


@pytest.mark.parametrize(
    "value, want",
    [
        ("X()", "own-1"),
        ("Endless()", "own-1"),
        ("[X(), {'k': (X(2),)}]", "[own-1, {'k': (own-2,)}]"),
        ("List([1])", "own list"),
        ("Text('a')", "own text"),
        ("Color.RED", "own color"),
        ("Plain()", "<Plain x=own-2>"),
        ("Data(X(3))", "<Data x=own-3>"),
        ("Pair(X(3), 1)", "<Pair a=own-3, b=1>"),
        ("WithMeta()", "<WithMeta>"),
    ],
)
def test_a_value_has_the_repr_of_the_program(run, value, want):
    evaluated, texts = described(run, value)
    assert evaluated["value"] == want
    assert texts["texts"] == [want if "own" in want else "", "", ""]


@pytest.mark.parametrize("value, want", [("Bad()", "<Bad>"), ("NoText()", "<NoText>"), ("Hidden()", "<Hidden>")])
def test_a_repr_that_fails_leaves_the_contents(run, value, want):
    evaluated, texts = described(run, value)
    assert (evaluated["value"], texts["texts"]) == (want, ["", "", ""])


def test_the_recorder_runs_no_repr(run):
    code = CLASSES.replace("VALUE", "[X(), Plain(), List([1])]")
    out, _ = stopped(run, code + "called\n", at(code.count("\n") + 1))
    assert out.ok == []


def test_a_slow_repr_is_not_called_again(run, monkeypatch):
    monkeypatch.setattr(own_texts, "MAX_TIME", -1.0)
    assert described(run, "X()")[0]["value"] == "<X v=1>"  # no time is left


def test_an_interrupted_repr_leaves_the_contents_and_is_not_called_again(run):
    code = CLASSES.replace('return f"own-{self.v}"', "raise KeyboardInterrupt").replace("VALUE", "[X(), X()]")
    answers = []

    def script(stop, n):
        for expression in ("v", "len(called)", "v", "len(called)"):
            answers.append((yield {"do": "evaluate", "expression": expression, "frame": 0})["value"])
        yield GO

    stopped(run, code, at(code.count("\n")), script)
    assert answers == ["[<X v=1>, <X v=1>]", "1", "[<X v=1>, <X v=1>]", "1"]


@pytest.mark.parametrize(
    "value, want",
    [
        ("{'hold': {'result': ['x' * 3000]}}", "{'hold': {'result': ['" + "x" * 3000 + "']}}"),
        ("list(range(3000))", str(list(range(3000)))),
        ("[[[[[[[[[[[[7]]]]]]]]]]]]", "[[[[[[[[[[[[7]]]]]]]]]]]]"),
        ("collections.deque(range(100))", "100 items"),
        ("[X(i) for i in range(500)]", str([f"own-{i}" for i in range(500)]).replace("'", "")),
        ("(lambda a: a.append(a) or a)([1])", "[1, ...]"),
        ("(lambda a: [a, a])([1])", "[[1], [1]]"),
    ],
)
def test_a_copied_value_is_whole(run, value, want):
    found = described(run, value, whole=True)[0]["value"]
    assert found == want if want != "100 items" else found.endswith("98, 99])")


@pytest.mark.parametrize(
    "value, end", [("list(range(100_000))", "... 100000 in all]"), ("'\\U0001f600' * 250_000", "'")]
)
def test_a_copied_value_has_a_limit(run, value, end):
    found = described(run, value, whole=True)[0]["value"]
    assert own_texts.MAX_WHOLE - 100 < len(found) <= own_texts.MAX_WHOLE and len(protocol.encode(found)) < 2**20 - 1000
    assert found.endswith((end, "..."))
