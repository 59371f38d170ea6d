"""The recorder, on each Python that there is: what it records of programs, and that they
are the same with and without it."""

import pathlib
import subprocess
import sys

import programs
import pytest

FOUND = programs.interpreters()
CASES = programs.load("recorder_programs.txt")
SAME = programs.load("recorder_same.txt")

# name, {"code", "limits"} of what the file of programs can't say
LOST = {
    "budget": ("for i in range(3000):\n    x = i\n", {"HEAD_STEPS": 50, "MAX_STEPS": 100, "SEGMENT": 40}),
    "removed": ("import sys\nx = 1\nsys.settrace(None)\nsys.monitoring.free_tool_id(0) if sys.version_info > (3, 12) else 0\ny = 2\n", {}),
    "limit": ("def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    r = 1\n", {}),
}


def test_interpreters():
    """Counts and prints what could not run here; the version of the sandboxes must."""
    missing = [v for v in programs.VERSIONS if v not in FOUND]
    print(f"recorder: runs on {', '.join(FOUND)}; {len(missing)} not here: {', '.join(missing) or 'none'}")
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in FOUND
    assert len(CASES) >= 40


@pytest.fixture(scope="module", params=sorted(FOUND))
def version(request):
    return request.param


@pytest.fixture(scope="module")
def recorded(version):
    """What came of every program, by name."""
    cases = {**CASES, **SAME, **{name: {"code": code, "limits": limits} for name, (code, limits) in LOST.items()}}
    jobs = [{"name": n, "code": c["code"], "limits": c.get("limits", {})} for n, c in cases.items()]
    return dict(zip(cases, programs.record(FOUND[version], jobs)))


@pytest.mark.parametrize("name", CASES)
def test_steps(recorded, version, name):
    _, watched = recorded[name]
    case = CASES[name]
    steps = watched["reader"].steps
    assert programs.folded(steps) == case.get(f"steps {version}", case["steps"])
    assert watched["count"] == len(steps)
    assert watched["reader"].lost == []


@pytest.mark.parametrize("name", [name for name in CASES if "records" in CASES[name]])
def test_records(recorded, version, name):
    text = iter(recorded[name][1]["reader"].text)
    for wanted in CASES[name].get(f"records {version}", CASES[name]["records"]).splitlines():
        assert any(wanted in line for line in text), f"{wanted} is not there, or not in this place"


@pytest.mark.parametrize("name", [*CASES, *SAME, *LOST])
def test_the_program_is_the_same_with_and_without(recorded, name):
    plain, watched = recorded[name]
    if name != "removed":
        assert plain["same"] == watched["same"]
    assert not any("failed" in why for _, why in watched["reader"].lost)


def test_what_a_budget_leaves(recorded):
    reader = recorded["budget"][1]["reader"]
    (count, why), = reader.lost
    assert "budget" in why
    assert count + len(reader.steps) == recorded["budget"][1]["count"]
    assert [line for _, line in reader.steps[:4]] == [1, 2, 1, 2]
    assert 40 <= len(reader.steps) - 100 <= 80 + 1
    assert reader.text.index("global i = 2999") > 0  # the last are there, with their values


def test_a_program_that_removes_the_recorder(recorded):
    reader = recorded["removed"][1]["reader"]
    assert any("taken the recorder away" in why for _, why in reader.lost)


def test_the_recursion_limit_is_said(recorded):
    reader = recorded["limit"][1]["reader"]
    assert any("recursion limit" in why for _, why in reader.lost)
    assert len(reader.steps) > 100


def test_a_closure_that_is_not_read_is_said(recorded, version):
    text = "\n".join(recorded["closure"][1]["reader"].text)
    assert ("unread it shares variables" in text) == (version < "3.13")


def test_stopping_leaves_nothing():
    here = pathlib.Path(__file__).parent
    code = (
        "import sys, threading; sys.path.insert(0, sys.argv[1]); import record\n"
        "record.run('x = 1', True); record.run('1 / 0', True)\n"
        "assert sys.gettrace() is None and threading.gettrace() is None\n"
        "m = getattr(sys, 'monitoring', None)\n"
        "assert m is None or m.get_tool(0) is None and m.get_events(0) == 0 if m and m.get_tool(0) else True\n"
    )
    for python in FOUND.values():
        subprocess.run([python, "-c", code, str(here)], check=True, timeout=60)
