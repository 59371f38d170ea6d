"""The registry of helpers is the only source of a session's names, of completion and of the generated lists."""

import inspect
import pathlib

import helpers
import namespace
import pytest
from conftest import Runner

ROOT = pathlib.Path(__file__).parents[3]
METHODS = {name for name, each in helpers.REGISTRY.items() if each.value is helpers.UNBOUND}
PER_RUN = {name for name, each in helpers.REGISTRY.items() if each.value is helpers.PER_RUN}


def test_the_namespace_has_the_registered_names_and_no_other(run):
    names = {name for name in run.session._names if name[:2] != "__"}
    assert names == set(helpers.REGISTRY) - PER_RUN


def test_every_public_method_of_helpers_is_registered():
    methods = {name for name, _ in inspect.getmembers(namespace.Helpers, inspect.isfunction) if name[0] != "_"}
    assert methods - {"names"} == METHODS


def test_the_compat_profile_has_only_names_of_python(_restored_process):
    runner = Runner()
    runner.session.enter({"profile": "compat"}, {"enabled": False})
    names = {name for name in runner.session._names if name[:2] != "__"}
    assert names == {name for name, each in helpers.REGISTRY.items() if each.in_compat}
    assert names == {"exit", "quit", "get_ipython", "help"}


@pytest.mark.parametrize("name", helpers.REGISTRY)
def test_completion_offers_every_helper(run, name):
    found = run.session.answer({"what": "complete", "code": name[:-1], "cursor": len(name) - 1})
    assert name in [match["text"] for match in found["matches"]]


@pytest.mark.parametrize(
    "path, text", [("service/help/helpers.json", helpers.as_json), ("docs/helpers.md", helpers.as_markdown)]
)
def test_generated_files_are_current(path, text):
    assert (ROOT / path).read_text() == text(), "run `go generate ./service/help`"


CALLS = {
    "db_query": "'q'",
    "db_frame": "'q'",
    "db_explain": "'q'",
    "db_schema": "'users'",
    "debug": "1",
    "inspect_var": "'x', 1",
}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_helper_can_be_awaited_if_it_is_declared_so(run, name):
    run.channel.answers(plan=("json", ['[{"Plan": {"Total Cost": 1, "Plan Rows": 1}}]']))
    assert run(f"hasattr({name}({CALLS.get(name, '')}), '__await__')").ok is helpers.REGISTRY[name].awaitable


def test_a_helper_that_is_declared_wrongly_is_refused():
    for group, description in (("none", "Text."), ("run", " ")):
        with pytest.raises(ValueError, match="'new' needs"):
            helpers.value("new", group, "new", description)
    with pytest.raises(ValueError, match="'exit' needs"):
        helpers.value("exit", "run", "exit", "Text.")


@pytest.mark.parametrize(
    ("level", "recorded", "warned"),
    [
        ("'error'", "ERROR", False),
        ("'WARN'", "WARNING", False),
        ("'fatal'", "CRITICAL", False),
        ("'WEIRD'", "INFO", True),
        ("None", "INFO", True),
        ("'\\ud800'", "INFO", True),
    ],
)
def test_a_note_of_an_unknown_level_is_recorded_as_info(run, level, recorded, warned):
    code = f"import warnings\nwith warnings.catch_warnings(record=True) as w:\n    debug('x', {level})\n[len(w)]"
    assert run(code).ok == [int(warned)]
    assert [note["level"] for note in run.channel.notes] == [recorded]
