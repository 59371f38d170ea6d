"""Lines of notebooks that are not Python. The corpus through HTTP is service/httpapi/testdata/cells."""

import ast
import importlib.machinery
import pathlib
import random
import statistics
import sys

import notebook_code
import pytest

FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def printed(run, capfd, code, **options):
    """Returns the outcome of code and what it printed."""
    capfd.readouterr()
    outcome = run(code, **options)
    return outcome, capfd.readouterr().out


def test_no_statement_of_the_standard_library_is_a_command():
    files = sorted(pathlib.Path(statistics.__file__).parent.glob("*.py")) + sorted(
        pathlib.Path(ast.__file__).parent.glob("asyncio/*.py")
    )
    for file in files:
        source = file.read_text(encoding="utf-8")
        assert not notebook_code._Code(source, "").found, file


def test_valid_python_stays():
    """Pieces of code in a random order: if Python takes the program, its tree is that of Python's own parser; if it has
    a command as well, all else stays in its line."""
    pieces = ["x = 1", "y = (x", "%x)", "%b", "'''", "%time f()", "!ls", "a \\", '"!"', "if x:", "    !ls", "    y = 2"]
    pieces += ['s = f"{x!r:%Y}"', "# it's", "%%time", "x?", "[", "]", "print('%d' % x); ", "!= 3", "", "x = r'\\'"]
    source_of = random.Random(20260101)
    valid = 0
    for _ in range(3000):
        source = "\n".join(source_of.choices(pieces, k=source_of.randrange(1, 8)))
        try:
            want = compile(source, "<c>", "exec", FLAGS, True)
        except SyntaxError:
            text = notebook_code.without_commands(source)
            assert text.count("\n") == source.count("\n")
            continue
        valid += 1
        tree, text = notebook_code.parse(source, "<c>", FLAGS)
        assert text == source and ast.dump(tree, include_attributes=True) == ast.dump(want, include_attributes=True)
    assert valid > 100


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("!wget http://example.com", 1, "line 1: the shell command 'wget' is not available: use requests"),
        ("x = 1\nif x:\n    !rm -rf x", 3, "line 3: the shell command 'rm'"),
        ("x = '''\n%y\n'''\n%nothing", 4, "line 4: %nothing is not a command"),
        ("files = !ls", 1, "the output of a command cannot be a value"),
        ("%%bash\nls", 1, "line 1: %%bash is not available: use Python"),
        ("x = 1\n%%time\nx", 2, "line 2: %%time must be on the first line"),
        ("%time", 1, "needs a statement"),
        ("%time for x in y: pass", 1, "simple statement"),
        ("%sql select 1", 1, "db_query"),
        ("x = (\n%y\nz", 1, "'(' was never closed"),  # Python's own error comes first
        ("%matplotlib inline\nx = = 1", 2, "invalid syntax"),
        ("y = = 1\n!wget x", 1, "invalid syntax"),
        ("%time x = = 1", 1, "invalid syntax"),
    ],
)
def test_a_command_that_is_not_available_is_an_error_of_its_line(run, code, line, says):
    failure = run(code).failure
    assert (failure.type, failure.line) == ("SyntaxError", line)
    assert says in failure.message
    checked = run.session.answer({"what": "check", "code": code})["problems"]
    assert [(each["line"], each["message"]) for each in checked] == [(line, failure.message)]


@pytest.mark.parametrize(
    ("code", "result", "says"),
    [
        ("%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n%load_ext autoreload\n1", 1, ""),
        ("%time 1 + 1", 2, "Wall time: "),
        ("%time x = 3\nx", 3, "CPU times: user "),
        ("%%time\nx = 4\nx", 4, "Wall time: "),
        ("# a comment\n\n%%time\n5", 5, "Wall time: "),
        ("%timeit -n 3 -r 2 1 + 1", None, "2 runs, 3 loops each"),
        ("%%timeit -n3 a = 1\na + 1", None, "7 runs, 3 loops each"),
        ("if 1:\n    %time z = 6\nz", 6, "Wall time: "),
        ("%pip install -q numpy 'pandas>=1'", None, "numpy "),
        ("!pip install skimage", None, "glasshouse env add scikit-image`"),
        ("!python -m pip show numpy", None, "numpy "),
        ("len?", None, "Return the number of items"),
        ("%%capture out\nprint('inside')\nout2 = 5", None, ""),
        ("%%time\nimport asyncio\nawait asyncio.sleep(0, 7)", 7, "Wall time: "),
        ("get_ipython().run_line_magic('matplotlib', 'inline'); 8", 8, ""),
        ("get_ipython().run_cell_magic('time', '', 'q = 9\\n')\nq", 9, "Wall time: "),
        ("from IPython import get_ipython\nget_ipython().magic('time 1')", 1, "Wall time: "),
    ],
)
def test_commands(capfd, run, code, result, says):
    outcome, text = printed(run, capfd, code)
    assert outcome.ok == result
    assert says in text and ("inside" not in text)


