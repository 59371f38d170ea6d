"""Programs do with probes what they do without, and no method of theirs is called."""

import contextlib
import io
import re
import traceback

import pytest
from probed_programs import SAME
from probing import instrumented


def outcome(code):
    """Returns what a program prints, the exception and its places, and the globals that it leaves."""
    names, error, printed = {"__name__": "program"}, None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, names)
        except BaseException as raised:
            frames = traceback.TracebackException.from_exception(raised).stack
            places = [(f.lineno, f.end_lineno, f.colno, f.end_colno) for f in frames if f.filename == "program"]
            error = type(raised).__name__, str(raised), places
    names.pop("__builtins__", None)
    names.get("__warningregistry__", {}).pop("version", None)  # it counts the changes of the filters in this process
    left = [(name, stable(value)) for name, value in names.items()]
    return printed.getvalue(), error, left


def stable(value):
    return type(value).__name__, re.sub("0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize("lines", [[(1, 10_000)], [(n, n) for n in range(1, 80, 2)]], ids=["all lines", "odd lines"])
@pytest.mark.parametrize("name", SAME)
def test_program_does_the_same(name, lines):
    source = SAME[name]
    want = outcome(compile(source, "program", "exec"))
    probes, code = instrumented(source, lines)
    got = outcome(code)
    found = probes.end()
    assert got == want
    assert want[0] or want[1]
    assert found or lines[0] == (1, 1) or name in ("raise in a finally", "unbound")


# A class whose methods write their names to a list. With probes, the list is the same.
LOGGED = """
log = []
def logging(name, result):
    def method(self, *args):
        log.append(name)
        return result(self, *args)
    return method
RESULTS = {
    "eq": lambda self, other: False, "ne": lambda self, other: True, "lt": lambda self, other: True,
    "gt": lambda self, other: True, "le": lambda self, other: True, "ge": lambda self, other: True,
    "len": lambda self: 2, "bool": lambda self: True, "repr": lambda self: "L", "str": lambda self: "L",
    "hash": lambda self: hash("a"), "iter": lambda self: iter((1, 2)), "next": lambda self: 1,
    "getattr": lambda self, name: 5, "contains": lambda self, key: True, "getitem": lambda self, key: 1,
    "setitem": lambda self, key, value: None, "int": lambda self: 1, "float": lambda self: 1.5,
    "index": lambda self: 1, "format": lambda self, spec: "L", "array": lambda self, *args: None,
    "call": lambda self, *args: self, "missing": lambda self, key: 0, "add": lambda self, other: self,
    "neg": lambda self: self, "reversed": lambda self: iter(()), "sizeof": lambda self: 1, "dir": lambda self: [],
    "instancecheck": lambda self, other: False, "subclasscheck": lambda self, other: False,
}
def methods(*left_out):
    def get(self, name):
        log.append("getattribute " + name)
        return object.__getattribute__(self, name)
    found = {f"__{name}__": logging(name, result) for name, result in RESULTS.items() if name not in left_out}
    return {**found, "__getattribute__": get}
Logged = type("Logged", (), methods("array"))
made = Logged()
"""

HOSTILE = {
    "arguments": """\
def f(x, y=None): return x
a = f(made)
b = [f(made, y=made), (made, 1), {'k': made}]
c = made is None
""",
    "operators": "a = made + 1\nb = -made\nc = made == 1\nd = made < 2\ne = 1 in [made]\nf = made[0]\nmade['x'] = 3\n",
    "truth": """\
a = made or 5
b = 1 if made else 2
if made:
    a = 2
while made:
    break
c = not made
d = [x for x in [1, 2] if made]
""",
    "loops": "for x in made:\n    pass\na = [y for y in made]\nb, c = made\nd = sum(made)\ne = list(made)\n",
    "attributes": "a = made.x\nb = made.x.real\nmade.y = 4\nc = made.call(1) if callable(made.x) else made(2)\n",
    "calls": """\
a = str(made)
b = len(made)
c = int(made)
d = max(made, 1)
e = sorted([made, 1])
f = f'{made} {made!r}'
""",
    "keys": """\
d = {made: 1, 'b': 2}
a = d.get('a')
b = d.get('b')
n = 3
d['a'] = n
d['a'] = n + 1
d[made] = n
d[(made, 1)] = n
c = (made, 1) in d
""",
    "mixed lists": """\
xs = [1] * 60 + [made]
a = len(xs)
b = xs[0]
c = {i: x for i, x in enumerate(xs)}
d = list(c)
e = sorted(c)
""",
    "records": """\
rows = [{'a': 1, 'b': made}, {'a': 2, 'b': made}]
a = list(rows)
b = [r for r in rows if r['a'] > 1]
c = len(rows)
""",
    "sets": "s = {1, made}\na = list(s)\nb = frozenset(s)\nc = 1 in s\nfor x in s:\n    pass\n",
    "list": """\
class L(list):
    pass
for n, m in methods('repr').items():
    if n not in ('__hash__',): setattr(L, n, m)
x = L([1, 2])
a = len(x)
b = [y for y in x]
c = x[0]
x[0] = 5
d = x == [1]
""",
    "dict": """\
D = type('D', (dict,), {k: m for k, m in methods().items() if k != '__hash__'})
x = D(a=1)
b = x['a']
x['b'] = 2
c = 'z' in x
d = x or 1
""",
    "default dict": """\
import collections
D = type('D', (collections.defaultdict,), {k: m for k, m in methods('getitem').items() if k != '__hash__'})
x = D(int)
b = x['a']
x['b'] = 2
""",
    "number": """\
F = type('F', (float,), methods())
I = type('I', (int,), methods())
x, y = F(2.5), I(3)
a = x == 1
b = '3' == y
c = [x, y]
d = y or 4
e = int(x)
f = {y: 1}.get(y)
for z in c:
    g = z
""",
    "text": """\
S = type('S', (str,), methods())
x = S('12')
a = x < '9'
b = '9' < x
c = x == 12
d = [x, '1']
e = max(d)
f = x or 'y'
""",
    "named like others": """\
P = type('Timestamp', (), {**methods(), '__module__': 'pandas'})
N = type('float64', (), {**methods(), '__module__': 'numpy'})
A = type('ndarray', (), {**methods(), '__module__': 'numpy.x'})
x, y, z = P(), N(), A()
a = [y, 1.5]
b = str(y)
c = y or 1
d = z or 2
e = x is y
f = (x, y, z)
z[0] = 1.5
""",
    "metaclass": """\
Meta = type('Meta', (type,), {k: m for k, m in methods().items() if k not in ('__call__', '__getattribute__', '__hash__', '__dir__')})
Meta.__hash__ = lambda cls: log.append('class hash') or 5
Meta.__getattribute__ = lambda cls, name: log.append('class ' + name) or type.__getattribute__(cls, name)
C = Meta('C', (), {})
log.clear()
x = C()
def f(v): return v
a = f(x)
b = [x, 1]
c = x is None
d = f(C)
if f(x):
    e = 1
""",
    "module that is not a text": """\
C = type('C', (), {**methods(), '__module__': made})
x = C()
def f(v): return v
a = f(x)
b = [f(x)]
""",
    "class property": """\
class C:
    @property
    def __class__(self):
        log.append('class')
        return float
    def __eq__(self, other):
        log.append('eq')
        return True
    __hash__ = None
x = C()
def f(v): return v
a = f(x)
b = x == 'a'
c = 'a' == x
d = f([x, 1.5])
""",
    "arrays": """\
import numpy as np
class C: pass
for n, m in methods('getattr', 'array', 'len', 'iter', 'getitem').items():
    setattr(C, n, m)
x = C()
a = np.empty(3, dtype=object)
a[0] = x
b = a.copy()
c = a[1:]
d = np.zeros(2, dtype=int)
d[0] = 1.5
e = b.ravel()
f = a.reshape(3, 1)
""",
    "columns": """\
import pandas as pd
class C: pass
for n, m in methods('getattr', 'array', 'len', 'iter', 'getitem', 'getattribute').items():
    setattr(C, n, m)
x = C()
df = pd.DataFrame({'k': [1, 1, 2], 'v': [1.5, None, 3.0]})
df['o'] = pd.Series([x, None, x], dtype=object)
log.clear()
a = df.copy()
b = df[df['k'] > 1]
c = df['o']
d = df.groupby('k')['v'].mean()
e = df['v'].diff()
f = df.head(2)
g = df.merge(df[['k', 'o']], on='k')
h = df.set_index('k')
i = df.dropna()
j = pd.Series([x, x])
m = j.shift(1)
""",
    "index": """\
import pandas as pd
class C: pass
for n, m in methods('getattr', 'array', 'len', 'iter', 'getitem', 'getattribute').items():
    setattr(C, n, m)
s = pd.Series([1, 2], index=[C(), C()])
df = pd.DataFrame({'a': [1, 2]}, index=[C(), C()])
log.clear()
a = s.head(1)
b = s.iloc[0:1]
c = df['a']
d = df.iloc[0:1]
e = s.rename(5)
f = s.sum()
""",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_method_of_the_program_is_called(name):
    source = LOGGED + HOSTILE[name]
    want, got = {"__name__": "program"}, {"__name__": "program"}
    exec(compile(source, "program", "exec"), want)
    probes, code = instrumented(source, [(LOGGED.count("\n") + 1, 10_000)])
    exec(code, got)
    before = len(got["log"])
    assert probes.end()
    assert len(got["log"]) == before  # the facts call none, either
    assert got["log"] == want["log"]
