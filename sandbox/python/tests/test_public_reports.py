"""Inputs from public bug reports of other tools, rewritten. Each names its report as project#number."""

import json
import linecache
import pickle
import sys
import types
import warnings

import pytest
import unequal_types

HISTORY = "import datetime, uuid, json\nimport pandas as pd\nframe = db_frame('q')\n"
UUID = "01890a5d-ac96-774b-bcce-b302099a8057"

# Comparisons of the columns of a database that find nothing without a word: the source, the expression, and what the
# warning says; "" if there is none.
COMPARISONS = [
    ("pandas-dev/pandas#41459", "frame.d == datetime.date(2024, 1, 2)", "pd.to_datetime"),
    ("pandas-dev/pandas#41459", "frame.d == datetime.datetime(2024, 1, 2)", ""),
    ("pandas-dev/pandas#41459", "frame.d.isin([datetime.date(2024, 1, 2)])", "pd.to_datetime"),
    ("pandas-dev/pandas#41459", "frame.d.isin(['2024-01-02'])", "pd.to_datetime"),
    ("pandas-dev/pandas#41459", "frame.d.isin(pd.to_datetime(['2024-01-02']))", ""),
    ("pandas-dev/pandas#41459", "frame.d.isin(['1999-01-01'])", ""),
    ("pandas-dev/pandas#41459", "frame.t == datetime.date(2024, 1, 2)", ".dt.normalize()"),
    ("", "frame.t.isin(['2024-01-02'])", ".dt.normalize()"),
    ("", "frame.z == datetime.datetime(2024, 1, 2, 3, 4)", "utc=True"),
    ("", "frame.z.isin([pd.Timestamp('2024-01-02 03:04', tz='UTC')])", ""),
    ("", "frame.v.isin(['1 day'])", "pd.to_timedelta"),
    ("", "frame.v.isin([datetime.timedelta(days=1)])", ""),
    ("", "frame.c == '10:00'", "datetime.time.fromisoformat"),
    ("", "frame.c == '11:00'", ""),
    ("", f"frame.u == {UUID!r}", ".astype(str)"),
    ("", f"frame.u.astype(str) == {UUID!r}", ""),
    ("", f"frame.u.isin([{UUID!r}, 'none'])", ".astype(str)"),
    ("", "frame.j == '{\"a\": 1}'", "json.loads"),
    ("", "frame.a.isin(['x'])", ".explode()"),
    ("", "frame.p == 'ab'", ".str.rstrip()"),
    ("", "frame.p == 'xy'", ""),
    ("", "frame.n == 2", ""),
    ("", "frame.query(\"d == '2024-01-02'\").d.notna()", "pd.to_datetime"),
    ("", f"frame[['u']].merge(pd.DataFrame({{'u': [{UUID!r}]}})).u.notna()", ".astype(str)"),
    ("", f"frame.u.map({{{UUID!r}: True}}).notna()", ".astype(str)"),
]


@pytest.fixture
def database(run):
    run.channel.answers(
        d=("date", ["2024-01-02", None]),
        t=("timestamp", ["2024-01-02T03:04:00", None]),
        z=("timestamptz", ["2024-01-02T03:04:00+00:00", None]),
        v=("timedelta", [[0, 1, 0], None]),
        c=("time", ["10:00:00", None]),
        u=("uuid", [UUID, None]),
        j=("json", ['{"a": 1}', None]),
        a=("text[]", [["x", "y"], None]),
        p=("string", ["ab   ", None]),
        n=("int", [1, 1]),
    )
    return run


@pytest.mark.parametrize(("expression", "advice"), [case[1:] for case in COMPARISONS])
def test_a_comparison_that_finds_nothing_for_its_types_warns(database, recwarn, expression, advice):
    database(HISTORY)
    outcome = database(f"\nbool(({expression}).any())")
    found = [each for each in recwarn if "finds nothing: the column has" in str(each.message)]
    if advice:
        assert outcome.ok is False and len(found) == 1 and advice in str(found[0].message)
        assert (found[0].filename, found[0].lineno) == ("<execution 2>", 2)
    else:
        assert not found and outcome.exception is None


