import directories
import exception_hints
import pytest


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A sandbox's folders, with an upload and a file of the session."""
    for name in ("data", "session", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "sales_2024.csv").write_text("a")
    (tmp_path / "session" / "out").mkdir()
    (tmp_path / "session" / "out" / "report.txt").write_text("b")
    monkeypatch.setattr(exception_hints, "_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(directories, "session", str(tmp_path / "session"))
    monkeypatch.setattr(directories, "tmp", str(tmp_path / "tmp"))
    return tmp_path


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("sales_2024.csv", "data/sales_2024.csv"),
        ("/mnt/data/sales_2024.csv", "data/sales_2024.csv"),
        ("files/sales_2024.csv", "data/sales_2024.csv"),
        ("{}/data/Sales_2024.CSV", "data/sales_2024.csv"),
        ("{}/data/sale_2024.csv", "data/sales_2024.csv"),
        ("sale2024.csv", "data/sales_2024.csv"),
        ("report.txt", "session/out/report.txt"),
        ("{}/session/out/reprot.txt", "session/out/report.txt"),
        ("/home/user/data", "data"),
        ("zzzz.parquet", ""),
    ],
)
def test_the_hint_of_a_wrong_path_is_the_file(run, folders, path, meant):
    hint = run(f"open({path.format(folders)!r})").failure.hint
    assert (f"did you mean {str(folders / meant)!r}?" if meant else "") == hint


def test_a_missing_folder_without_such_a_file(run, folders):
    assert "no folder '/nowhere'" in run("open('/nowhere/zzzz.parquet')").failure.hint


PANDAS = "import pandas as pd\ndf = pd.DataFrame({'a': [1.0]})\n"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (PANDAS + "df.append({'a': 2})", "use pd.concat"),
        (PANDAS + "df.a.append(df.a)", "use pd.concat"),
        (PANDAS + "df.a.iteritems()", "use .items()"),
        (PANDAS + "df.applymap(str)", "use .map(function)"),
        (PANDAS + "df.fillna(method='ffill')", "use .ffill() or .bfill()"),
        (PANDAS + "df.ix[0]", "use .loc or .iloc"),
        (PANDAS + "pd.Panel()", "MultiIndex"),
        (PANDAS + "df.aply", "did you mean 'apply'?"),
        (PANDAS + "df.fillna(metod=1)", ""),
        ("def fill(x): pass\nfill(method=1)", ""),
        ("class Own: pass\nOwn().append(1)", ""),
        ("import numpy as np\nnp.float(1)", ""),  # numpy's own message says what to use
        ("import numpy as np\nnp.trapz([1])", "use np.trapezoid"),
        ("{}.iteritems()", "use .items()"),
        ("xrange(3)", "use range"),
        ("from collections import Mapping", "use collections.abc.Mapping"),
        ("import collections\ncollections.Mapping", "use collections.abc.Mapping"),
    ],
    ids=str,
)
def test_removed_names(run, code, hint):
    found = run(code).failure.hint
    assert hint in found if hint else found == ""


PROCESS = "class os:\n    def fork(): raise BlockingIOError(11, 'unavailable') if fork else 0\nfork = 1\nos.fork()"
EMPTY = "import socket\na, b = socket.socketpair()\na.setblocking(False)\na.recv(1)"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (PROCESS, "cannot start processes"),
        ("import subprocess\nsubprocess.run(['/nowhere/x'])", "cannot start processes"),
        ("import subprocess\nsubprocess.check_output('x', cwd='/nowhere', shell=True)", "cannot start processes"),
        ("import subprocess\nraise FileNotFoundError(2, 'no', '/nowhere/zzzz')", "no folder"),
        ("b'\\xff'.decode()", "encoding='cp1252'"),
        (PANDAS + "pd.read_sql('SELECT 1', 'postgresql://u:p@h/d')", "db_frame"),
        (PANDAS + "pd.read_sql_query('SELECT 1', con='sqlite:///x.db')", "db_frame"),
        (PANDAS + "import sqlite3\npd.read_sql('SELECT nothing', sqlite3.connect(':memory:'))", ""),
        ("import locale\nlocale.setlocale(locale.LC_ALL, 'xx_XX.UTF-8')", "C.UTF-8"),
        (EMPTY, ""),
        ("raise ModuleNotFoundError('', name='tkinter')", "no display"),  # some systems have it
        ("import nest_asyncio", "leave it out"),
        ("import asyncpg", "db_frame"),
        ("import winreg", "only Python on another system has it"),
        ("import asyncio\nasync def f(): pass\nc = f()\nawait asyncio.sleep(0)\n"
         "asyncio.get_running_loop().run_until_complete(c)", "write `await`"),
        ("try:\n    open('/nowhere/zzzz.q')\nexcept OSError as e:\n    raise ValueError('no') from e", "no folder"),
        ("try:\n    open('/nowhere/zzzz.q')\nexcept OSError as e:\n    raise ValueError('no')", ""),
    ],
    ids=str,
)
def test_hints_for_what_a_sandbox_has_not(run, code, hint):
    found = run(code).failure.hint
    assert hint in found if hint else found == ""
