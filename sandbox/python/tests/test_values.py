import time

import pytest
import tables
import values

NAN = {"type": "float", "repr": "nan"}


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("True", True),
        ("2 ** 200", 2**200),
        ("0.1", 0.1),
        ("5e-324", 5e-324),
        ("float('nan')", NAN),
        ("[float('inf'), -float('inf')]", [{"type": "float", "repr": "inf"}, {"type": "float", "repr": "-inf"}]),
        ("1j", {"type": "complex", "repr": "1j"}),
        ("'é\\U0001f600\\x00\\u2028'", "é\U0001f600\x00\u2028"),
        ("'a\\ud800'", {"type": "str", "repr": "'a\\ud800'"}),
        ("b'x'", {"type": "bytes", "repr": "b'x'"}),
        ("...", {"type": "ellipsis", "repr": "Ellipsis"}),
        ("(1, [2, (3,)])", [1, [2, [3]]]),
        ("{'a': {'b': None}}", {"a": {"b": None}}),
        ("{1: 'x', 2.5: 'y', None: 'z', True: 'w'}", {"1": "w", "2.5": "y", "null": "z"}),
        ("{(1, 2): 3}", {"type": "dict", "repr": "{(1, 2): 3}"}),
        ("{1: 'a', '1': 'b'}", {"type": "dict", "repr": "{1: 'a', '1': 'b'}"}),
        ("{'\\ud800': 1}", {"type": "dict", "repr": "{'\\ud800': 1}"}),
        ("{float('nan'): 1}", {"type": "dict", "repr": "{nan: 1}"}),
        ("[{'ok': 1}, {(1,): 2}]", [{"ok": 1}, {"type": "dict", "repr": "{(1,): 2}"}]),
        ("{3}", {"type": "set", "repr": "{3}"}),
        ("frozenset()", {"type": "frozenset", "repr": "frozenset()"}),
        ("int", {"type": "type", "repr": "<class 'int'>"}),
        ("range(3)", {"type": "range", "repr": "range(0, 3)"}),
        ("timedelta(days=1)", {"type": "timedelta", "repr": "datetime.timedelta(days=1)"}),
        ("datetime(2024, 1, 2, 3, tzinfo=timezone.utc)", "2024-01-02T03:00:00+00:00"),
        ("import datetime as d\n[d.date(2024, 1, 2), d.time(1, 2)]", ["2024-01-02", "01:02:00"]),
        ("{datetime(2024, 1, 2): 1}", {"2024-01-02T00:00:00": 1}),
        ("import uuid\nuuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"),
        (
            "import decimal\n[decimal.Decimal(x) for x in ('1.5', '0.1', '2', '12345678901234567890.123', '1e400', '1e-400')]",
            [1.5, 0.1, 2, "12345678901234567890.123", "1E+400", "1E-400"],
        ),
        ("import decimal\ndecimal.Decimal('NaN')", {"type": "Decimal", "repr": "Decimal('NaN')"}),
        ("import collections\ncollections.OrderedDict([('b', 1), ('a', 2)])", {"b": 1, "a": 2}),
        ("import collections\ncollections.Counter('aab')", {"a": 2, "b": 1}),
        ("import collections\ncollections.namedtuple('P', 'x y')(1, [2])", {"x": 1, "y": [2]}),
        (
            "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: int\n    b: object\nD(1, D(2, None))",
            {"a": 1, "b": {"a": 2, "b": None}},
        ),
        ("import enum\nclass E(enum.IntEnum):\n    A = 1\nE.A", {"type": "E", "repr": "<E.A: 1>"}),
        ("class L(list):\n    def __iter__(self): return iter([9])\nL([1])", [1]),
        (
            "import numpy as np\n[np.int64(3), np.float64(1.5), np.bool_(True), np.str_('s'), np.array(4)[()]]",
            [3, 1.5, True, "s", 4],
        ),
        ("import numpy as np\nnp.float32('nan')", NAN),
        ("import numpy as np\n{np.int64(3): 1, np.str_('k'): 2}", {"3": 1, "k": 2}),
        ("import numpy as np\nnp.datetime64('2024-01-02')", "2024-01-02"),
        (
            "import pandas as pd\n[pd.Timestamp('2024-01-02'), pd.NaT]",
            ["2024-01-02T00:00:00", {"type": "NaTType", "repr": "NaT"}],
        ),
        ("import pandas as pd\npd.NA", {"type": "NAType", "repr": "<NA>"}),
        ("import pandas as pd\npd.DataFrame({'a': [1, 1]}).groupby('a').size().to_dict()", {"1": 2}),
    ],
)
def test_results(run, code, result):
    assert run(code).ok == result


def test_booleans_and_numbers_keep_their_kind(run):
    out = run("[True, 1, 1.0]").ok
    assert [type(x) for x in out] == [bool, int, float]


