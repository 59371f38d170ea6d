import pytest
from conftest import RULES, Runner


@pytest.mark.parametrize(
    ("code", "line", "says"),
    [
        ("import os", 1, ["import of os", "pathlib", "policy: profile"]),
        ("x = 1\nimport os.path as p", 2, ["import of os.path", "pathlib"]),
        ("from os import path", 1, ["pathlib"]),
        ("import json, sys", 1, ["import of sys", "print()"]),
        ("def f():\n    if x:\n        import socket", 3, ["socket", "db_query"]),
        ("import urllib", 1, ["urllib.parse"]),
        ("import urllib.request", 1, ["urllib.parse"]),
        ("from urllib import request", 1, ["urllib.parse"]),
        ("from urllib import parse, request", 1, ["urllib.parse"]),
        ("from urllib import *", 1, ["urllib.parse"]),
        ("from . import x", 1, ["relative import"]),
        ("from .mod import x", 1, ["relative import"]),
        ("import sqlite3", 1, ["import of sqlite3", "allowed"]),
        ("import secrets", 1, ["import of secrets", "policy: profile"]),
        ("import plotly.express", 1, ["import of plotly", "policy: blocked_modules"]),
        ("x = 2\neval('1')", 2, ["calling eval()", "json.loads"]),
        ("[exec(c) for c in x]", 1, ["calling exec()"]),
        ("__import__('os')", 1, ["calling __import__()"]),
        ("ｅｖａｌ('1')", 1, ["calling eval()"]),
        ("open('x')", 1, ["calling open()", "policy: enable_file_access"]),
        ("async def f():\n    await g(compile('1', '', 'eval'))", 2, ["calling compile()"]),
        ("try:\n    import os\nexcept ImportError:\n    pass", 2, ["import of os"]),
        ("eval('1')\nimport os", 1, ["eval"]),
        ("import os\neval('1')", 1, ["import of os"]),
    ],
)
def test_code_that_breaks_a_rule_is_refused(ruled, code, line, says):
    failure = ruled(code).failure
    assert (failure.type, failure.line) == ("PolicyError", line)
    assert failure.message.startswith(f"line {line}: ")
    for part in says:
        assert part in failure.message
    assert failure.hint


@pytest.mark.parametrize(
    "code",
    [
        "import json, datetime, math",
        "import urllib.parse",
        "from urllib import parse",
        "from urllib.parse import quote",
        "import pandas as pd\nimport matplotlib.pyplot as plt",
        "from concurrent.futures import ThreadPoolExecutor",
        "from __future__ import annotations",
        "from processor_pipeline import AsyncProcessor",
        "import re\nre.compile('x').match('x')",
        "import pandas as pd\npd.DataFrame({'a': [1]}).eval('b = a + 1')",
        "from re import compile\ncompile('x')",
        "def eval(x): return x\neval(1)",
        "def f(exec): return exec(1)\nf(str)",
        "'import os; eval(1)'",
        "x = {'open': 1, 'eval': 2}\nx['eval']",
        "# import os",
    ],
)
def test_allowed_code_runs(ruled, code):
    ruled(code).ok


def test_no_code_runs_before_a_refusal(ruled):
    ruled("x = 1\nprint('ran')\nimport os")
    assert ruled("x").failure.type == "NameError"


def test_a_function_of_an_earlier_run_is_not_the_builtin(ruled):
    ruled("from re import compile")
    assert ruled("compile('a+').match('aaa').end()").ok == 3


def test_missing_module_fails_at_its_import(ruled):
    failure = ruled("import pandsa").failure
    assert (failure.type, "'pandas'" in failure.hint) == ("ModuleNotFoundError", True)
    assert ruled("try:\n    import sklearnish\nexcept ImportError:\n    x = 'without'\nx").ok == "without"


def test_imports_inside_libraries_are_allowed(ruled):
    assert ruled("import pandas as pd, io\npd.read_csv(io.StringIO('a,b\\n1,2'))['b'][0]").ok == 2


def test_modules_in_the_session_directory_may_be_imported(tmp_path):
    import ast

    import code_rules

    (tmp_path / "mymod.py").write_text("")
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "os.py").write_text("")
    rules = code_rules.Rules(RULES, str(tmp_path))
    for code in ("import mymod", "from mypkg.sub import x", "import mypkg.sub"):
        rules.check(code, ast.parse(code))
    with pytest.raises(code_rules.PolicyError):
        rules.check("import os", ast.parse("import os"))


def test_only_modules_of_the_request_are_allowed():
    run = Runner({**RULES, "allowed": ["__future__", "json"], "allowed_only": True})
    assert run("import json").ok is None
    assert "policy: allowed_modules" in run("import pandas").failure.message


def test_any_module_except_blocked_ones_is_allowed():
    run = Runner({"enabled": True, "allowed": ["*"], "blocked": {}, "calls": {}, "blocked_modules": ["os"], "keys": {}})
    assert run("import sqlite3\neval('1')").ok == 1
    assert "policy: blocked_modules" in run("import os").failure.message


def test_code_runs_without_rules(run):
    assert run("import os, sys\neval('os.sep')").ok == "/"


def test_empty_rules_of_every_shape():
    for rules in ({}, {"enabled": False, "allowed": None, "blocked": None, "calls": None, "blocked_modules": None}):
        assert Runner(rules)("import os\n1").ok == 1
    assert (
        Runner({"enabled": True, "allowed": None, "blocked": None, "calls": None, "blocked_modules": None})(
            "import os\n1"
        ).failure.type
        == "PolicyError"
    )
