import base64
import io
import json
import sys

import pytest
from PIL import Image


def mimes(out):
    return [sorted(o["data"]) for o in out.outputs]


PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"


def test_show_gives_each_figure_once_and_in_order(run):
    out = run(PLOT + "plt.show()\nplt.figure(figsize=(1, 1))\nplt.axes()\nplt.show(block=False)\nplt.show()")
    assert len(out.outputs) == 2
    assert out.outputs[1]["data"]["text/plain"] == "<Figure size 100x100 with 1 Axes>"


@pytest.mark.parametrize(
    ("code", "pictures"),
    [
        ("plt.figure()", 0),
        ("plt.figure()\nplt.show()", 0),
        (PLOT + "plt.show()\nplt.savefig(io.BytesIO())", 1),
        ("plt.figure(figsize=(9, 9))\npd.DataFrame({'a': [1, 2]}).plot()", 1),
        ("plt.figure()", 0),
        ("plt.figure().text(0.5, 0.5, 'text')", 1),
        ("plt.figure().suptitle('title')", 1),
        ("plt.subplots()", 1),
        ("plt.figure().subfigures(1, 2)", 1),
        ("f = plt.figure()\ndisplay(f)", 0),
        ("f = plt.figure()\nf.figimage([[1, 2], [3, 4]])\ndisplay(f)", 1),
    ],
    ids=str,
)
def test_an_empty_figure_is_no_picture(run, code, pictures):
    out = run("import io\nimport pandas as pd\nimport matplotlib.pyplot as plt\n" + code + "\nNone")
    assert sum("image/png" in output["data"] for output in out.outputs) == pictures


def test_show_gives_no_warning(run, capsys):
    run(PLOT + "plt.show()")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "change",
    [
        "",
        "plt.legend(['a rather long name'], loc='upper left', bbox_to_anchor=(1.05, 1))",  # a legend beyond the edge
        "plt.gcf().set_facecolor('red')",
        "plt.close(); plt.figure(dpi=50); plt.plot([1, 2])",
        "plt.tight_layout(pad=0)",
        "plt.rcParams['savefig.dpi'] = 40",
        "plt.gca().remove(); plt.suptitle('no axes')",
    ],
)
def test_a_figure_looks_as_savefig_makes_it(run, change):
    out = run(
        PLOT
        + change
        + """
import io
from PIL import Image
held = io.BytesIO()
plt.savefig(held, format="png", bbox_inches="tight")
image = Image.open(held)
tint = image.convert("RGB").resize((1, 1)).getpixel((0, 0))
[*image.size, *tint]"""
    )
    run("plt.rcParams['savefig.dpi'] = 'figure'")
    picture = Image.open(io.BytesIO(base64.b64decode(out.outputs[0]["data"]["image/png"])))
    drawn = [*picture.size, *picture.convert("RGB").resize((1, 1)).getpixel((0, 0))]
    assert drawn == pytest.approx(out.ok, abs=2)


def test_figures_of_a_failed_run_are_kept_and_closed(run):
    out = run(PLOT + "1 / 0")
    assert (mimes(out), out.failure.type) == ([["image/png", "text/plain"]], "ZeroDivisionError")
    assert run("1").outputs == []


def test_a_figure_that_cannot_be_drawn_does_not_fail_the_run(run):
    out = run(
        PLOT + "def boom(*a, **k): raise ValueError('no ink')\nplt.gcf().draw = boom\nplt.gcf().savefig = boom\n5"
    )
    assert out.ok == 5
    assert "no ink" in out.outputs[0]["data"]["text/plain"]


def test_a_figure_as_the_last_expression_is_shown_once(run):
    assert len(run(PLOT + "plt.gcf()").outputs) == 1
    assert len(run(PLOT + "display(plt.gcf())").outputs) == 1
    assert len(run(PLOT + "fig = plt.gcf()\nplt.close()\nfig").outputs) == 1
    assert len(run("fig").outputs) == 1
    assert len(run("fig.show()\nfig").outputs) == len(run("display(fig)\nfig").outputs) == 1
    assert run("fig;").outputs == run("plt.close()\nplt.figure()\nplt.close()\nplt.Figure()").outputs == []


