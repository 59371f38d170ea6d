"""Values that hold the same part twice, which holds the same part twice, and so on: 60 parts, and 2**60 ways to them.

The tests count visits, and end a program that visits more objects than it may: it would go on for years.
"""

import sys

import json_values
import programs
import pytest
import recorder_factory
import recording
import sharing
import tables
import values

LEVELS = 60
MAX_VISITS = 50_000
MAX_OUTPUT_VISITS = 400_000  # a notebook's text has up to 250 000 objects
RECORDERS = ["python", *(["extension"] if f"{sys.version_info[0]}.{sys.version_info[1]}" in programs.VERSIONS else [])]

SETUP = """
import collections, dataclasses, functools, types
import numpy as np, pandas as pd
def array(a):
    b = np.empty(2, dtype=object)
    b[0] = b[1] = a
    return b
@dataclasses.dataclass
class Data:
    a: object
    b: object
Pair = collections.namedtuple('Pair', 'a b')
class Object:
    def __init__(self, a): self.a = self.b = a
class Slots:
    __slots__ = 'a', 'b'
    def __init__(self, a): self.a = self.b = a
class List(list): pass
class Dict(dict): pass
class Frozen(tuple):
    def __hash__(self): return 1
class Deque(collections.deque): pass
class Array(np.ndarray): pass
class Frame(pd.DataFrame): pass
class Attrs:
    __attrs_attrs__ = ()
    def __init__(self, a): self.a = self.b = a
    def __repr__(self): return f'Attrs({self.a!r}, {self.b!r})'
class Leaf:
    def __repr__(self): return visit('leaf')
"""

# Expressions of a value that holds the value a twice.
KINDS = {
    "list": "[a, a]",
    "tuple": "(a, a)",
    "dict": "{1: a, 2: a}",
    "set": "{Frozen((1, a)), Frozen((2, a))}",
    "frozenset": "frozenset((Frozen((1, a)), Frozen((2, a))))",
    "deque": "collections.deque([a, a])",
    "OrderedDict": "collections.OrderedDict({1: a, 2: a})",
    "defaultdict": "collections.defaultdict(int, {1: a, 2: a})",
    "UserList": "collections.UserList([a, a])",
    "array": "array(a)",
    "array of two dimensions": "array(a).reshape(2, 1)",
    "Series": "pd.Series(array(a))",
    "DataFrame": "pd.DataFrame({'o': array(a)})",
    "Index": "pd.Index(array(a), dtype=object)",
    "labels": "pd.Series([1, 2], index=pd.Index(array(a), dtype=object))",
    "dataclass": "Data(a, a)",
    "namedtuple": "Pair(a, a)",
    "object": "Object(a)",
    "object with slots": "Slots(a)",
    "attrs": "Attrs(a)",
    "SimpleNamespace": "types.SimpleNamespace(a=a, b=a)",
    "exception": "ValueError(a, a)",
    "view": "{1: a, 2: a}.values()",
    "slice": "slice(a, a)",
    "partial": "functools.partial(print, a, a)",
    "alias": "types.GenericAlias(tuple, (a, a))",
    "list of the user's": "List([a, a])",
    "dict of the user's": "Dict({1: a, 2: a})",
    "deque of the user's": "Deque([a, a])",
    "array of the user's": "array(a).view(Array)",
    "DataFrame of the user's": "Frame({'o': array(a)})",
    "arrays in lists": "[array(a), array(a)]",
    "Fibonacci": "array(a) if type(a) is Leaf else [a, a[0]]",
    "type of fields": "np.dtype([('a', a), ('b', a)]) if type(a) is np.dtype else np.dtype('V0')",
}

# Values that hold themselves.
CYCLES = {
    "array of itself": "a = np.empty(3, dtype=object)\na[0] = a\na[1] = [a]",
    "arrays of each other": "a = array(0)\nb = array(a)\na[0] = a[1] = b",
    "deque of itself": "a = collections.deque()\na += [a, a]",
    "Series of itself": "a = pd.Series([None, None], dtype=object)\na.iloc[0] = a\na.iloc[1] = a",
    "lists of each other": "a = [[] for _ in range(30)]\nfor each in a: each += a",
}

