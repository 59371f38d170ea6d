import ast

import pytest
from conftest import RULES, Runner


@pytest.mark.parametrize(
    ("code", "name", "says"),
    [
        ("import padnas", "padnas", "padnas is not installed in the environment 'default': did you mean 'pandas'?"),
        ("import Pandas.core", "Pandas", "did you mean 'pandas'?"),
        ("from jsno import loads", "jsno", "did you mean 'json'?"),
        (
            "import skimage.color",
            "skimage",
            "the package is scikit-image; ask the operator to add it with `glasshouse env add scikit-image`",
        ),
        ("import polars_like_no_other", "polars_like_no_other", "`glasshouse env add polars_like_no_other`"),
        (
            "import pandas.tserise",
            "pandas.tserise",
            "pandas is installed but has no pandas.tserise. did you mean 'pandas.tseries'?",
        ),
        ("import пандас", "пандас", "пандас is not installed in the environment 'default'"),
        ("import mymodul", "mymodul", "did you mean 'mymodule'?"),
    ],
)
def test_missing_module_has_a_hint(run, tmp_path, monkeypatch, code, name, says):
    (tmp_path / "mymodule.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    failure = run(code).failure
    assert (failure.type, failure.message) == ("ModuleNotFoundError", f"No module named {name!r}")
    assert says in failure.hint
    assert run(
        f"try:\n    {code}\nexcept ModuleNotFoundError as error:\n    kept = type(error) is ModuleNotFoundError, error.name, error.args\nkept"
    ).ok == [True, name, [f"No module named {name!r}"]]


def test_hint_names_the_environment():
    run = Runner()
    run.session._policy = {**run.session._policy, "environment": "lab-2"}
    assert (
        "environment 'lab-2': the package is PyYAML; ask the operator to add it with `glasshouse env add --env lab-2 PyYAML`"
        in run("raise ModuleNotFoundError(\"No module named 'yaml'\", name='yaml')").failure.hint
    )


@pytest.mark.parametrize(
    "raised",
    [
        "ModuleNotFoundError()",
        "ModuleNotFoundError('x', name=3)",
        "ModuleNotFoundError(name='')",
        "ModuleNotFoundError(name='a' * 10**6)",
    ],
)
def test_module_not_found_raised_by_code(run, raised):
    assert run(f"raise {raised}").failure.type == "ModuleNotFoundError"


def _checked(code, rules=RULES):
    return [
        (found["kind"], found["line"], found["message"], found.get("hint", ""))
        for found in Runner(rules).session.answer({"what": "check", "code": code})["problems"]
    ]


def test_check_reports_missing_modules():
    found = _checked("import json\n\ndef f():\n    import padnas.core\nimport os\n")
    assert [(kind, line) for kind, line, _, _ in found] == [("import", 4), ("policy", 5)]
    assert found[0][2] == "No module named 'padnas.core'" and "did you mean 'pandas'?" in found[0][3]


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import padnas\nexcept ImportError:\n    padnas = None",
        "try:\n    if True:\n        import padnas\nexcept (ValueError, ModuleNotFoundError):\n    pass",
        "try:\n    import padnas\nexcept:\n    pass",
        "if 0: pass\n" + "elif 0: pass\n" * 400,
        "x = " + "+".join("1" * 900),
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import padnas",
    ],
)
def test_check_ignores_imports_whose_failure_is_caught(code):
    assert _checked(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import padnas\nexcept ValueError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import padnas",
        "try:\n    import padnas\nfinally:\n    pass",
    ],
)
def test_check_reports_imports_whose_failure_is_not_caught(code):
    assert [kind for kind, *_ in _checked(code)] == ["import"]


def test_no_search_before_an_import_fails(run, monkeypatch):
    import missing_modules

    monkeypatch.setattr(missing_modules, "_listdir", lambda folder: pytest.fail(f"{folder} was listed"))
    assert run("try:\n    import padnas\nexcept ImportError:\n    x = 1\nx").ok == 1


def test_missing_yields_each_missing_module():
    import code_rules

    rules = code_rules.Rules(RULES)
    assert [name for _, name in rules.missing(ast.parse("import padnas, json, numpyy.linalg\nfrom . import x"))] == [
        "padnas",
        "numpyy.linalg",
    ]