def test_dataframe(run):
    out = run(
        "import pandas as pd\npd.DataFrame({'n': range(30), 's': ['x'] * 30}, index=[f'r{i}' for i in range(30)])"
    ).ok
    assert out["type"] == "DataFrame"
    assert (out["columns"], out["shape"], out["dtypes"]["n"]) == (["n", "s"], [30, 2], "int64")
    assert out["head"][:2] == [{"n": 0, "s": "x"}, {"n": 1, "s": "x"}]
    assert (len(out["head"]), out["index"][0]) == (30, "r0")
    assert "r29" in out["repr"]


def test_dataframe_with_columns_of_one_name_and_missing_values(run):
    out = run("import pandas as pd\npd.DataFrame([[1.5, None]], columns=['a', 'a'])").ok
    assert out["columns"] == ["a", "a_2"]
    assert out["head"] == [{"a": 1.5, "a_2": None}]


def test_dataframe_with_tuple_columns(run):
    out = run("import pandas as pd\npd.DataFrame({('a', 1): [datetime(2024, 1, 2)]})").ok
    assert out["head"] == [{"('a', 1)": "2024-01-02T00:00:00"}]


def test_dataframe_with_odd_labels(run):
    run("import pandas as pd")
    out = run("pd.DataFrame({'\\ud800': [1], 7 ** 9999: [2], 'a': [3]}).rename_axis('\\udfff')").ok
    assert out["type"] == "DataFrame"
    assert run("pd.Series([1], name='\\ud800')").ok["name"] == "\\ud800"


def test_dataframe_inside_a_dict(run):
    out = run("import pandas as pd\n{'df': pd.DataFrame({'a': []})}").ok
    assert (out["df"]["shape"], out["df"]["head"]) == ([0, 1], [])


def test_series_index_and_array(run):
    series, index, array = run(
        "import pandas as pd, numpy as np\n[pd.Series([1, 2], index=['x', 'y'], name='s'), pd.Index([3, 4]), np.arange(6.0).reshape(2, 3)]"
    ).ok
    assert (series["type"], series["name"], series["index"], series["head"], series["shape"]) == (
        "Series",
        "s",
        ["x", "y"],
        [1, 2],
        [2],
    )
    assert (index["head"], index["shape"]) == ([3, 4], [2])
    assert (array["type"], array["dtype"], array["shape"], array["head"]) == (
        "ndarray",
        "float64",
        [2, 3],
        [0, 1, 2, 3, 4, 5],
    )


# -- hostile values

HOSTILE = """
class Base:
    pass
def raising(kind):
    def repr_(self): raise kind('no')
    return type('R' + kind.__name__, (Base,), {'__repr__': repr_})()
"""


@pytest.mark.parametrize("kind", ["ValueError", "SystemExit", "RecursionError", "MemoryError", "GeneratorExit"])
def test_repr_that_raises(run, kind):
    out = run(HOSTILE + f"raising({kind})").ok
    assert out["type"] == f"R{kind}" and "repr" in out["repr"]


@pytest.mark.parametrize(
    "code",
    [
        "class C:\n    def __repr__(self): return 5\nC()",
        "class C:\n    def __repr__(self): return 'x' * 10_000_000\nC()",
        "class C:\n    def __repr__(self): return '\\ud800' * 5000\nC()",
        "class S(str):\n    def __getitem__(self, i): return 5\n    def __len__(self): return -1\nclass C:\n    def __repr__(self): return S('text')\nC()",
        "class C:\n    def __repr__(self): return repr(self)\nC()",
        "class C:\n    @property\n    def __class__(self): return list\nC()",
        "class M(type):\n    @property\n    def __name__(self): raise ValueError\n    def __getattribute__(self, n): raise ValueError(n)\nclass C(metaclass=M): pass\nC()",
        "class C:\n    __module__ = property(lambda s: 1 / 0)\nC()",
        "class C:\n    __module__ = 'pandas'\n    columns = iloc = shape = 5\nC()",
        "class C(dict):\n    def items(self): raise ValueError\n    def __len__(self): raise ValueError\nC(a=1)",
        "class C:\n    def __getattr__(self, n): return 'x'\nC()",
        "import datetime as d\nclass Z(d.tzinfo):\n    def utcoffset(self, t): raise ValueError\nd.datetime(2024, 1, 1, tzinfo=Z())",
        "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: int\nx = D(1)\ndel x.a\nx",
        "type('x' * 100_000, (), {})()",
    ],
)
def test_hostile_values_are_bounded_text_and_no_error(run, code):
    out = run(code)
    assert out.ok is not None
    assert len(str(out.result)) < 3000


def test_cycles(run):
    out = run("a = [1]\na.append(a)\nd = {'a': a}\nd['d'] = d\n[a, d]").ok
    assert out[0] == [1, {"type": "list", "repr": "<a cycle: it holds itself>"}]
    assert out[1]["d"]["type"] == "dict"


def test_shared_but_not_cyclic_values_are_whole(run):
    assert run("a = [1]\n[a, a, {'a': a}]").ok == [[1], [1], {"a": [1]}]


# -- bounds