@pytest.mark.parametrize(
    ("setting", "expression"),
    [
        ("frame = pd.DataFrame({'x': [1, 2]})", "frame.x.isin([3])"),
        ("frame = pd.DataFrame({'x': []})", "frame.x.isin(['a'])"),
        (
            "class Odd:\n    def __eq__(self, other): raise ValueError\n    __hash__ = object.__hash__",
            "frame.u.isin([Odd()])",
        ),
        ("big = frame.loc[frame.index.repeat(5000)]", "big.u.isin([str(n) for n in range(5000)])"),
        ("", "frame.d.isin(x for x in ['2024-01-02'])"),
        # The other column would warn, but is not a key.
        ("", "frame[['n', 'd']].merge(pd.DataFrame({'n': [5], 'd': ['2024-01-02']}), 'inner', 'n')"),
        ("", "frame[['d']].merge(pd.DataFrame({'d': ['2024-01-02']}, index=[9]), left_index=True, right_index=True)"),
    ],
)
def test_such_a_comparison_is_as_before(database, recwarn, setting, expression):
    assert database(f"{HISTORY}{setting}\nlen({expression})").exception is None
    assert not [each for each in recwarn if "finds nothing" in str(each.message)]


def test_a_comparison_reads_values_of_a_users_class_once(database):
    code = """
class Once(list):
    reads = 0
    def __iter__(self):
        Once.reads += 1
        return super().__iter__()
class Statement:
    def __iter__(self):
        Once.reads += 1
        return iter(['2024-01-03'])
frame.d.isin(Once(['2024-01-03']))
frame.d.isin(Statement())
Once.reads
"""
    assert database(HISTORY + code).ok == 2


def test_a_comparison_with_long_lists_is_bounded(database):
    code = """
class Counted(str):
    compared = 0
    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)
    __hash__ = str.__hash__
lists = pd.Series([[Counted(n) for n in range(10)]] * 1000)
lists.isin([f'none {n}' for n in range(200)])
Counted.compared
"""
    assert database(HISTORY + code).ok <= 100_000


def test_methods_that_warn_are_found_by_pickle(monkeypatch):
    """Some versions of pandas define merge in another module than that in which it is found."""
    older = types.ModuleType("older_pandas")
    for name in ("Series", "DataFrame"):
        methods = {method: lambda *_: None for method in ("isin", "map", "_cmp_method", "merge")}
        setattr(older, name, type(name, (), {**methods, "__module__": "older_pandas"}))
    older.merge = json.dumps
    monkeypatch.setitem(sys.modules, "older_pandas", older)
    unequal_types.provide(older)
    for method in (older.merge, older.Series.isin, older.DataFrame.merge):
        assert method.warns and pickle.loads(pickle.dumps(method)) is method


# -- the source of what code defines


SOURCES = [
    # ipython/ipython#11249, huggingface/smolagents#250: classes of earlier cells
    ("class Tool:\n    name = 'x'\n    def forward(self):\n        return 1", "Tool", None),
    ("class Plain:\n    value = 1", "Plain", None),
    ("class Base: pass\nclass Derived(Base):\n    pass", "Derived", "class Derived(Base):\n    pass"),
    (
        "import dataclasses\n@dataclasses.dataclass\nclass Point:\n    x: int = 0",
        "Point",
        "@dataclasses.dataclass\nclass Point:\n    x: int = 0",
    ),
    ("class Outer:\n    class Inner:\n        depth = 2", "Outer.Inner", "    class Inner:\n        depth = 2"),
    # bespokelabsai/curator#115: functions and lambdas
    ("def add(a, b):\n    return a + b", "add", None),
    ("prompt = lambda: 'poem'", "prompt", None),
    ("class Tool:\n    @property\n    def size(self):\n        return 3", "Tool", None),
]


