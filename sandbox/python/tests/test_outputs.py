import base64
import io
import json

import pytest
from PIL import Image


def mimes(out):
    return [sorted(o["data"]) for o in out.outputs]


PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"


def test_show_gives_each_figure_once_and_in_order(run):
    out = run(PLOT + "plt.show()\nplt.figure(figsize=(1, 1))\nplt.show(block=False)\nplt.show()")
    assert len(out.outputs) == 2
    assert out.outputs[1]["data"]["text/plain"] == "<Figure size 100x100 with 0 Axes>"


def test_show_warns_nothing(run, capsys):
    run(PLOT + "plt.show()")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "change",
    [
        "",
        "plt.legend(['a rather long name'], loc='upper left', bbox_to_anchor=(1.05, 1))",  # beyond the edge
        "plt.gcf().set_facecolor('red')",
        "plt.close(); plt.figure(dpi=50); plt.plot([1, 2])",
        "plt.tight_layout(pad=0)",
        "plt.rcParams['savefig.dpi'] = 40",
        "plt.gca().remove()",
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
    out = run(PLOT + "def boom(*a, **k): raise ValueError('no ink')\nplt.gcf().draw = boom\nplt.gcf().savefig = boom\n5")
    assert out.ok == 5
    assert "no ink" in out.outputs[0]["data"]["text/plain"]


def test_a_figure_as_the_last_expression_is_shown_once(run):
    assert len(run(PLOT + "plt.gcf()").outputs) == 1
    assert len(run(PLOT + "display(plt.gcf())").outputs) == 1


def test_a_dataframe_is_shown_as_well_as_returned(run):
    out = run("import pandas as pd\npd.DataFrame({'a': ['<b>', 'y']})")
    assert out.ok["type"] == "DataFrame"
    assert mimes(out) == [["text/html", "text/plain"]]
    assert "&lt;b&gt;" in out.outputs[0]["data"]["text/html"]


def test_a_large_dataframe_is_bounded(run):
    out = run("import pandas as pd, numpy as np\npd.DataFrame(np.zeros((100_000, 300)))")
    assert len(json.dumps(out.outputs)) < 100_000
    assert out.ok["shape"] == [100_000, 300]


def test_other_last_expressions_are_not_shown(run):
    assert run("'text'").outputs == run("5").outputs == run("x = 1").outputs == []


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


def test_plotly_figures(run):
    out = run("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2]))")
    assert out.outputs[0]["data"]["application/vnd.plotly.v1+json"]["data"][0]["y"] == [1, 2]


def test_too_many_outputs_are_counted(run):
    out = run("for i in range(60): display(i)")
    assert (len(out.outputs), out.truncated["outputs"]) == (50, 10)


def test_too_large_outputs_are_counted(run):
    out = run("class Big:\n    def _repr_html_(self): return '\\u00e9' * 3_000_000\ndisplay(Big(), Big(), 'small')")
    assert out.truncated["outputs"] == 2
    assert out.outputs == [{"data": {"text/plain": "small"}}]


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


def test_nothing_of_an_earlier_run_is_shown_again(run):
    run("display(1)")
    assert run("1").outputs == []