def test_a_dataframe_is_shown_as_well_as_returned(run):
    out = run("import pandas as pd\npd.DataFrame({'a': ['<b>', 'y']})")
    assert out.ok["type"] == "DataFrame"
    assert mimes(out) == [["application/vnd.dataresource+json", "text/html", "text/plain"]]
    assert "&lt;b&gt;" in out.outputs[0]["data"]["text/html"]


def test_a_large_dataframe_is_bounded(run):
    out = run("import pandas as pd, numpy as np\npd.DataFrame(np.zeros((20_000, 300)))")
    assert len(json.dumps(out.outputs)) < 100_000
    assert out.ok["shape"] == [20_000, 300]


@pytest.mark.parametrize(
    ("settings", "rows", "columns", "shown", "cut"),
    [
        ("", 60, 20, (60, 20), {}),
        ("", 61, 21, (10, 20), {"result": 51, "rows": 51, "columns": 1}),
        ("pd.set_option('display.max_rows', 4)", 5, 2, (4, 2), {"result": 1, "rows": 1}),
        ("pd.set_option('display.max_rows', None)", 300, 2, (300, 2), {}),
        ("pd.set_option('display.max_columns', 2)", 2, 5, (2, 2), {"columns": 3}),
        ("pd.set_option('display.max_columns', None)", 2, 50, (2, 50), {}),
        ("pd.set_option('display.min_rows', 20)", 61, 1, (20, 1), {"result": 41, "rows": 41}),
        ("pd.set_option('display.max_rows', None)", 60_000, 2, (10, 2), {"result": 0, "rows": 59_990}),
    ],
)
def test_a_table_is_cut_as_the_settings_say(run, settings, rows, columns, shown, cut):
    """Of the result and of the shown table, and each cut is counted."""
    reset = "import pandas as pd\nfor name in ('max_rows', 'min_rows', 'max_columns'):\n"
    reset += "    pd.reset_option('display.' + name)\n"
    out = run(f"{reset}{settings}\npd.DataFrame({{f'c{{n}}': range({rows}) for n in range({columns})}})")
    text = out.outputs[0]["data"]["text/html"]
    body = text.partition("<tbody>")[2].partition("</tbody>")[0]
    is_dotted = [{"rows", "columns"} & cut.keys()]
    assert body.count("<tr>") - ("rows" in cut) == shown[0], is_dotted
    assert body.partition("</tr>")[0].count("<td>") - ("columns" in cut) == shown[1]
    assert {name: n for name, n in out.truncated.items() if n != cut.get(name)} == {} or cut.get("result") == 0
    assert cut.keys() - {"result"} <= out.truncated.keys() and bool(out.truncated) == bool(cut)
    run(reset)


@pytest.mark.parametrize(
    ("code", "cut"),
    [
        ("pd.Series(range(60))", {}),
        ("pd.Series(range(61))", {"result": 51}),
        ("pd.Index(range(61))", {"result": 51}),
        ("np.arange(60)", {}),
        ("np.arange(200).reshape(10, 20)", {"result": 190}),
        ("type('T', (), {'__repr__': lambda self: 'x' * 1500})()", {"result": 500}),
    ],
)
def test_a_cut_of_other_results_is_counted(run, code, cut):
    cut_of_result(run, code, cut)


