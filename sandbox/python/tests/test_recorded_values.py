"""Values of data analysis in recordings, as live values and in reports of failures: one text, and no user code."""

import functools
import sys

import programs
import pytest
import values

RECORDERS = ["python", *(["extension"] if f"{sys.version_info[0]}.{sys.version_info[1]}" in programs.VERSIONS else [])]


@pytest.fixture(scope="module", params=RECORDERS)
def recorder(request):
    return request.param


def record(recorder, code):
    plain, watched = _recorded(recorder)[code]
    assert plain["same"] == watched["same"] and watched["same"]["error"] is None
    assert watched["reader"].lost == []
    return watched["reader"]


@functools.cache
def _recorded(recorder):
    """Returns the recordings of all programs, by their code."""
    path = str(programs.extension("recorder_fast", sys.executable).parent) if recorder == "extension" else ""
    codes = [f"x = {e}" for e in VALUES] + [change_of(name) for name in CHANGES]
    codes += [FRAME, *LARGE, *MANY_ROWS, *LOOPS, HOSTILE]
    jobs = {code: {"name": code, "code": IMPORTS + code} for code in codes}
    return programs.Recordings(sys.executable, jobs, path)


def shown(recorder, code):
    """Returns what a recording has of the variable x at the end."""
    return record(recorder, code).stack()[-1]["x"]


IMPORTS = "import numpy as np, pandas as pd\n"

# Expressions, and the text of their values. A scalar is recorded as itself.
VALUES = {
    "pd.DataFrame({'amt': [1.5, 2.5]})['amt'].mean()": "2.0",
    "np.int64(3)": "3",
    "np.uint8(3)": "3",
    "np.float32(1.5)": "1.5",
    "np.bool_(True)": "True",
    "np.datetime64('2024-01-02')": "np.datetime64('2024-01-02')",
    "pd.Timestamp('2024-01-02')": "Timestamp('2024-01-02 00:00:00')",
    "pd.Timestamp('2024-01-02 03:04:05.000006')": "Timestamp('2024-01-02 03:04:05.000006')",
    "pd.Timestamp('2024-01-02 03:04:05.000006007')": "Timestamp('2024-01-02 03:04:05.000006007')",
    "pd.Timestamp('2024-01-02', tz='UTC')": "Timestamp('2024-01-02 00:00:00+0000', tz='UTC')",
    "pd.NaT": "NaT",
    "pd.NA": "<NA>",
    "pd.Timedelta('1D')": "Timedelta('1 days 00:00:00')",
    "pd.Period('2024-01')": "Period('2024-01', 'M')",
    "pd.Interval(1, 2)": "Interval(1, 2, closed='right')",
    "np.dtype('int64')": "dtype('int64')",
    "pd.Series([1.0, None], name='amt')": "<Series amt float64 2 (1 null): 1.0, nan>",
    "pd.Series(range(20))": f"<Series int64 20: {', '.join(map(str, range(16)))}, ...>",
    "pd.Index(['a', 'b'])": "<Index str 2: 'a', 'b'>",
    "pd.RangeIndex(3)": "<RangeIndex int64 3: 0, 1, 2>",
    "pd.date_range('2024-01-01', periods=2)": (
        "<DatetimeIndex datetime64[us] 2: 2024-01-01 00:00:00, 2024-01-02 00:00:00>"
    ),
    "pd.MultiIndex.from_tuples([(1, 'a')])": "<MultiIndex 1: (1, 'a')>",
    "pd.Categorical(['b', 'a', None])": "<Categorical category 3: 'b', 'a', nan>",
    "np.array([[1, 2], [3, 4]])": "<ndarray int64 2x2: [1, 2], [3, 4]>",
    "np.array(5)": "<ndarray int64: 5>",
    "pd.DataFrame({'amt': [1.5, None], 'city': ['x', 'y']})": (
        "<DataFrame 2x2: amt float64 (1 null), city str | 1.5, 'x' | nan, 'y'>"
    ),
    "pd.DataFrame({'n': pd.array([1, None]), 'o': [[1], {}], 'c': pd.Categorical(['a', 'a'])})": (
        "<DataFrame 2x3: n Int64 (1 null), o object, c category | 1, [1], 'a' | <NA>, {}, 'a'>"
    ),
    "pd.DataFrame()": "<DataFrame 0x0>",
    "[np.float64(0.5), pd.NaT]": "[0.5, NaT]",
}


