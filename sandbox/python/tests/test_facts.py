"""Facts about the values of expressions, and programs that do with probes what they do without."""

import ast
import contextlib
import fractions
import io
import re
import subprocess
import sys
import textwrap
import traceback
import warnings

import fact_effects
import fact_probes
import fact_values
import fact_views
import numpy
import pandas
import pytest
from fact_programs import FACTS, SAME

GUEST = fact_probes.__file__.rpartition("/")[0]
SHOWN = 70  # from this score on, a fact says that something was lost, replaced or repeated


def instrumented(source, lines=((1, 10_000),)):
    probes = fact_probes.Probes(source, list(lines))
    return probes, compile(probes.instrument(ast.parse(source)), "program", "exec")


def facts(source, names=None):
    probes, code = instrumented(source)
    try:
        exec(code, {"__name__": "program"} if names is None else names)
    finally:
        found = probes.end()
    return found


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


@pytest.mark.parametrize("kind, words, program, similar", FACTS, ids=[f"{f[0]}: {f[1]}" for f in FACTS])
def test_program_shows_a_fact(kind, words, program, similar):
    found = [f for f in facts(program) if f["kind"] == kind]
    shown = [f for f in found if words in f["text"]]
    assert shown, found
    least = max(f["score"] for f in shown)
    assert [f for f in facts(similar) if f["score"] >= SHOWN or f["kind"] == kind and f["score"] >= least] == []


def test_fact_has_a_place_and_a_count():
    fact = next(
        f for f in facts("d = {'k': 1}\nfor x in [1.5, 2.5]:\n    y = len('é'); z = int(x)\n") if f["kind"] == "cut"
    )
    assert fact == {
        "line": 3,
        "column": 23,
        "code": "int(x)",
        "kind": "cut",
        "score": 62,
        "text": "2 of 2 values lost their fraction as integers (int), the most: 1.5 -> 1",
        "times": 2,
    }


def test_texts_are_one_line_and_bounded():
    for _, _, program, _ in FACTS:
        for fact in facts(program):
            assert 0 < len(fact["text"]) <= 400 and len(fact["code"]) <= 80 and "\n" not in fact["code"], fact
            assert not re.search(r"\b1 (rows|values|zeros|keys|columns|labels|items)\b(?! of)", fact["text"]), fact


def test_facts_of_the_given_lines_only():
    probes, code = instrumented("a = [1.5]\nb = int(a[0])\nc = int(a[0])\n", [(2, 2)])
    exec(code, {})
    assert {f["line"] for f in probes.end()} == {2}


def test_facts_are_sorted_and_few():
    source = "".join(f"x{n} = max([{n}, 2])\n" for n in range(1000))
    found = facts(source)
    assert len(found) == fact_probes.MAX_REPORTED
    assert [f["score"] for f in found] == sorted((f["score"] for f in found), reverse=True)


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


def test_generators_and_iterators_are_not_consumed():
    names = {"__name__": "program"}
    facts(
        textwrap.dedent("""\
            import itertools
            def one(x): return x
            gen = one(n * 2 for n in range(4))
            zipped, mapped, endless = one(zip("ab", "cd")), one(map(str, [1, 2])), one(itertools.count())
            files = one(iter([1, 2, 3]))
            got = [one(gen), one(endless), (one(zipped), one(mapped))]
            keys = one({"a": 1}.keys())
            cycle = itertools.cycle([1])
            """),
        names,
    )
    assert list(names["gen"]) == [0, 2, 4, 6] and list(names["files"]) == [1, 2, 3]
    assert list(names["zipped"]) == [("a", "c"), ("b", "d")] and list(names["mapped"]) == ["1", "2"]
    assert next(names["endless"]) == 0