def timed(run, code):
    began = time.process_time()
    out = run(code)
    assert time.process_time() - began < 5
    return out


def test_deep_nesting(run):
    out = timed(run, "x = []\nfor _ in range(100_000): x = [x]\nx")
    assert out.ok[0][0][0] is not None


def test_exponential_sharing_in_an_inspected_value_ends(run):
    timed(run, "x = [1]\nfor _ in range(100): x = {'a': x, 'b': (x,)}\ninspect_var('x', x)\n1")
    assert len(run.channel.notes[0]["repr"]) <= 1000


def test_long_list_is_cut_and_says_so(run):
    out = timed(run, "list(range(1_000_000))")
    assert out.ok[:3] == [0, 1, 2]
    assert len(out.ok) + out.truncated["result"] == 1_000_000


def test_long_dict_is_cut_and_says_so(run):
    out = timed(run, "{str(i): i for i in range(300_000)}")
    assert len(out.ok) + out.truncated["result"] == 300_000


def test_long_string_is_cut_and_says_so(run):
    out = timed(run, "'é' * 20_000_000")
    assert (out.ok["type"], out.truncated["result"] > 19_000_000) == ("str", True)


def test_many_long_strings_are_cut(run):
    out = timed(run, "['x' * 1_000_000] * 100")
    assert out.truncated["result"] > 0
    assert len(str(out.result)) < 21 << 20


def test_just_below_the_bound_is_whole(run):
    out = timed(run, "'x' * 10_000_000")
    assert (len(out.ok), out.truncated) == (10_000_000, {})


def test_huge_integers(run):
    out = timed(run, "1 << 40_000_000").ok
    assert out == {"type": "int", "repr": "<int of 40000001 bits>"}


def test_integers_that_json_readers_refuse(run):
    """Python's own reader takes 4300 digits."""
    huge, opaque = "10 ** 4300", {"type": "int", "repr": "<int of 14285 bits>"}
    assert run(f"[{huge} - 1, 1 - {huge}]").ok == [10**4300 - 1, 1 - 10**4300]
    assert run(huge).ok == opaque
    assert run(f"[-({huge}), {{'a': ({huge},)}}]").ok == [opaque, {"a": [opaque]}]
    assert run(f"{{{huge}: 1}}").ok == {"type": "dict", "repr": "{<int of 14285 bits>: 1}"}
    assert run(f"import sys; sys.set_int_max_str_digits(0); debug('', data={huge}); {huge}").ok == opaque
    assert run.channel.notes[-1]["data"] == opaque
    assert run(f"class A:\n def _repr_json_(self): return [{huge}, float('nan'), '\\ud800']\nA()").outputs[0]["data"][
        "application/json"
    ] == [opaque, {"type": "float", "repr": "nan"}, {"type": "str", "repr": "'\\ud800'"}]
    assert run(f"raise SyntaxError('wrong', ('<execution 7>', {huge}, -({huge}), ''))").failure.line == 0
    assert run(f"class PolicyError(Exception): lineno = {huge}\nraise PolicyError").failure.line == 0
    assert "Decimal" in run(f"db_query('SELECT :n', {{'n': {huge}}})").failure.message


def test_digit_limit_of_the_user_is_kept(run):
    assert run("10 ** 4000").ok == 10**4000
    assert run("str(10 ** 5000)").failure.type == "ValueError"


def test_a_huge_set_or_bytes_is_quick(run):
    out = timed(run, "[set(range(500_000)), b'x' * 50_000_000]").ok
    assert "500000 in all" in out[0]["repr"] and len(out[1]["repr"]) <= 1000


# -- previews, which run no code


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, "a", None, {"k": (1,)}], "[1, 'a', None, {'k': (1,)}]"),
        (object(), "<object>"),
        (set(), "set()"),
        (frozenset({1}), "frozenset({1})"),
        ("x" * 1000, "'" + "x" * 196 + "..."),
        pytest.param(1 << 100_000, "<int of 100001 bits>", id="huge int"),
    ],
)
def test_preview(value, text):
    assert values.preview(value) == text


def test_preview_of_a_long_list_is_quick_and_says_how_long_it_is():
    big = list(range(5_000_000))
    began = time.process_time()
    for _ in range(100):
        text = values.preview(big)
    assert time.process_time() - began < 1
    assert text.endswith("... 5000000 in all]") and len(text) <= 230


@pytest.mark.parametrize(
    "cell",
    [
        *(0, -1, 2**63 - 1, -(2**64), 0.1, 1e300, -0.0, float("nan"), float("inf"), True, None),
        *("", "plain", "it's", 'both \' and "', "back\\slash", "tab\t", "\x00", "é", "\ud800", "'" * 60, "\\" * 60),
        *("x" * 59, "x" * 60, "x" * 61, type("Text", (str,), {"__repr__": lambda self: "mine"})("x")),
    ],
)
def test_cell_of_a_table_is_shown_as_the_value(cell):
    assert tables._shown(cell, values.preview) == values.preview(cell, tables.MAX_CELL + 2)