@pytest.mark.parametrize("expression", VALUES)
def test_live_values(expression):
    names: dict = {}
    exec(f"{IMPORTS}x = {expression}", names)
    assert values.preview(names["x"], 500) == VALUES[expression]


@pytest.mark.parametrize("expression", [e for e in VALUES if e[0] != "["])
def test_recorded_values(recorder, expression):
    text, found = VALUES[expression], shown(recorder, f"x = {expression}")
    assert f'[raw "{text}"' in found or found == f"exact length -1 described [{text}]"


def test_values_of_failures(run):
    frames = run(f"{IMPORTS}m = pd.Series([1.5, 2.5]).mean()\ne = ValueError('bad')\n1 / 0").failure.traceback
    assert frames[0]["variables"] == {"m": "2.0", "e": "ValueError('bad')"}


FRAME = "x = pd.DataFrame({'amt': [1.5, None], 'city': ['x', 'y']}, index=['p', 'q'])"


def test_a_frame_has_columns_and_rows(recorder):
    assert shown(recorder, FRAME).endswith(', 2, "amt", "float64", 1, "city", "str", 0, "p", 1.5, "x", "q", nan, "y"]')


CHANGES = {
    "a cell": ("pd.DataFrame({'amt': [1, 2, 3]})", "x.loc[0, 'amt'] = 99"),
    "a text": ("pd.DataFrame({'city': ['a', 'b']})", "x.loc[1, 'city'] = 'z'"),
    "an object": ("pd.DataFrame({'o': [1, 'a']}, dtype=object)", "x.iat[1, 0] = 'b'"),
    "a date": ("pd.DataFrame({'d': pd.date_range('2024-01-01', periods=3)})", "x.iloc[2, 0] = pd.NaT"),
    "a date with a zone": (
        "pd.DataFrame({'d': pd.date_range('2024-01-01', periods=3, tz='UTC')})",
        "x.iloc[2, 0] = pd.NaT",
    ),
    "a category": ("pd.DataFrame({'c': pd.Categorical(['a', 'b'])})", "x.iloc[0, 0] = 'b'"),
    "an integer that may be missing": ("pd.DataFrame({'n': pd.array([1, None])})", "x.iloc[1, 0] = 7"),
    "a column": ("pd.DataFrame({'a': [1]})", "x['b'] = 2"),
    "a name": ("pd.DataFrame({'a': [1]})", "x.columns = ['b']"),
    "in place": ("pd.DataFrame({'a': [2, 1]})", "x.sort_values('a', inplace=True)"),
    "the last row of many": ("pd.DataFrame({'a': range(500)})", "x.iloc[499, 0] = 7"),
    "a large frame": ("pd.DataFrame({'a': range(50_000), 'b': 1.5})", "x.loc[3, 'b'] = 0"),
    "a series": ("pd.Series([1, 2, 3])", "x[1] = 5"),
    "a categorical": ("pd.Categorical(['a', 'b'])", "x[0] = 'b'"),
    "an array": ("np.zeros((3, 4))", "x[2, 3] = 1"),
    "an array of texts": ("np.array(['a', 'b'])", "x[1] = 'c'"),
    "an array of dates": ("np.array(['2024-01-01'], dtype='M8[D]')", "x[0] = '2024-01-02'"),
    "a transposed array": ("np.zeros((30, 4)).T", "x[2, 25] = 1"),
    "a slice": ("np.zeros(400)[::3]", "x[77] = 1"),
    "an attribute of an exception": ("ValueError('a')", "x.args = ('b',)"),
}


def change_of(name):
    begin, change = CHANGES[name]
    return f"x = {begin}\ny = 1\n{change}\nz = 1"


@pytest.mark.parametrize("name", CHANGES)
def test_changes(recorder, name):
    reader = record(recorder, change_of(name))
    first = next(i for i, text in enumerate(reader.text) if text.startswith("global x"))
    number = reader.text[first].split("@")[1]
    changes = [i for i, text in enumerate(reader.text) if text.startswith(f"mutate {number} v2")]
    assert len(changes) == 1
    assert reader.text.index("line 4") < changes[0] < reader.text.index("line 5")
    found = next(text for text in reader.text if text.startswith(f"object {number} "))
    assert ("sampled" in found) == (name == "a large frame")