HUGE = {
    "list": "[1] * 3_000_000",
    "tuple": "(None,) * 3_000_000",
    "list of lists": "[[1] * 1000] * 300_000",
    "records": "[dict.fromkeys(map(str, range(100)), 1)] * 150_000",
    "dict": "dict.fromkeys(range(1_500_000), 1.5)",
    "set": "set(range(1_500_000))",
    "string": "'ab' * 20_000_000",
    "bytes": "b'ab' * 20_000_000",
    "integer": "1 << 8_000_000",
    "fraction": "fractions.Fraction(1 << 8_000_000, 3)",
    "array": "numpy.zeros((6_000, 6_000), dtype='int8')",
    "wide frame": "pandas.DataFrame(numpy.zeros((1000, 2000)))",
    "long frame": "pandas.DataFrame({'a': numpy.zeros(11_000_000, dtype='int8'), 'b': 1})",
    "objects": "pandas.Series([1, 'a'] * 150_000, dtype=object)",
    "range": "range(10**15)",
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_values_are_bounded(name):
    value = eval(HUGE[name], {"fractions": fractions, "numpy": numpy, "pandas": pandas})
    view = fact_views.table_of(value)
    most = 10_000_000 if name in ("array", "wide frame", "long frame") else 400_000
    assert view is None or view.n * len(view.names) <= most and len(view.names) <= 40
    assert len(fact_values.show(value)) <= 200
    found = facts("def f(x): return x\nfor _ in range(50):\n    y = f(xs)\n    z = [f(xs), 1]\n", {"xs": value})
    assert all(len(f["text"]) <= 400 for f in found)


def test_work_of_a_run_is_bounded(monkeypatch):
    looks = []
    original = fact_views.table_of
    monkeypatch.setattr(fact_effects, "table_of", lambda value: looks.append(1) or original(value))
    facts("xs = list(range(200_000))\ndef f(x): return x\n" + "y = f(xs)\n" * 100)
    assert 10 < len(looks) < 60


def test_long_strings_are_not_kept():
    source = "def f(x): return x.upper()\nfor n in range(50):\n    y = f('a' * 1_000_000 + str(n)).lower()\n"
    probes, code = instrumented(source)
    exec(code, {})
    for probe in probes._probes.values():
        if probe.scalars is not None:
            kept = [probe.scalars.first, probe.scalars.low, probe.scalars.high, *(probe.scalars.distinct or ())]
            assert all(len(str(each)) < 100 for each in kept)
        if probe.pairs is not None:
            kept = [each for pair in (probe.pairs.first, probe.pairs.largest) if pair for each in pair]
            assert all(len(str(each)) < 100 for each in kept)
    probes.end()


def test_works_without_numpy_and_pandas():
    program = textwrap.dedent(f"""\
        import ast, sys
        sys.path.insert(0, {GUEST!r})
        sys.modules["numpy"] = sys.modules["pandas"] = None
        import fact_probes
        source = "xs = [1.5, 2.5]\\nys = [int(x) for x in xs]\\nd = {{}}\\nfor x in xs:\\n    d[x] = max(xs)\\n"
        probes = fact_probes.Probes(source, [(1, 9)])
        exec(compile(probes.instrument(ast.parse(source)), "p", "exec"), {{}})
        print(sorted({{f["kind"] for f in probes.end()}}), [m for m in ("numpy", "pandas") if sys.modules[m]])
        """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['cut', 'reduced', 'value'] []\n"


def test_functions_work_after_the_end():
    names = {"__name__": "program"}
    facts("def f(x):\n    return int(x) + 1\n", names)
    assert names["f"](1.5) == 2
    assert facts("y = max([1, 2])\n")  # the probes of another run
    assert names["f"](2.5) == 3


def test_functions_of_an_earlier_run_leave_no_facts():
    names = {"__name__": "program"}
    facts("def f(x):\n    return int(x)\n", names)
    found = facts("y = [f(1.5), f(2.5)]\n", names)
    assert {(f["code"], f["times"]) for f in found} == {("f(1.5)", 1), ("f(2.5)", 1)}


def test_tasks_do_not_mix_their_values():
    """The parts of an expression of one task are not those of another."""
    found = facts(
        textwrap.dedent("""\
            import asyncio
            async def wait(n):
                for _ in range(n):
                    await asyncio.sleep(0)
                return n
            async def work(n):
                text = str(n).join([str(n), str(await wait(3 - n))])
                return text, max(n, await wait(n)), (1 if n == await wait(n) else 0)
            async def main():
                return await asyncio.gather(*(work(n) for n in range(3)))
            print(asyncio.run(main()))
            """)
    )
    assert [f for f in found if f["score"] >= SHOWN] == []


def test_exception_leaves_no_values_behind():
    """After an exception, the parts that were evaluated belong to no later value."""
    source = textwrap.dedent("""\
        def fail(x): raise ValueError
        out = []
        def f(x, y):
            try:
                return int(fail(y) if x < 2 else y)
            except ValueError:
                return 0
        for x in range(4):
            out.append(f(x, x + 0.5))
        """)
    found = [f["text"] for f in facts(source) if f["kind"] == "cut"]
    assert found == ["2 of 2 values lost their fraction as integers (int), the most: 2.5 -> 2"]


def test_reads_no_clock(monkeypatch):
    names = {"__name__": "program", "pd": pandas}
    asked = []

    class Timestamp(pandas.Timestamp):
        def __new__(cls, value, *args):
            asked.append(value)
            return pandas.Timestamp.__base__.__new__(cls, value, *args)

    source = "s = pd.Series(pd.to_datetime(['2024-01-01 10:00', '2024-01-02 11:00']))\nend = 'today'\na = s[s <= end]\n"
    probes, code = instrumented(source)
    monkeypatch.setattr(pandas, "Timestamp", Timestamp)
    exec(code, names)
    probes.end()
    assert "today" not in asked


def test_code_of_a_fact_is_that_of_its_line():
    found = facts("x = 1\n\x0c\ny = max([x,\n  2])\n")
    assert {(f["line"], f["code"]) for f in found if f["line"] == 3} >= {(3, "max([x, 2])"), (3, "x")}


def test_missing_decimals_are_missing():
    found = facts("import decimal\nfor x in ['1.5', 'NaN', 'sNaN']:\n    y = decimal.Decimal(x)\n")
    assert "3 values: 3 Decimal, 2 missing (NaN), the others 1.5" in [f["text"] for f in found]


def test_looks_are_quiet():
    """A look hides its warnings, and leaves the warnings of the program as they are."""
    registry = {}

    def warn(text="w"):
        warnings.warn_explicit(text, UserWarning, "p.py", 1, registry=registry)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        filters = warnings.filters
        warn()
        with numpy.errstate(all="raise"), fact_effects._Quiet():
            warn("of the look")
            numpy.array([1.0]) / 0
        assert warnings.filters is filters
        warn()
        assert [str(w.message) for w in seen] == ["w"]


def test_failure_of_a_look_costs_a_fact_only(monkeypatch):
    def fail(self, probe, value):
        raise ValueError

    monkeypatch.setattr(fact_effects.Watcher, "_look", fail)
    names = {}
    assert facts("x = max([1, 2])\ny = x + 1\n", names) == []
    assert names["y"] == 3


def test_session_returns_facts(run):
    job = {"execution_id": "e1", "code": "xs = [1.5, 2.5]\n[int(x) for x in xs]", "context": {}, "facts": [[2, 2]]}
    outcome = run.session.run(job)
    assert outcome["exception"] is None
    assert [(f["kind"], f["line"]) for f in outcome["facts"]][0] == ("cut", 2)
    assert "facts" not in run.session.run({"execution_id": "e2", "code": "[int(x) for x in xs]", "context": {}})


# Programs whose facts once said something that was not so, with a text that must not be there.
UNTRUE = {
    "rows that are picked": ("df = pd.DataFrame({'a': [1, 2, 3], 'b': [4, 5, 6]})\nx = df.iloc[0]\n", "left out"),
    "labels of either side": ("x = pd.Series([1, 2], [0, 1]) + pd.Series([1, 2], [1, 2])\n", "multiplied"),
    "rows of a summary": ("x = pd.DataFrame({'a': [1, 2, 3]}).describe()\n", "multiplied"),
    "counts": ("x = pd.Series([1, 2, 3]).value_counts()\n", "all became"),
    "another column than the key": (
        "a = pd.DataFrame({'id': [1, 2], 'o': [5, 5]})\nx = a.merge(a, on='id')\n",
        "repeats",
    ),
    "all rows": ("a = pd.DataFrame({'k': [1, 1]})\nx = a.merge(a, how='cross')\n", "repeats"),
    "rows of another order": (
        "a = pd.DataFrame({'k': list('xyz')})\nb = pd.DataFrame({'k': list('xBC'), 'v': [1.5, 2.5, 3.5]})\n"
        "x = a.merge(b, how='left')\n",
        "2.5",
    ),
    "rows at the end": (
        "df = pd.DataFrame({'g': [1, 1], 'v': [None, 2.0]})\nx = df.groupby('g').tail(1)\n",
        "skipped",
    ),
    "values that stay missing": ("x = pd.Series([None, 5.0, None]).ffill()\n", "nan"),
    "a product of matrices": ("x = np.ones((4, 2)) @ np.ones((2, 8))\n", "broadcasting"),
    "places": ("x = np.array([[1, 5], [7, 2]]).argmin(1)\n", "none before"),
    "a list that is changed": ("h = [3, 1, 2]\nx = h.pop()\n", "computed from"),
    "a recursion": ("def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)\nx = f(5)\n", "changed none"),
    "the order of texts": ("x = [int(t) for t in ['99', '449', '1000']]\n", "the largest"),
    "keys": ("x = list({'a': 1, 'b': 2})\n", "type changed"),
    "positions": ("s = pd.Series([1, 2, 3], list('abc'))\nx = s.iloc[0:2]\n", "both included"),
    "a time zone": (
        "s = pd.Series(pd.date_range('2024-01-01', periods=3))\nx = s.dt.tz_localize('UTC')\n",
        "changed none",
    ),
    "values of several types": ("x = [v for v in ['a', '(', 1]]\n", " to "),
    "a truth among missing values": ("x = [v or None for v in [None, True]]\n", "always"),
}


@pytest.mark.parametrize("name", UNTRUE)
def test_facts_are_true(name):
    program, untrue = UNTRUE[name]
    found = facts("import numpy as np\nimport pandas as pd\n" + program)
    assert found
    assert [f for f in found if untrue in f["text"]] == []


def test_median_is_that_of_the_middle_values():
    texts = [f["text"] for f in facts("a = [1, 2, 3, 10]\nx = sum(a)\n")]
    assert "16, computed from 4 values (1 to 10), the median 2.5" in texts


def test_facts_of_long_loops_say_what_they_looked_at():
    texts = [f["text"] for f in facts("d = {}\nfor i in range(12_000):\n    d[i % 3] = i\n")]
    assert [t for t in texts if t.startswith("the first 10000 assignments to 3 keys")]