@pytest.mark.parametrize(("code", "name", "source"), SOURCES)
def test_the_source_of_a_definition_of_an_earlier_run(run, code, name, source):
    run(code)
    run("1 / 0")
    assert run(f"import inspect\ninspect.getsource({name})").ok.rstrip("\n") == (source or code)


def test_the_source_of_a_class_with_a_function_that_wraps_itself(run, monkeypatch):
    monkeypatch.setitem(linecache.cache, 1, ())
    run("class Loop:\n    def first(self): pass")
    run("Loop.first.__wrapped__ = Loop.first\nimport inspect")
    assert run("inspect.getsource(Loop)").ok == "class Loop:\n    def first(self): pass\n"
    assert run("class Gone: pass\nGone.__name__ = 'Other'\ninspect.getsource(Gone)").failure.type == "OSError"


def test_the_source_of_a_class_is_that_of_its_own_run(run):
    run("class Twice:\n    def first(self): pass")
    run("old = Twice\nimport inspect")
    run("class Twice:\n    def second(self): pass")
    assert "first" in run("inspect.getsource(old)").ok and "second" in run("inspect.getsource(Twice)").ok


@pytest.mark.parametrize("name", ["int", "type('Made', (), {})", "dict"])
def test_what_has_no_source_has_none(run, name):
    assert run(f"import inspect\ninspect.getsource({name})").failure.type in ("TypeError", "OSError")


def test_two_question_marks_show_the_source(capfd, run):
    run("def add(a, b):\n    return a + b")
    run("add??\nadd?\nlen??")
    assert capfd.readouterr().out.count("return a + b") == 1


# -- figures


ANIMATION = """
import matplotlib.pyplot as plt, matplotlib.animation as animations
figure, axes = plt.subplots()
line, = axes.plot([0, 1])
animation = animations.FuncAnimation(figure, lambda n: line.set_ydata([0, n]), frames=2)
"""


@pytest.mark.parametrize(
    ("code", "is_refused"),
    [
        ("animation.save('a.mp4')", True),  # python-pillow/Pillow#3850
        ("animation.save('a.mp4', writer='ffmpeg')", True),  # spyder-ide/spyder#26196
        ("animation.to_html5_video()", True),
        ("animation.save('a.gif', writer='pillow')", False),
        ("len(animation.to_jshtml())", False),
        ("1 / 0", None),
    ],
)
def test_video_needs_ffmpeg(run, monkeypatch, tmp_path, code, is_refused):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", classmethod(lambda _: False))
    outcome = run(ANIMATION + code)
    if is_refused is False:
        assert outcome.exception is None
    else:
        assert ("writer='pillow'" in outcome.failure.hint) == bool(is_refused)


@pytest.mark.parametrize(
    ("text", "said", "count"),
    [
        ("\u9500\u552e\u989d", "fonts-noto-cjk", 1),  # matplotlib/matplotlib#15062
        ("\uac00\ub098", "HANGUL", 1),
        ("\u0928\u092e", "fonts-noto-core", 1),
        ("Up \U0001f4c8 \U0001f600", "emoji", 1),
        ("Sales é Ж α", "no font", 0),
    ],
)
def test_missing_characters_are_said_once(run, recwarn, monkeypatch, text, said, count):
    _without_noto(monkeypatch)
    run(f"import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title({text!r})\nplt.xlabel({text!r})")
    printed = " ".join(f"{each.filename}: {each.message}" for each in recwarn)
    assert printed.count(said) == count and "Glyph" not in printed and "figures.py" not in printed


def test_missing_fonts_are_said_once(run, caplog):  # matplotlib/matplotlib#24185
    code = "import matplotlib.pyplot as plt\nplt.rcParams['font.sans-serif'] = ['No Such Font']\nplt.plot([1, 2])"
    for _ in range(2):  # in each run
        caplog.clear()
        run(code)
        said = [record.getMessage() for record in caplog.records if "No Such Font" in record.getMessage()]
        assert said == ["this machine has no font No Such Font: figures use their default fonts"]


