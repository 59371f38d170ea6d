"""Facts about the values of expressions."""

import fractions
import re
import subprocess
import sys
import textwrap
import warnings

import fact_effects
import fact_probes
import fact_values
import fact_views
import numpy
import pandas
import pytest
from fact_programs import FACTS
from probing import facts, instrumented

GUEST = fact_probes.__file__.rpartition("/")[0]
SHOWN = 70  # from this score on, a fact says that something was lost, replaced or repeated


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


def test_facts_that_say_nothing_are_not_shown():
    """A call that changes a list and returns None, the same number as a float, and truth values without a count."""
    program = (
        "from decimal import Decimal\nout = []\nfor n in range(6):\n    out.append(n)\n"
        "    y = float(Decimal('40476.37'))\n    big = n > 3\n    none = {}.get(n)\n"
    )
    texts = {f["code"]: f["text"] for f in facts(program) if f["kind"] in ("value", "pairs")}
    assert "out.append(n)" not in texts
    assert not any(" -> " in text for text in texts.values()), texts
    assert texts["n > 3"] == "6 values: 2 True, 4 False"
    assert texts["{}.get(n)"] == "6 values: 6 None"  # it says that no key was there


def test_facts_of_the_given_lines_only():
    probes, code = instrumented("a = [1.5]\nb = int(a[0])\nc = int(a[0])\n", [(2, 2)])
    exec(code, {})
    assert {f["line"] for f in probes.end()} == {2}


def test_facts_are_sorted_and_few():
    source = "".join(f"x{n} = max([{n}, 2])\n" for n in range(1000))
    found = facts(source)
    assert len(found) == fact_probes.MAX_REPORTED
    assert [f["score"] for f in found] == sorted((f["score"] for f in found), reverse=True)


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
        with numpy.errstate(all="raise"), fact_effects.Quiet():
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
    "a length": ("h = [3, 300, 2]\nx = len(h)\n", "the median"),
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