PROGRAMS = {
    **{name: f"a = Leaf()\nfor _ in range({LEVELS}):\n    a = {expression}" for name, expression in KINDS.items()},
    **CYCLES,
}


class TooMany(BaseException):
    """Ends a test that would not end."""


class Visits:
    """Counts the objects that are visited. The own code of a value that calls visit counts, too."""

    def __init__(self, monkeypatch):
        self.count, self.most = 0, MAX_VISITS
        for owner, name in ((values.Preview, "show"), (tables, "read"), (sharing, "_islice")):
            monkeypatch.setattr(owner, name, self.counting(getattr(owner, name)))

    def counting(self, function):
        def counted(*args, **kwargs):
            self.visit()
            return function(*args, **kwargs)

        return counted

    def visit(self, text=""):
        self.count += 1
        if self.count > self.most:
            raise TooMany
        return text


@pytest.fixture
def visits(monkeypatch, run):
    found = Visits(monkeypatch)
    run.session._names["visit"] = found.visit
    run(SETUP)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_visit_few_objects(run, visits, name):
    run(PROGRAMS[name])
    a = run.session._names["a"]
    for text in (
        values.preview(a, 300),
        values.safe_repr(a),
        run.session.variables()["variables"]["a"]["repr"],
        run("inspect_var('a', a)\nNone") and run.channel.notes[-1]["repr"],
        run("1 / 0").failure.traceback[0]["variables"]["a"],
        run("raise ValueError(a)").failure.message,
    ):
        assert 0 < len(text) <= 4000
    assert visits.count <= visits.most


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_outputs_visit_few_objects(notebook, visits, monkeypatch, name):
    visits.most = MAX_OUTPUT_VISITS
    monkeypatch.setattr(json_values.plain, "__defaults__", (json_values.MAX_BYTES // 20, values.MAX_ITEMS // 20))
    notebook.session._names["visit"] = visits.visit
    notebook(SETUP)
    out = notebook(f"{PROGRAMS[name]}\na")
    assert out.ok is not None and out.outputs[0]["data"]["text/plain"]
    notebook("display(a)")
    assert visits.count <= visits.most


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_recordings_visit_few_objects(run, visits, monkeypatch, name, recorder):
    if recorder == "python":
        monkeypatch.setattr(recorder_factory, "_fast", None)
    out = run(PROGRAMS[name], watch=True)
    assert out.exception is None
    reader = recording.Reader(run.channel.recorded)
    assert reader.lost == [] and reader.variables[0]["a"].startswith("@")
    # Each of the steps may show a new value.
    assert visits.count <= visits.most and len(reader.steps) > 1


# Ordinary values, whose texts are their reprs.
WHOLE = {
    "a part twice": ("b = [1]\na = collections.deque([b, b])", "deque([[1], [1]])"),
    "an array of lists": ("a = array([1, 2])", "array([list([1, 2]), list([1, 2])], dtype=object)"),
    "a dataclass": ("a = Data([1], [1])", "Data(a=[1], b=[1])"),
    "an object of a graph": ("a = Object(0)\na.a = a.b = a", "<__main__.Object object at"),
    "a named tuple": ("a = Pair({1: 2}, None)", "Pair(a={1: 2}, b=None)"),
    "many parts": ("a = collections.deque([[i] for i in range(50_000)])", "deque([[0], [1], [2], "),
    "an object column": (
        "a = pd.DataFrame({'o': [[1], {'b': 2}] * 500})",
        "            o\n0         [1]\n1    {'b': 2}\n",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_ordinary_values_have_their_own_repr(run, name):
    run(SETUP.replace("visit('leaf')", "'leaf'"))
    code, text = WHOLE[name]
    run(code)
    assert values.safe_repr(run.session._names["a"]).startswith(text)