@pytest.mark.parametrize(
    ("code", "cut"),
    [
        ("display(np.arange(1000))", {}),
        ("display(np.arange(1001))", {"rows": 995}),
        ("display(np.zeros((2, 3000)))", {"rows": 5988}),
        (
            "np.set_printoptions(threshold=10)\ndisplay(np.arange(20))\nnp.set_printoptions(threshold=1000)",
            {"rows": 14},
        ),
        ("display(pd.Series(range(60)))", {}),
        ("display(pd.Series(range(61)))", {"rows": 51}),
        ("display(pd.Index([f'n{n}' for n in range(101)]))", {"rows": 81}),
        ("display('x' * 10_000)", {}),
        ("display('x' * 10_001)", {"text": 1}),
        ("display(['x' * 20_000])", {"text": 10_030}),
        ("display(list(range(100)))", {}),
        ("display([0] * 10_000)", {"text": 10_000 - 3323}),
        ("display(type('T', (), {'__repr__': lambda self: 'x' * 10_500})())", {"text": 500}),
    ],
)
def test_a_cut_of_a_shown_value_is_counted(run, code, cut):
    out = run("import numpy as np, pandas as pd\n" + code)
    assert (out.exception, out.truncated) == (None, cut)


def cut_of_result(run, code, cut):
    out = run("import numpy as np, pandas as pd\n" + code)
    assert out.truncated == cut
    if "head" in out.ok:
        assert len(out.ok["head"]) == (10 if cut else 60)


def test_last_expressions_that_are_all_text_are_not_shown(run):
    for code in (
        "'text'",
        "5",
        "x = 1",
        "None",
        "[1]",
        "import pandas as pd\npd.Series([1])",
        "class C: pass\nC()",
        "C",
    ):
        assert run(code).outputs == []


def test_last_expression_with_a_rich_repr_is_shown(run):
    looks = "class Card:\n    def _repr_html_(self): return '<b>x</b>'\n"
    assert mimes(run(looks + "Card()")) == [["text/html", "text/plain"]]
    assert run(looks + "Card").outputs == []
    assert mimes(run("import pandas as pd\npd.DataFrame({'a': [1]}).style")) == [["text/html", "text/plain"]]


@pytest.mark.parametrize("how", ["SystemExit", "GeneratorExit", "ValueError", "RecursionError"])
def test_last_expression_whose_display_fails_is_still_the_result(run, how):
    out = run(f"class Card:\n    def _repr_html_(self): raise {how}\n    def __repr__(self): return 'card'\nCard()")
    assert (out.ok, out.outputs) == ({"type": "Card", "repr": "card"}, [])


def test_a_last_expression_is_not_asked_for_its_text_twice(run):
    out = run("asked = []\nclass Quiet:\n    def __repr__(self): asked.append(1); return 'quiet'\nQuiet()")
    assert (out.ok["repr"], run("len(asked)").ok) == ("quiet", 1)


def test_display(run):
    code = """
class Rich:
    def _repr_html_(self): return '<i>x</i>'
    def _repr_png_(self): return b'png'
    def _repr_json_(self): return {'n': float('nan')}
    def _repr_latex_(self): raise ValueError
    def _repr_svg_(self): return None
    def __repr__(self): return 'rich'
display(Rich(), 'text', 5, [1], Rich)
"""
    rich, text, number, rows, kind = (o["data"] for o in run(code).outputs)
    assert rich == {
        "text/html": "<i>x</i>",
        "image/png": base64.b64encode(b"png").decode(),
        "application/json": {"n": {"type": "float", "repr": "nan"}},
        "text/plain": "rich",
    }
    assert (text, number, rows) == ({"text/plain": "text"}, {"text/plain": "5"}, {"text/plain": "[1]"})
    assert list(kind) == ["text/plain"]


def test_pil_images(run):
    out = run("from PIL import Image\nImage.new('RGB', (2, 2))")
    assert mimes(out) == [["image/png", "text/plain"]]


def test_plotly_pictures_say_what_works_instead(run):
    for call in ("fig.write_image('x.png')", "fig.to_image('svg')", "plotly.io.write_images([fig], ['x.png'])"):
        failure = run(f"import plotly.io, plotly.graph_objects as go\nfig = go.Figure()\n{call}").failure
        assert failure.type == "RuntimeError" and "fig.write_html('figure.html')" in failure.message, failure
    assert run("len(fig.to_html()) > 1_000_000").ok