def test_errors_keep_their_line_and_column(run):
    code = "%matplotlib inline\n!pip list\n%time x = nothing_of_this_name\n"
    failure = run(code).failure
    assert failure.line == 3 and failure.traceback[0]["code"] == "%time x = nothing_of_this_name"
    problems = run.session.answer({"what": "check", "code": "%pwd\n%time import not_a_module"})["problems"]
    assert [(each["line"], each["column"]) for each in problems] == [(2, 7)]


def test_rules_apply_to_commands(ruled):
    failure = ruled("%matplotlib inline\n%time import os").failure
    assert (failure.type, failure.line) == ("PolicyError", 2)
    assert ruled("%%writefile x.txt\ntext").failure.type == "PolicyError"
    assert ruled("get_ipython().run_line_magic('time', 'import os')").failure.type == "PolicyError"


@pytest.mark.parametrize(
    ("code", "result"),
    [("5;", None), ("5 ; # why", None), ("5 # ;", 5), ("'a;b'", "a;b"), ("x = 1; x", 1), ("x;\n\n# end", None)]
    + [("(5);", None), ("'ä' ;", None), ("%time 5;", None), ("__result__ = 3\n5;", 3)],
)
def test_a_semicolon_hides_the_value(run, code, result):
    run("x = 1")
    assert run(code).ok == result


def test_a_table_is_hidden(run):
    run("import pandas as pd\ndf = pd.DataFrame({'a': [1]})")
    assert run("df;").outputs == [] and len(run("df").outputs) == 1


def test_captured_outputs(capfd, run):
    run("%%capture kept\nprint('hello')\ndisplay({'a': 1})\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])")
    assert run("kept.stdout, [sorted(each) for each in kept.outputs]").ok == [
        "hello\n",
        [["text/plain"], ["image/png", "text/plain"]],
    ]
    outcome, text = printed(run, capfd, "kept.show()")
    assert text == "hello\n" and len(outcome.outputs) == 2


def test_display_of_ipython(run):
    outcome = run(
        "from IPython.display import *\n"
        "handle = display(HTML('<b>0</b>'), display_id=True)\n"
        "for n in range(200):\n    handle.update(HTML(f'<b>{n}</b>'))\n"
        "display({'text/html': 'raw'}, raw=True)\nclear_output(wait=True)\nMarkdown('# m')"
    )
    shown = [(each["role"], each["data"].get("text/html")) for each in outcome.outputs]
    assert shown == [("display", "<b>0</b>"), ("display", "raw"), ("display", "<b>199</b>"), ("result", None)]


def test_plotly_shows(run):
    outcome = run(
        "import plotly.io as pio, plotly.graph_objects as go\nf = go.Figure(go.Bar(x=[1], y=[2]))\n"
        "f.show()\npio.show(f)\npio.show(f.to_dict(), renderer='browser')"
    )
    assert outcome.ok is None
    assert [list(each["data"])[0] for each in outcome.outputs] == ["application/vnd.plotly.v1+json"] * 3


def test_completion_reads_cells_with_commands(run):
    code = "%matplotlib inline\n!ls\n%load_ext x\n%config a\n%pip list\n!pwd\n%who\n%%\nvalue = 'text'\nvalue.uppe"
    found = run.session.answer({"what": "complete", "code": code, "cursor": len(code)})
    assert "upper" in str(found)


def test_display_without_ipython(run, monkeypatch):
    """An environment without IPython has the classes and functions that notebooks use most."""
    find = importlib.machinery.PathFinder.find_spec

    def without(name, path=None, target=None):
        return None if name.partition(".")[0] == "IPython" else find(name, path, target)

    monkeypatch.setattr(importlib.machinery.PathFinder, "find_spec", without)
    for name in [name for name in sys.modules if name.partition(".")[0] == "IPython"]:
        monkeypatch.delitem(sys.modules, name)
    outcome = run(
        "import IPython, pathlib\n"
        "from IPython.display import *\n"
        "IPython.display.display(HTML('<b>'), Markdown('# m'), Latex('l'), Math('m'), SVG('<svg/>'), JSON({'a': 1}))\n"
        "display_html('<i>', raw=True)\nclear_output()\n"
        "IPython.get_ipython().run_line_magic('matplotlib', 'inline')\nImage(b'\\x89PNG')"
    )
    assert outcome.exception is None, outcome.exception
    kinds = [sorted(each["data"].keys() - {"text/plain"}) for each in outcome.outputs]
    assert kinds == [["text/html"], ["text/markdown"], ["text/latex"], ["text/latex"], ["image/svg+xml"]] + [
        ["application/json"],
        ["text/html"],
        ["image/png"],
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] == "IPython"]:
        del sys.modules[name]