def _without_noto(monkeypatch):
    manager = __import__("matplotlib.font_manager").font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if "Noto" not in font.name])


# -- the rest


def test_a_uri_for_read_sql(run):  # pandas-dev/pandas#14513
    failure = run("import pandas as pd\npd.read_sql('SELECT 1', 'postgresql://u:p@h/d')").failure
    assert "db_frame a DataFrame" in failure.hint


@pytest.mark.parametrize(
    "code",
    [  # joblib/joblib#1322
        "import subprocess\nsubprocess.run(['ls'])",
        "import concurrent.futures as c\nc.ProcessPoolExecutor(1).submit(len, '')",
        "import multiprocessing as m\nm.Process(target=len).start()",
    ],
)
def test_a_process_where_none_can_start(run, monkeypatch, code):
    def refuse(*_arguments):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    for name in ("os.fork", "subprocess._fork_exec", "_posixsubprocess.fork_exec"):
        monkeypatch.setattr(name, refuse, raising=False)
    assert "ThreadPoolExecutor" in run(code).failure.hint


@pytest.mark.parametrize("name", ["In", "Out", "_", "_3", "_i", "_i2"])
def test_names_of_ipython_for_earlier_cells(run, name):  # jupyter-xeus/xeus-python#359
    run("1 + 1")
    assert "assign" in run(f"{name}[1] if {name!r} in ('In', 'Out') else {name}").failure.hint


@pytest.mark.parametrize("name", ["Inn", "_x", "_ix"])
def test_other_names_that_are_not_there(run, name):
    assert "assign" not in run(name).failure.hint


def test_a_loop_is_there_before_the_first_await(run):  # ipython/ipython#11303
    code = "import asyncio\nasync def f(): return 3\nasyncio.get_event_loop().run_until_complete(f())"
    assert run(code).ok == 3


def test_a_task_of_an_earlier_cell_can_be_awaited(run):  # marimo-team/marimo#8855
    run("import asyncio\nasync def f(): return 4\ntask = asyncio.create_task(f())")
    assert run("await task").ok == 4


def test_a_warning_is_shown_once_in_each_run(run):  # ipython/ipython#6680
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(2):
            seen.clear()
            run("import warnings\ndef f():\n    warnings.warn('mind the zeros')\nf()\nf()")
            assert [str(each.message) for each in seen] == ["mind the zeros"]


def test_the_newest_outputs_are_kept(run):  # posit-dev/positron#10459
    outcome = run("for n in range(200):\n    display(n)\n'last'")
    shown = [part["data"]["text/plain"] for part in outcome.outputs]
    assert "199" in shown and len(shown) <= 61


def test_an_empty_figure_is_not_shown(run):  # e2b-dev/code-interpreter#61
    outcome = run("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nplt.savefig('/dev/null', format='png')")
    assert len(outcome.outputs) == 1


def test_a_query_of_averages_can_be_plotted(run):  # pandas-dev/pandas#20525, apache/superset#11658
    run.channel.answers(name=("string", ["a", "b"]), mean=("decimal", ["1.5", "2.5"]))
    assert run("frame = db_frame('q')\nfloat(frame.describe()['mean']['mean'] * 0.5)").ok == 1.0


def test_equal_column_names_stay_apart(run):  # microsoft/vscode-jupyter#12583
    outcome = run("import pandas as pd\npd.DataFrame([[1, 2]], columns=['a', 'a'])")
    (shown,) = outcome.outputs
    assert shown["data"]["application/vnd.dataresource+json"]["data"] == [{"index": 0, "a": 1, "a_2": 2}]
    assert outcome.result["head"] == [{"a": 1, "a_2": 2}]


def test_both_exceptions_of_a_chain_are_there(run):  # microsoft/debugpy#1024
    failure = run("try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['k']").failure
    assert failure.type == "KeyError" and failure.chain[0]["type"] == "ZeroDivisionError"