def test_plotly_figures(run):
    out = run("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2]))")
    assert out.outputs[0]["data"]["application/vnd.plotly.v1+json"]["data"][0]["y"] == [1, 2]


def test_what_a_library_writes_is_json_for_every_reader(run):
    """display checks that."""
    out = run(
        r"""
import sys
sys.set_int_max_str_digits(0)
class Figure:
    def to_json(self):
        huge = "7" * 5000
        return '{"data": [{"y": [NaN, -Infinity], "x": ' + huge + '}], "text": "\ud83d \ud83d\ude00", "text": "x"}'
Figure.__module__ = "plotly.graph_objs"
display(Figure())
class Bundle:
    def _repr_mimebundle_(self, **_):
        return {"\ud800/x": "1", "text/html": "\ud800"}
display(Bundle())
"""
    )
    assert out.ok is None
    figure, bundle = out.outputs
    data = figure["data"]["application/vnd.plotly.v1+json"]
    assert data["data"][0]["y"] == [{"type": "float", "repr": "nan"}, {"type": "float", "repr": "-inf"}]
    assert data["data"][0]["x"] == {"type": "int", "repr": "<int of 16610 bits>"}
    assert bundle["data"]["text/html"] == "\\ud800" and len(bundle["data"]) == 2


SHOW = "from IPython.display import clear_output, display, update_display\nimport pandas as pd\n"


def shown(out):
    return [o["data"]["text/plain"] for o in out.outputs]


def test_of_too_many_outputs_the_first_and_the_newest_and_the_result_are_kept(run):
    out = run(SHOW + "for i in range(80): display(i)\npd.DataFrame({'last': [1]})")
    assert (len(out.outputs), out.truncated["outputs"]) == (61, 20)
    assert shown(out)[:60] == [str(n) for n in (*range(50), *range(70, 80))]
    assert out.outputs[-1]["role"] == "result" and "last" in out.outputs[-1]["data"]["text/html"]
    assert shown(run("display(1)")) == ["1"]


def test_the_result_is_kept_after_large_outputs(run):
    code = "class Big:\n    def _repr_html_(self): return 'x' * 1_900_000\nfor i in range(12): display(Big())\n"
    out = run(SHOW + code + "pd.DataFrame({'last': [1]})")
    assert (len(out.outputs), out.truncated["outputs"]) == (4 + 1 + 1, 7)
    assert "last" in out.outputs[-1]["data"]["text/html"]


@pytest.mark.parametrize(
    ("code", "texts", "left_out"),
    [
        ("for i in range(60):\n    clear_output(wait=True)\n    display(i)", ["59"], 0),
        ("display('a')\nfor i in range(3):\n    display(i)\n    clear_output()", ["a", "0"], 0),
        ("clear_output()\ndisplay(1)\ndisplay(2)", ["1", "2"], 0),
        ("clear_output()\nfor i in range(12): display(i)", [str(n) for n in range(2, 12)], 2),
        ("clear_output()\ndisplay(1)\n1 / 0", ["1"], 0),
    ],
    ids=str,
)
def test_clear_output_keeps_what_is_shown_after_it(run, code, texts, left_out):
    out = run(SHOW + code)
    assert (shown(out), out.truncated.get("outputs", 0)) == (texts, left_out)
    assert shown(run("display(1)\ndisplay(2)")) == ["1", "2"]