LOOPS = {  # over a table that their body changes: the lines between which the changes are, from the first line on
    "x = pd.DataFrame({'a': [0, 0, 0]})\nfor i in x.index.tolist():\n    x.loc[i, 'a'] = i + 1\nz = 1": [(4, 3)] * 3,
    "x = np.zeros(9)\nfor i, value in enumerate(x.tolist()):\n    z = i\n    x[i] = 1 + z": [(5, 3)] * 9,
    "x = np.zeros(3)\nfor i in range(len(x)): x[i] = i + 1\nz = 1": [(3, 3)] * 3,
}


@pytest.mark.parametrize("code", LOOPS)
def test_changes_in_a_loop(recorder, code):
    reader = record(recorder, code)
    number = next(text for text in reader.text if text.startswith("global x")).split("@")[1]
    found, line = [], 0
    for text in reader.text:
        if text.startswith(f"mutate {number} "):
            found.append(line)
        elif text.startswith("line "):
            found = [(each, int(text[5:])) if each == line else each for each in found]
            line = int(text[5:])
    one_step = sys.version_info >= (3, 12) and LOOPS[code][0] == (3, 3)  # a loop in one line is one step there
    assert found == ([(3, 4)] if one_step else LOOPS[code])


LARGE = {
    "x = pd.DataFrame({'a': range(10_000)})": "sampled",
    "x = np.zeros(10_000)": "sampled",
    "x = pd.RangeIndex(10_000)": "truncated",
}


@pytest.mark.parametrize("code", LARGE)
def test_large_tables_are_marked(recorder, code):
    assert shown(recorder, code).startswith(f"{LARGE[code]} length 10000 ")


# Programs, and the number of rows of x that are recorded. Each row has its label and cells.
MANY_ROWS = {
    "x = pd.DataFrame({'a': range(200)})": 200,
    "x = pd.DataFrame({'a': range(201)})": 200,
    "x = pd.Series(range(500))": 200,
    "x = pd.DataFrame(np.zeros((500, 16)))": 23,
    "x = pd.DataFrame(np.zeros((500, 200)))": 23,  # and 16 columns
    "for n in range(500):\n    x = pd.DataFrame(np.full((500, 16), n))": 5,  # many tables have few rows each
    "for n in range(500):\n    x = pd.DataFrame(np.full((500, 1), n))": 5,
}


@pytest.mark.parametrize("code", MANY_ROWS)
def test_tables_have_many_rows_unless_there_are_many_tables(recorder, code):
    columns, *rest = shown(recorder, code).partition('>", ')[2].split(", ")
    assert (len(rest) - 3 * int(columns)) / (1 + int(columns)) == MANY_ROWS[code]


HOSTILE = """
ran = []
class Loud:
    def __repr__(self, *args): ran.append('repr'); return 'Loud'
    __str__ = __eq__ = __bool__ = __float__ = __index__ = __repr__
    __hash__ = None
class Frame(pd.DataFrame):
    @property
    def columns(self): ran.append('columns'); return super().columns
class Array(np.ndarray):
    def __array_finalize__(self, o): ran.append('finalize')
    def tolist(self): ran.append('tolist')
class Stamp(pd.Timestamp):
    def __repr__(self): ran.append('stamp'); return 's'
class Float(np.float64):
    def __repr__(self): ran.append('float'); return 's'
    item = __repr__
objects = np.empty(2, dtype=object)
objects[:] = [Loud(), 1]
a = pd.Series(objects)
b = pd.DataFrame({'o': objects})
c, d, e = Frame({'a': [1]}), np.zeros(2).view(Array), Stamp('2024-01-01')
f = Float(1.5)
class Timestamp(pd.Timestamp):
    __module__ = 'pandas'
    def __repr__(self): ran.append('forged'); return 's'
g = Timestamp('2024-01-01')
ran.clear()
x = 1
y = 2
r = ran[:]
"""


def test_no_user_code_runs(recorder):
    reader = record(recorder, HOSTILE)
    assert reader.stack()[-1]["r"] == "exact length 0 items []"


def test_previews_run_no_user_code():
    names: dict = {"__name__": "__main__"}
    exec(IMPORTS + HOSTILE, names)
    for name in "abcdefg":
        values.preview(names[name])
    assert names["ran"] == []
