"""User code can put any object as a name into a dict. The guest passes over those whose class is not exactly str, and
runs no code of them between runs."""

import lookup
import pytest

# A class of names that notes each use of them. ran has the uses. They have the hash of a str, and equal none, so that
# they can be in a dict next to that str.
NAME = """
ran = []
class Name(str):
    def __hash__(self):
        ran.append("hash")
        return str.__hash__(self)
    def __eq__(self, other):
        ran.append("eq")
        return self is other
for method in ("__ne__", "__str__", "__repr__", "__len__", "__getitem__", "__format__", "__contains__",
               "__lt__", "__add__", "lower", "startswith", "partition", "isidentifier", "encode"):
    def use(self, *args, method=method):
        ran.append(method)
        return getattr(str, method)(self, *args)
    setattr(Name, method, use)
del method, use
"""

# Odd names in each kind of namespace. Names that the guest looks up have the same hash as one of the odd ones.
ODD = """
import sys, types, builtins
import pandas as pd
names = globals()
for odd in (1, b"b", None, (1,), 2.5, float("nan"), Name("fresh"), Name("context"), Name("__result__"), Name("df"),
            Name("DataFrame"), Name("Series")):
    names[odd] = 0
class Kind:
    locals()[1] = 0
    locals()[Name("__module__")] = 0
    locals()[Name("__dict__")] = 0
    locals()[Name("plain")] = 0
    attribute = 1
kind = Kind()
kind.own = 1
kind.__dict__[1] = kind.__dict__[b"b"] = kind.__dict__[Name("mine")] = kind.__dict__[Name("__class__")] = 0
Odd = type(Name("Odd"), (), {"__module__": Name("module"), Name("__qualname__"): 0})
Odd.__qualname__ = Name("Odd")
thing = Odd()
module = types.ModuleType("module")
module.value = 1
module.__dict__[1] = module.__dict__[Name("inside")] = 0
def function(a) -> Kind: pass
function.__annotations__[Name("return")] = Kind
keys = {Name("key"): Name("value"), 1: 2, "text": [Name("x")]}
context[1] = context[Name("y")] = 0
df = pd.DataFrame({"column": [1]})
pd.__dict__[Name("DataFrame")] = 0
sys.modules[Name("pandas")] = 0
sys.modules[1] = 0
builtins.__dict__[Name("kind")] = 0
builtins.__dict__[1] = 0
ran.clear()
"""


@pytest.fixture
def odd(run):
    """A session with odd names, which it takes out of the shared dicts of this process at the end."""
    import builtins
    import sys

    import pandas

    assert run(NAME + ODD).exception is None
    run.ran = lookup.find(run.session._names, "ran")
    run.ran.clear()
    yield run
    for shared in (builtins.__dict__, sys.modules, pandas.__dict__):
        for key in [key for key in shared if type(key) is not str]:
            del shared[key]


def test_variables_have_only_names(odd):
    for look in (odd.session.variables(), odd("get_sandbox_state()").ok):
        assert {"kind", "thing", "df", "keys"} <= look["variables"].keys()
        assert not {"fresh", "1", "None"} & look["variables"].keys()
        assert look["variables"]["df"]["shape"] == [1, 1]
        assert look["variables"]["thing"] == {"type": "Odd", "repr": "<Odd>"}
        assert look["variables"]["kind"]["repr"] == "<Kind own=1>"
    odd.ran.clear()
    odd.session.variables()
    assert odd.ran == []


@pytest.mark.parametrize(
    ("code", "matches"),
    [
        ("k", {"kind", "keys"}),
        ("kind.", {"own", "attribute"}),
        ("Kind.a", {"attribute"}),
        ("thing.", set()),
        ("module.", {"value"}),
        ("function(1).", {"attribute"}),
        ("function(", {"a="}),
        ("keys['", {"text"}),
        ("keys['text'].", {"append"}),
        ("context.", set()),
        ("df.col", {"column"}),
        ("df['", {"column"}),
        ("import pan", {"pandas"}),
        ("from pandas import DataF", {"DataFrame"}),
        ("unknown(", set()),
    ],
)
def test_completion_runs_no_code_of_names(odd, code, matches):
    answer = odd.session.answer({"what": "complete", "code": code, "cursor": len(code)})
    assert "failed" not in answer
    found = {match["text"] for match in answer["matches"]}
    assert matches <= found
    assert not found & {"plain", "mine", "inside", "fresh", "key"}
    assert odd.ran == []


def test_check_runs_no_code_of_names(odd):
    for code in ("1 +", "import nothing_here", "fresh", "eval('1')"):
        assert "failed" not in odd.session.answer({"what": "check", "code": code})
    assert odd.ran == []


def test_a_run_goes_on_with_odd_names(odd):
    assert odd("attributes = [n for n in vars(kind) if type(n) is str]; attributes").ok == ["own"]
    assert odd("len([n for n in globals() if type(n) is not str])").ok == 12
    failure = odd("def f(a):\n    locals()[1] = 0\n    return a.missing\nf(kind)").failure
    assert failure.type == "AttributeError" and failure.traceback[1]["variables"] == {"a": "<Kind own=1>"}


def test_stopped_program_with_odd_names(odd):
    """A client looks at variables, attributes and completions of a program that is stopped."""
    answers = []

    def script(stop):
        for command in (
            {"do": "page", "expression": "kind", "start": 0, "count": 10},
            {"do": "page", "expression": "module", "start": 0, "count": 100},
            {"do": "page", "expression": "keys", "start": 0, "count": 10},
            {"do": "evaluate", "expression": "thing"},
            {"do": "evaluate", "expression": "w = 1", "statements": True},
            {"do": "set", "name": "v", "expression": "2"},
            {"do": "complete", "text": "kin"},
        ):
            answers.append((yield {"frame": 0, **command}))
        yield {"do": "resume", "mode": "continue"}

    odd.channel.script = script
    code = "v = 1\nglobals()[3] = 3\nglobals()[b'n'] = 3\nv"
    out = odd(code, watch=True, stops={"lines": [{"id": 1, "line": 4}]})
    assert out.ok == 2
    kind, module, keys, thing, _, value, names = answers
    assert [item["name"] for item in kind["items"]] == ["own"]
    assert "value" in [item["name"] for item in module["items"]]
    assert [item["name"] for item in keys["items"]] == ["Name('key')", "1", "'text'"]
    assert thing["type"] == "Odd" and value["value"] == "2" and "kind" in names["names"]


def test_lookup():
    class Text(str):
        pass

    class Kind:
        __slots__ = ("a",)
        b = 1

    class Property:
        @property
        def __dict__(self):
            raise AssertionError

    given = {"a": 1, Text("b"): 2, 3: 4}
    assert lookup.pairs(given) == [("a", 1)]
    assert lookup.find(given, "a") == 1 and lookup.find(given, "b", 5) == 5
    assert lookup.are_plain({"a": 1}) and lookup.are_plain({}) and not lookup.are_plain(given)
    assert lookup.in_class(Kind, "b") == 1 and lookup.in_class(Kind, "c") is None
    assert lookup.in_class(Kind, "__hash__") is object.__hash__
    assert lookup.module_of(Kind) == __name__ and lookup.module_of(int) == "builtins"
    assert lookup.own_attributes(Kind()) == lookup.own_attributes(Property()) == lookup.own_attributes(1) == {}
    assert lookup.own_attributes(lookup) is vars(lookup)