def test_updates_have_the_id_of_their_output(run):
    def ids(out):
        return [(o["data"]["text/plain"], o.get("display_id"), o.get("update", False)) for o in out.outputs]

    out = run(SHOW + "h = display(0, display_id=True)\nh.update(1)\nh.update(2)\nother = display(5, display_id='mine')")
    key = out.outputs[0]["display_id"]
    assert ids(out) == [("0", key, False), ("5", "mine", False), ("2", key, True)]
    assert ids(run("h.update(3)\nupdate_display(6, display_id='mine')")) == [("3", key, True), ("6", "mine", True)]
    assert ids(run("h.display(7)\ndisplay(8, display_id='mine', update=True)\ndisplay(9)")) == [
        ("7", key, False),
        ("9", None, False),
        ("8", "mine", True),
    ]
    assert run("h2 = display(0, display_id=True)\nh2.display_id == h.display_id").ok is False


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (
            "pd.DataFrame({'a': [1234565.23424]}, index=['test']).style.format('{:,.2f}').set_caption('Cap')",
            "Cap\n  a\ntest  1,234,565.23",
        ),
        (
            "class A:\n    def _repr_html_(self): return '<style>p {}</style><p>a&amp;b</p><p>c <b>d</b></p>'\nA()",
            "a&b\nc d",
        ),
        ("class A:\n    def _repr_markdown_(self): return '# head'\nA()", "# head"),
        ("class A:\n    def _repr_html_(self): return '<p>x</p>'\n    def __repr__(self): return 'own'\nA()", "own"),
        ("class A:\n    def _repr_svg_(self): return '<svg/>'\nA()", "<__main__.A object"),
    ],
    ids=str,
)
def test_the_text_of_a_value_without_a_text_of_its_own(run, code, text):
    assert shown(run("import pandas as pd\n" + code))[0].strip().startswith(text)


def test_a_notebook_has_the_repr_of_such_a_value(notebook):
    out = notebook("class A:\n    def _repr_html_(self): return '<p>x</p>'\nA()")
    assert "A object at" in shown(out)[0]


def test_texts_that_pandas_cuts_in_cells_are_counted(run):
    show = "display(pd.DataFrame({'n': [1, 2], 't': ['x' * 80, 'y' * 49]}), pd.Series(['z' * 50]))"
    out = run("import pandas as pd\n" + show)
    assert "x" * 47 not in out.outputs[0]["data"]["text/plain"] + out.outputs[0]["data"]["text/html"]
    assert out.truncated == {"text": 34 + 4}
    assert not run(f"with pd.option_context('display.max_colwidth', None): {show}").truncated
    many = "with pd.option_context('display.max_rows', 4): display(pd.DataFrame([['x' * 60] * 30] * 9))"
    assert run(many).truncated["text"] == 4 * 20 * 14  # of what is shown only


def test_too_large_outputs_are_counted(run):
    out = run("class Big:\n    def _repr_html_(self): return '\\u00e9' * 3_000_000\ndisplay(Big(), Big(), 'small')")
    assert out.truncated["outputs"] == 2
    assert out.outputs == [{"role": "display", "summary": "small", "data": {"text/plain": "small"}}]


@pytest.mark.parametrize(
    "body",
    [
        "def _repr_html_(self): return 5",
        "def _repr_html_(self): return '\\ud800'",
        "def __getattr__(self, n): return 'x'",
        "_repr_html_ = 5",
        "def __repr__(self): raise SystemExit",
    ],
)
def test_hostile_objects(run, body):
    out = run(f"class C:\n    {body}\ndisplay(C())\n7")
    assert (out.ok, len(out.outputs)) == (7, 1)


def test_outputs_of_an_earlier_run_are_not_shown_again(run):
    run("display(1)")
    assert run("1").outputs == []


