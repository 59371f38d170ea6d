"""Programs of all kinds of syntax, which do with probes what they do without."""

SAME = {
    "async": """
import asyncio
async def double(x):
    await asyncio.sleep(0)
    return x * 2
async def main():
    return [await double(1), await double(x=2), *(await asyncio.gather(double(3), double(4)))]
result = asyncio.run(main())
print(result)
""",
    "async generator": """
import asyncio
async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i + 1
async def main():
    found = [x * y async for x in numbers(4) if x % 2 for y in (1, 2) if x + y > 2]
    async for each in numbers(2):
        found.append(each)
    return found, {x: x + 1 async for x in numbers(2)}
print(asyncio.run(main()))
""",
    "async with": """
import asyncio
class Manager:
    async def __aenter__(self):
        return 7
    async def __aexit__(self, kind, error, trace):
        print(kind, error)
        return True
async def main():
    async with Manager() as n, Manager() as m:
        print(n + m)
        raise ValueError("x" * n)
    future = asyncio.get_running_loop().create_future()
    future.set_result(5)
    return await future
print(asyncio.run(main()))
""",
    "interleaved tasks": """
import asyncio
log = []
async def later(x):
    for _ in range(x):
        await asyncio.sleep(0)
    return x
async def work(n):
    total = log.append(n) or n + await later(n) * (await later(3 - n)) + int(str(n) + str(await later(1)))
    return total
async def main():
    return await asyncio.gather(*(work(n) for n in range(4)))
print(asyncio.run(main()), log)
""",
    "generator": """
def count(n):
    while n > 0:
        got = yield n
        n -= got or 1
    return "end"
def outer():
    end = yield from count(3)
    yield end
it = count(5)
print(next(it), it.send(2), list(it), list(outer()))
lazy = (print("seen", x) or x * 2 for x in range(3) if x != 1)
print("before")
print(sum(lazy), sum(lazy))
""",
    "yield expressions": """
def f():
    x = yield
    y = (yield x) + (yield)
    print((yield y), [(yield 1), (yield 2)])
it = f()
next(it)
print(it.send(3), it.send(4), it.send(5))
rest = [it.send(n) for n in (6, 7)]
print(rest)
try:
    it.send(8)
except StopIteration as end:
    print("end", end.value)
""",
    "comprehensions": """
rows = [{"a": i, "b": i * i} for i in range(6)]
evens = [r["b"] for r in rows if r["a"] % 2 == 0 if r["b"] > 0]
pairs = {(x, y) for x in range(3) for y in range(x) if x != y}
index = {r["a"]: r for r in rows if r}
nested = [[y * 2 for y in range(x)] for x in range(3)]
print(evens, sorted(pairs), index, nested, [*evens, *nested])
""",
    "comprehension scope": """
x = "outer"
fs = [lambda: x for x in range(3)]
class C:
    n = 3
    squares = [i * i for i in range(n)]
    names = {k: v for k, v in zip("ab", squares)}
print(x, [f() for f in fs], C.squares, C.names)
""",
    "walrus": """
import re
if (m := re.match(r"(\\d+)", "12ab")) and (n := int(m.group(1))) > 3:
    print(m.group(), n)
while (n := n - 4) > 0:
    print(n)
big = [y for x in range(5) if (y := x * 2) > 3]
print(big, y, (z := 5) + z)
""",
    "match": """
class Point:
    __match_args__ = ("x", "y")
    def __init__(self, x, y):
        self.x, self.y = x, y
def kind(value, limit=3):
    match value:
        case 0 | None:
            return "zero"
        case [first, *rest] if len(rest) > limit:
            return first, "long"
        case {"a": a, **more}:
            return a, more
        case Point(x, y) if x == y:
            return x + y
        case str() as text:
            return text.upper()
        case _:
            return "other"
print([kind(v) for v in (0, [1, 2, 3, 4, 5], {"a": 1, "b": 2}, Point(2, 2), Point(1, 2), "x", 5.5)])
match 1, "b":
    case n, t:
        print(n, t)
""",
    "class body": """
import dataclasses, enum
class Colour(enum.Enum):
    RED = 1
    BLUE = RED + 1
class Number(enum.IntEnum):
    ONE = enum.auto()
@dataclasses.dataclass(order=True)
class Item:
    name: str
    price: float = 2.5 * 2
    tags: list = dataclasses.field(default_factory=list)
class Meta(type):
    def __new__(mcls, name, bases, names, **options):
        print(name, options, sorted(k for k in names if not k.startswith("__")))
        return super().__new__(mcls, name, bases, names)
class Base(metaclass=Meta, flag=1 + 1):
    x = [1, 2]
    y = x[0] + len(x)
    if y > 2:
        z = y
print(Colour.BLUE, Number.ONE + 1, Item("a") < Item("b"), Item("a"), Base.y)
""",
    "super": """
class A:
    def __init__(self, n):
        self.n = n
    def get(self, k=1):
        return self.n * k
class B(A):
    def __init__(self, n):
        super().__init__(n + 1)
        self.__secret = [n]
        self.__secret[0] = self.n
    def get(self, k=1):
        own = super()
        return super().get(k=k + 1) + own.get(2) + self.__secret[0] + len(__class__.__mro__)
print(B(3).get(), vars(B(3)))
""",
    "decorators": """
import functools
def twice(n):
    def wrap(f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            return [f(*args, **kwargs) for _ in range(n)]
        return inner
    return wrap
@twice(n=1 + 1)
@functools.lru_cache(maxsize=None)
def add(a, b=2, *rest, c, **more):
    '''Adds.'''
    return a + b + c + sum(rest) + sum(more.values())
class C:
    @property
    def p(self):
        return self._p
    @p.setter
    def p(self, value):
        self._p = value + 1
    @staticmethod
    def s(x): return x
    @classmethod
    def k(cls): return cls.__name__
c = C()
c.p = 4
print(add(1, c=3), add(1, 2, 3, c=4, d=5), add.__doc__, c.p, C.s(2), C.k())
""",
    "star arguments": """
def show(*args, sep=",", **kwargs):
    return sep.join(map(str, args)), kwargs
xs, ks = [1, 2], {"sep": "-", "z": 1}
print(show(*xs, 3, *"ab", **ks), show(*(x + 1 for x in xs), **{"a": 1}, b=len(xs)))
first, *middle, last = *xs, 3, 4
(a, b), c = (1, 2), [3]
print(first, middle, last, a, b, c, [*xs, *xs], {**ks, "q": 2}, {*xs})
""",
    "f-strings": """
x, width, name = 3.14159, 10, "n"
print(f"{x:.2f} {x!r:>{width}} {name=} {len(name) + 1:03d} {{}} {'a' if x > 3 else 'b'} {[i for i in range(2)]}")
print("%s %d" % (name, x), "{0} {k}".format(x, k=width))
""",
    "slices": """
xs = list(range(10))
print(xs[1:3], xs[::-1], xs[-2:], xs[len(xs) - 3], xs[xs[1]:xs[4]:xs[2]])
xs[2:4] = ["a", "b", "c"]
xs[0], xs[-1] = xs[-1], xs[0]
del xs[1:3], xs[0]
class Grid:
    def __getitem__(self, key): return key
    def __setitem__(self, key, value): print(key, value)
    def __delitem__(self, key): print("del", key)
g = Grid()
g[1, 2] = g[1:2, ..., 3]
g[1:2] = 3
g[g[0]] = g["k"]
del g[4]
print(xs, g[()], g[None])
""",
    "augmented assignment": """
class Box:
    def __init__(self): self.items = []
    def __iadd__(self, other):
        print("iadd", other)
        self.items += [other]
        return self
b = Box()
b += 1 + 1
d = {"a": [1]}
d["a"] += [2] * 2
d["n"] = d.get("n", 0) + 1
d["n"] **= 3
x = 5
x //= 2; x |= 8; x <<= 1
b.count = 1
b.count += x
print(b.items, d, x, b.count)
""",
    "order of evaluation": """
log = []
def say(x):
    log.append(x)
    return x
d = {}
def table(): log.append("table"); return d
table()[say("key")] = say("value")
table()[say("k2")], say({})["z"] = say(1), say(2)
table()[say("key")] += say("more")
a = say(1) if say(0) else say(2)
b = say(0) or say("") or say("last")
c = say(1) and say(0) and say("never")
e = say(1) < say(3) < say(2) < say(9)
f = {say("k"): say("v"), **say({})}
g = print(say(1), *say([2]), sep=say("-"), **say({}))
print(log, d, a, b, c, e, f, g)
""",
    "chained comparison": """
def f(x): print("f", x); return x
print(f(1) < f(2) < f(3), f(3) < f(1) < f(9), 1 < 2 in [2], f(1) is not None is not False, not f(0) == 0)
print("a" in "abc" != "b", [1] == [1] != [2])
""",
    "lambda": """
key = lambda r, k=1: r[k] or 0
rows = [(1, 3), (2, None), (3, 1)]
print(sorted(rows, key=key))
print(list(map(lambda x: x * 2, filter(lambda x: x, [0, 1, 2]))), (lambda *a, **k: (a, k))(1, b=2))
""",
    "nested functions": """
def outer(n):
    total = 0
    def add(k):
        nonlocal total
        total += k * n
        def deep():
            return total + n + k
        return deep()
    return [add(i) for i in range(3)], total, sorted(locals())
calls = 0
def count():
    global calls, made
    calls += 1
    made = [calls]
    return calls
print(outer(2), count() + count(), made)
""",
    "recursion": """
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def flat(x): return [z for y in x for z in (flat(y) if isinstance(y, list) else [y])]
memo = {}
def fact(n):
    memo[n] = 1 if n == 0 else n * fact(n - 1)
    return memo[n]
print(fib(12), flat([1, [2, [3, 4]], 5]), fact(5), memo)
""",
    "recursion limit": """
def down(n): return down(n + 1)
try:
    down(0)
except RecursionError as error:
    print(type(error).__name__)
print([x + 1 for x in (1, 2)])
""",
    "try": """
def f(x):
    try:
        return 10 / x
    except ZeroDivisionError as error:
        print("zero", error)
        return str(error)
    except (TypeError, ValueError):
        return "type"
    else:
        print("never")
    finally:
        print("finally", x)
print(f(2), f(0), f("a"))
def g():
    for i in range(3):
        try:
            if i == 1: continue
            yield i
        finally:
            print("left", i)
print(list(g()))
try:
    try:
        {}["k"]
    except KeyError as e:
        raise ValueError("from", 1 + 1) from e
except ValueError as e:
    print(repr(e), repr(e.__cause__))
""",
    "exception groups": """
try:
    raise ExceptionGroup("g", [ValueError(1 + 1), TypeError("t")])
except* ValueError as g:
    print(g.exceptions)
except* TypeError as g:
    print(len(g.exceptions))
""",
    "while": """
n, seen = 10, []
while n:
    n -= 3 if n > 5 else 1
    if n in (4, 2): continue
    seen.append(n)
    if len(seen) > 10: break
else:
    seen.append("else")
for x in range(3):
    if x > 5: break
else:
    print("no break", seen)
""",
    "global and del": """
x, y, z = 1, [1, 2, 3], {"a": 1, "b": 2}
def f():
    global x, w
    w = x + 1
    del x
f()
del y[0], z["a"]
print(w, y, z, "x" in globals())
print(sorted(k for k in globals() if len(k) == 1), sorted(vars()) == sorted(globals()), eval("w + 1"))
exec("v = w * 2")
print(v, [k for k in dir() if len(k) == 1])
""",
    "with": """
import contextlib, io
@contextlib.contextmanager
def tag(name):
    print("<" + name + ">")
    try:
        yield name * 2
    finally:
        print("</" + name + ">")
with tag("a") as a, tag("b") as (b, c), contextlib.suppress(KeyError):
    print(a, b, c)
    {}["missing"]
with io.StringIO() as f, contextlib.redirect_stdout(f):
    print("hidden")
    text = f.getvalue()
print(repr(text))
""",
    "string operators": """
text = "a,b;c" "d"
parts = text.replace(";", ",").split(",")
print(parts, ",".join(parts), "b" * 3 + "c", -len(text), +1, ~5, 7 // 2, 7 % 3, 2 ** 3, 1 << 3, 6 & 3, 6 | 1, 6 ^ 2)
print(not parts, not [], "x" if parts else "y", (1, 2) + (3,), b"ab"[0], 1_000, 0xFF, 1j * 1j)
""",
    "annotations": """
from __future__ import annotations
from typing import Optional
x: int = 1 + 1
y: Optional[Missing]
class C:
    z: list[int] = [x]
def f(a: int = x, *, b: "str" = "s") -> Unknown[a]:
    c: Nothing = a
    return c, b
print(x, f(), C.z, __annotations__, f.__annotations__)
""",
    "defaults": """
def f(x, items=[], n=len("abc")):
    items.append(x)
    return items, n
print(f(1), f(2), f.__defaults__)
""",
    "assert": """
def check(x):
    assert x > 1, f"{x} is too small"
    return x
print(check(2))
check(1)
""",
    "division": """
def ratio(a, b):
    return a / b
values = [4, 2, 0]
print([ratio(8, v) for v in values[:2]])
print(ratio(1,
    values[2]))
""",
    "name error": """
total = 1
for x in [1, 2]:
    total += x
print(totl + 1)
""",
    "attribute error": """
rows = [{"a": 1}, None]
print([r.get("a") for r in rows])
""",
    "key error in a store": """
d = {"a": {}}
d["a"]["x"] = 1
d["b"]["x"] = d["a"]["x"] + 1
""",
    "raise in a finally": """
def f():
    try:
        int("x")
    finally:
        [][1]
f()
""",
    "sys.exit": """
import sys
print("before")
sys.exit(3 + 1)
""",
    "unbound": """
def f():
    if False:
        x = 1
    return x + 1
f()
""",
    "iterators": """
import itertools
it = iter([1, 2, 3])
pairs = zip(it, it)
endless = itertools.count(1)
print(list(pairs), next(it, "end"), list(itertools.islice(endless, 3)), next(endless))
m = map(str, endless)
print(next(m), next(m), any(x > 9 for x in endless), next(endless), 20 in endless, next(endless))
""",
    "files": """
import io, json, csv
f = io.StringIO("a,b\\n1,2\\n3,4\\n")
rows = list(csv.DictReader(f))
print(rows, f.read(), json.loads(json.dumps({"a": [1, None, True]})))
""",
    "threads": """
import concurrent.futures, threading
lock, total = threading.Lock(), [0]
def add(n):
    with lock:
        total[0] += n * 2
    return str(n) + "!"
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(add, range(50))) == [f"{n}!" for n in range(50)], total)
""",
    "finalizers": """
import contextlib, gc
class Thing:
    def __init__(self, name): self.name = name
    def __del__(self): print("del", self.name)
    def use(self, other): raise ValueError(self.name)
def show(x): return x.name
def fail(x, y=None): raise ValueError
def numbers(thing):
    try:
        yield 1
    finally:
        print("closed")
print(show(Thing("a")))
with contextlib.suppress(ValueError):
    fail(Thing("b"), list((Thing("c"),)))
print("after b")
with contextlib.suppress(ValueError):
    fail(numbers(1), next(numbers(2)))
print("after numbers")
with contextlib.suppress(ValueError):
    Thing("d").use(Thing("e"))
print("after d")
names = [show(t) for t in [Thing("f"), Thing("g")] if t.name]
lazy = (show(t) for t in [Thing("h")])
print(next(lazy))
del lazy
x = Thing("i") or 1
x = None
print("end", names)
""",
    "weak references": """
import weakref
class Thing:
    def name(self): return self
refs = weakref.WeakSet()
def make():
    t = Thing()
    refs.add(t)
    return t.name()
def lost(x): return len(refs)
print(lost(make()), len(refs), [lost(make()) for _ in range(2)], len(refs))
""",
    "warnings": """
import warnings
shown, show = [], warnings.showwarning
warnings.showwarning = lambda message, *rest: shown.append(str(message))
warnings.simplefilter("default")
import numpy as np, pandas as pd
def old(n):
    warnings.warn("old", DeprecationWarning)
    return n
s = pd.Series([1.0, np.inf, np.nan])
for n in range(20):
    old(n)
    t = s.round()
    a = np.array([1, 2])
    a[0] = n / 2
    u = s.astype(str).astype("float")
print(shown)
warnings.showwarning = show
""",
    "decimals": """
import decimal, fractions
context = decimal.getcontext()
context.clear_flags()
xs = [decimal.Decimal("1.5"), decimal.Decimal("NaN"), 3, fractions.Fraction(1, 3)]
out = []
for x in xs:
    out.append(str(x))
print(out, [f for f, v in context.flags.items() if v], decimal.Decimal("2.675").quantize(decimal.Decimal("0.01")))
""",
    "numpy": """
import numpy as np
a = np.arange(12).reshape(3, 4)
a[0, 1] = 50
a[a > 8] = -1
a[1] = a[2] * 2
b = a.astype(float) / 3
b[0] = np.nan
np.add.at(b, (0, 0), 1.5)
print(a.sum(axis=0), b.shape, np.nanmean(b), a[..., 1], a[:, None].shape, (a @ a.T)[0])
view = a[0]
view[0] = 99
print(a[0, 0], a.T.base is None)
""",
    "pandas": """
import pandas as pd
df = pd.DataFrame({"k": ["a", "b", "a"], "v": [1.5, None, 3.0], "o": [[1], None, {"x": 1}]})
df["w"] = df["v"].fillna(0) * 2
df.loc[df["k"] == "b", "w"] = -1
df["n"] = df.groupby("k")["v"].transform("sum")
part = df[["k", "w"]]
part["w"] = 0
for i, row in df.iterrows():
    df.loc[i, "z"] = str(row["k"]) * 2
print(df.to_string(), part.to_string())
print(df.merge(df, on="k").shape, df.pivot_table(index="k", values="w").to_dict())
print(df.apply(lambda r: r["w"] + 1, axis=1).tolist())
""",
    "chained assignment": """
import io, sys, warnings
import pandas as pd
df = pd.DataFrame({"a": [1, 2, 3]})
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    n = 10
    df["a"][0] = n
    df["a"].iloc[0] = n + 1
    df[df["a"] > 1]["a"] = n
print([w.category.__name__ for w in seen], df["a"].tolist())
""",
    "form feed": """
x = 1
\x0c
y = x + 1; z = "é" + str(y)
print(y, z)
print(y.missing)
""",
    "signals": """
import signal
hits = []
def handler(number, frame):
    hits.append(len(hits) + 1)
signal.signal(signal.SIGALRM, handler)
for n in range(3):
    signal.raise_signal(signal.SIGALRM)
signal.signal(signal.SIGALRM, signal.SIG_DFL)
print(hits)
""",
    "long chain": "x = 0\n" + "y = " + " + ".join(["x"] * 900) + "\nprint(y)\n",
    "many branches": "x = 150\nif x == -1:\n    y = 1\n"
    + "".join(f"elif x == {n}:\n    y = {n}\n" for n in range(480)) + "print(y)\n",
}  # fmt: skip