def test_a_table_has_its_schema_and_a_line_for_models(run):
    out = run(
        "import pandas as pd\ndisplay(pd.DataFrame({'n': range(30), 'when': pd.Timestamp('2024-01-02')}))"
    ).outputs[0]
    table = out["data"]["application/vnd.dataresource+json"]
    assert [(f["name"], f["type"]) for f in table["schema"]["fields"]] == [
        ("index", "integer"),
        ("n", "integer"),
        ("when", "datetime"),
    ]
    assert (len(table["data"]), table["shape"]) == (30, [30, 2])
    assert table["dtypes"][0] == "int64" and table["dtypes"][1].startswith("datetime64")
    assert out["summary"].startswith("table of 30 rows and 2 columns: n int64, when datetime64")


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a"], ["a", "a_2"]),
        (["a", "a", "a_2", "a"], ["a", "a_2", "a_2_2", "a_3"]),
        ([1, "1", "x"], ["1", "1_2", "x"]),
        ([None, None], ["None", "None_2"]),
        ([("a", 1), ("a", 1)], ["('a', 1)", "('a', 1)_2"]),
    ],
)
def test_a_table_has_each_value_of_columns_with_one_name(run, labels, names):
    count = len(labels)
    out = run(f"import pandas as pd\npd.DataFrame([{[*range(count)]}], columns={labels!r})").outputs[0]["data"]
    table = out["application/vnd.dataresource+json"]
    assert table["data"] == [{"index": 0, **dict(zip(names, range(count)))}]
    assert [field["name"] for field in table["schema"]["fields"]] == ["index", *names]
    assert {"text/html", "text/plain"} <= set(out)


def test_every_output_has_a_line_for_models(run):
    code = """
import matplotlib.pyplot as plt, plotly.graph_objects as go
from PIL import Image
display(Image.new('RGB', (3, 2)), go.Figure(go.Bar(y=[1])), 'first\\nsecond', {'a': 1})
fig, axes = plt.subplots(1, 2)
axes[0].plot([1, 2]); axes[0].set_title('Sales'); axes[0].set_xlabel('day'); axes[1].bar(['a', 'b'], [1, 2])
"""
    assert [o["summary"] for o in run(code).outputs] == [
        "image of 3x2 pixels, mode RGB",
        "plotly figure: bar",
        "first ... (2 lines)",
        "{'a': 1}",
        "figure of 2 plots: 'Sales': 1 line; x is 'day' | 2 bars",
    ]


def test_mimebundle_of_an_object_is_shown(run):
    code = """
class Both:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/html': '<i>x</i>', 'image/png': b'png', 'application/json': {'n': float('nan')}, 7: 'no'}, {'meta': 1}
    def _repr_html_(self): return 'not this'
class Broken:
    def _repr_mimebundle_(self, **_): raise ValueError
    def _repr_html_(self): return 'this'
display(Both(), Broken())
"""
    both, broken = (o["data"] for o in run(code).outputs)
    assert (both["text/html"], both["image/png"], broken["text/html"]) == ("<i>x</i>", "cG5n", "this")
    assert both["application/json"] == {"n": {"type": "float", "repr": "nan"}} and "text/plain" in both


def test_display_of_ipython_is_this_one(run):
    pytest.importorskip("IPython")
    out = run("from IPython.display import HTML, display as show\nshow(HTML('<b>x</b>'), 7)")
    assert [o["data"].get("text/html") for o in out.outputs] == ["<b>x</b>", None]


def test_callback_runs_when_a_module_is_imported(monkeypatch):
    import import_hooks

    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    met = []
    import_hooks.when_imported("colorsys", met.append)
    assert import_hooks.all_pending(frozenset({"colorsys"}))
    assert not import_hooks.all_pending(frozenset({"colorsys", "another"}))
    import colorsys

    assert met == [colorsys] and type(colorsys.__loader__).__name__ == "SourceFileLoader"
    import_hooks.when_imported("colorsys", met.append)
    assert len(met) == 2


def test_an_output_of_a_recorded_run_has_its_step(run):
    code = PLOT + "plt.show()\nfor n in range(2):\n    display(n)\nplt.axes()\nlast = 1\ndisplay(last)\n"
    out = run(code, watch=True)
    assert [o.get("step") for o in out.outputs] == [3, 5, 7, 11, 11]  # the last figure is open at the end
    assert [o.get("step") for o in run("display(1)").outputs] == [None]


def test_an_output_after_a_failure_has_the_last_step(run):
    out = run(PLOT + "1 / 0", watch=True)
    assert [o.get("step") for o in out.outputs] == [3]
