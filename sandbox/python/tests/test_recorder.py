"""Recordings of programs, by each recorder. A program has the same result with and without a recorder.

The tests always use this Python, and in the nightly tier also the other versions on this machine.
"""

import difflib
import functools
import pathlib
import subprocess
import sys

import programs
import pytest

FOUND = programs.interpreters()
CASES = programs.load("recorder_programs.txt")
SAME = programs.load("recorder_same.txt")

LOST = programs.load("recorder_gaps.txt")
LIMITS = {"budget": {"HEAD_STEPS": 50, "MAX_STEPS": 100, "SEGMENT_STEPS": 40}, "objects": {"MAX_OBJECTS": 50}}
REMOVED = "removed", "removed by events", "removed by another"


def test_interpreters():
    """Prints the versions that are not on this machine."""
    missing = [v for v in programs.VERSIONS if v not in FOUND]
    print(f"recorder: runs on {', '.join(FOUND)}; {len(missing)} not here: {', '.join(missing) or 'none'}")
    assert OWN in FOUND
    assert len(CASES) >= 40


OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
VERSIONS = [pytest.param(version, marks=() if version == OWN else pytest.mark.nightly) for version in sorted(FOUND)]
EXTENSIONS = [pytest.param(f"{version.values[0]} extension", marks=version.marks) for version in VERSIONS]


def has_extension(version):
    return version.endswith(" extension")


@pytest.fixture(scope="module", params=[*VERSIONS, *EXTENSIONS])
def version(request):
    return request.param


@pytest.fixture(scope="module")
def recorded(version):
    """Returns what each program did, by name."""
    return _recorded(version)


@functools.cache
def _recorded(version):
    cases = {**CASES, **SAME, **LOST}
    jobs = {n: {"name": n, "code": case["code"], "limits": LIMITS.get(n, {})} for n, case in cases.items()}
    return recordings(version, jobs)


def recordings(version, jobs):
    """Returns programs.Recordings of the recorder of a version, such as "3.12" or "3.12 extension"."""
    python = FOUND[version[:4]]
    path = str(programs.extension("recorder_fast", python).parent) if has_extension(version) else ""
    return programs.Recordings(python, jobs, path)


@pytest.mark.parametrize("name", CASES)
def test_steps(recorded, version, name):
    _, watched = recorded[name]
    case = CASES[name]
    steps = watched["reader"].steps
    assert programs.folded(steps) == case.get(f"steps {version[:4]}", case["steps"])
    assert watched["count"] == len(steps)
    assert watched["reader"].lost == []


def test_comprehensions_have_the_same_steps_on_each_version():
    """The steps are the same as programs.folded shows them. For a false condition, 3.13 has an event at the line of the
    item before it has tested the condition."""
    names = [name for name in CASES if name.startswith(("comprehension", "generator expression"))]
    special = [(name, key) for name in names for key in CASES[name] if key.startswith("steps ")]
    assert special == [("comprehension, condition", "steps 3.13")]


@pytest.mark.parametrize("name", [name for name in CASES if "records" in CASES[name]])
def test_records(recorded, version, name):
    text = iter(recorded[name][1]["reader"].text)
    for wanted in CASES[name].get(f"records {version[:4]}", CASES[name]["records"]).splitlines():
        assert any(wanted in line for line in text), f"{wanted} is not there, or not in this place"


@pytest.mark.parametrize("name", [*CASES, *SAME, *LOST])
def test_recorder_does_not_change_the_program(recorded, version, name):
    plain, watched = recorded[name]
    if version == "3.11" and name == "an object dies within its line":  # the documented difference: see recorder.py
        assert sorted(plain["same"]["result"]) == sorted(watched["same"]["result"])
    elif version == "3.11 extension" and name == "recursion just below the limit":  # see recorder.py
        assert 0 <= int(plain["same"]["result"]) - int(watched["same"]["result"]) <= 1
    elif name not in REMOVED:
        assert plain["same"] == watched["same"]
    assert not any("failed" in why for _, why in watched["reader"].lost)


@pytest.mark.parametrize("name", [name for name in SAME if "names" in name])
def test_odd_names_do_not_end_the_recording(recorded, name):
    _, watched = recorded[name]
    assert watched["reader"].lost == []
    assert watched["count"] == len(watched["reader"].steps)


def test_budget_keeps_the_first_and_the_last_steps(recorded):
    reader = recorded["budget"][1]["reader"]
    ((count, why),) = reader.lost
    assert "budget" in why
    assert count + len(reader.steps) == recorded["budget"][1]["count"]
    assert [line for _, line in reader.steps[:4]] == [1, 2, 1, 2]
    assert 40 <= len(reader.steps) - 100 <= 80 + 1
    assert reader.text.index("global i = 2999") > 0  # the last steps have their values


@pytest.mark.parametrize("name", REMOVED)
def test_a_program_that_removes_the_recorder(recorded, name):
    """The recording ends at the line of the call, with its reason."""
    reader = recorded[name][1]["reader"]
    assert [why for _, why in reader.lost if "the program called sys." in why and "later steps" in why]
    assert reader.text[-1].startswith("lost 0")
    assert "x = 1" in " ".join(reader.text) and "y = 2" not in " ".join(reader.text)


def test_threads_that_are_not_recorded_are_reported(recorded, version):
    reader = recorded["threads without the recorder"][1]["reader"]
    if version >= "3.12":  # events come from all threads
        assert reader.lost == [] and reader.steps.count(("f", 5)) == 2
    else:
        assert [why for _, why in reader.lost] == [
            "the program called threading.settrace; threads that begin later are not recorded"
        ]
        assert reader.steps.count(("f", 5)) == 1
    assert reader.stack()[-1]["r"] == "exact length 2 items [1, 1]"
    assert reader.steps[-1] == ("<module>", 12)


def test_frames_without_events_are_reported(recorded, version):
    reader = recorded["removed f_trace"][1]["reader"]
    if version == "3.11":
        assert [why for _, why in reader.lost] == [
            f"the program set f_trace of {name}; later steps of this call are not recorded"
            for name in ("f", "<module>", "h")  # f called a function; the others are noticed at the end
        ]
        assert reader.steps[-1] == ("<module>", 17) and ("g", 9) in reader.steps and ("f", 5) not in reader.steps
    else:  # events do not depend on f_trace
        assert reader.lost == [] and reader.steps[-1] == ("<module>", 18) and ("f", 7) in reader.steps
    assert reader.stack()[-1]["u"] == "5"


def test_replaced_evaluator_is_reported(recorded, version):
    """The extension leaves libraries untraced. With another evaluator it would miss user code that libraries call.
    On Python 3.12 and later it has no evaluator."""
    reader = recorded["evaluator"][1]["reader"]
    assert any("taken the recorder away" in why for _, why in reader.lost) == (version == "3.11 extension")


def test_too_many_objects_are_reported(recorded):
    reader = recorded["objects"][1]["reader"]
    assert any("too many objects" in why for _, why in reader.lost)
    assert len(reader.steps) > 100


@pytest.mark.parametrize("name", ["limit", "limit, kept exception", "limit, often"])
def test_recording_goes_on_after_a_recursion_error(recorded, version, name):
    plain, watched = recorded[name]
    reader = watched["reader"]
    if has_extension(version):  # it has its own stack space
        assert reader.lost == []
    else:
        gap, end = (
            "near the recursion limit; steps are not recorded until the stack is shorter",
            "near the recursion limit too often; later steps are not recorded",
        )
        assert reader.lost and {why for _, why in reader.lost[:-1]} <= {gap}
        assert reader.lost[-1][1] == (end if name == "limit, often" else gap)
    last = LOST[name]["code"].count("\n")
    if name == "limit, kept exception" and version == "3.11":
        return  # nothing happens at which the recorder could go on
    if name == "limit, often" and not has_extension(version):
        return  # it does not go on after too many pauses
    assert reader.steps[-1] == ("<module>", last)
    shown = reader.stack()[-1]
    if name == "limit":
        assert shown["c"] == "exact length 2 items [1, 2]" == shown["d"]
        assert shown["a"] == 'exact length 1 attributes ["x": exact length 2 items [1, 2]]'
        assert reader.steps.count(("g", 11)) == 2
        assert reader.steps.count(("f", 3)) > 1000
    elif name == "limit, kept exception":
        assert shown["x"] == shown["r"] == "exact length 1 items [1]"


NESTED = """
def f(n):
    global r
    r = n
    return {call}
try:
    f(0)
except RecursionError as error:
    r = r, str(error)
"""


def test_calls_through_c_reach_the_same_depth(version):
    """Python 3.12 and later limit nested calls of C separately."""
    if version < "3.12" or not has_extension(version):
        return  # see recorder.py
    calls = "list(map(f, [n + 1]))", "sorted([n + 1], key=f)", "f(n + 1)"
    found = recordings(version, {call: {"name": call, "code": NESTED.format(call=call)} for call in calls})
    for plain, watched in map(found.__getitem__, calls):
        assert plain["same"] == watched["same"] and "depth exceeded" in plain["same"]["result"]
        assert watched["reader"].lost == []


def test_unread_closure_is_reported(recorded, version):
    text = "\n".join(recorded["closure"][1]["reader"].text)
    assert ("unread it shares variables" in text) == (version in ("3.11", "3.12"))
    if has_extension(version):
        assert "set n = 2" in text


def _agreed(reader):
    """Returns the transcript without its head, which names the recorder."""
    return [line for line in reader.text if not line.startswith("head ")]


# Their records have addresses that are used again, times, or threads that take turns as the kernel likes.
NOT_ALIKE = "when objects die", "an object dies within its line", "a profiler of its own", "counter of threads"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [name for name in [*CASES, *SAME] if name not in NOT_ALIKE])
def test_recorders_agree(version, name):
    slow, fast = (_recorded(each)[name][1]["reader"] for each in (version, f"{version} extension"))
    assert fast.text[0].startswith("head 2 extension ")
    if slow.lost:  # near the recursion limit
        return
    if any(line.startswith("unread ") for line in slow.text):
        assert programs.folded(slow.steps) == programs.folded(fast.steps)
    else:
        difference = "\n".join(difflib.unified_diff(_agreed(slow), _agreed(fast), "Python", "extension", lineterm=""))
        assert not difference, f"the recorders differ:\n{difference}"


def test_threads_that_take_turns_lose_no_step(recorded, version):
    """The order of the threads differs from run to run; what all of them did together does not."""
    reader = recorded["counter of threads"][1]["reader"]
    assert reader.lost == [] and reader.steps.count(("run.<locals>.work", 9)) == 900
    if not any(line.startswith("unread ") for line in reader.text):
        assert {f"set n = {n}" for n in range(901)} <= set(reader.text)


@pytest.mark.parametrize("version", [*VERSIONS, *EXTENSIONS])
def test_stopping_removes_all_hooks(version):
    here = pathlib.Path(__file__).parent
    python = FOUND[version[:4]]
    folder = str(programs.extension("recorder_fast", python).parent) if has_extension(version) else ""
    code = (
        "import sys, threading; sys.path[:0] = filter(None, sys.argv[1:]); import record\n"
        "assert record.recorder_factory._fast or not sys.argv[2]\n"
        "for code in ('x = 1', '1 / 0'): record.run(code, True, bool(sys.argv[2]))\n"
        "assert sys.gettrace() is None and threading.gettrace() is None\n"
        "m = getattr(sys, 'monitoring', None)\n"
        "assert m is None or m.get_tool(m.DEBUGGER_ID) is None\n"
    )
    subprocess.run([python, "-c", code, str(here), folder], check=True, timeout=60)


@pytest.mark.parametrize("version", VERSIONS)
def test_names_and_lines_of_instructions_are_those_of_dis(version):
    here = pathlib.Path(__file__)
    code = (
        "import dis, sys, types, argparse; sys.path.insert(0, sys.argv[1]); import recorder_code as r\n"
        "waiting = [compile(open(f, 'rb').read(), f, 'exec') for f in (dis.__file__, argparse.__file__, sys.argv[2])]\n"
        "while waiting:\n"
        "    code = waiting.pop()\n"
        "    waiting += [c for c in code.co_consts if type(c) is types.CodeType]\n"
        "    assert r._lines_of(code) == [position[0] or 0 for position in code.co_positions()], code\n"
        "    for i in dis.get_instructions(code):\n"
        "        if i.opcode in r._NAMED:\n"
        "            assert r._name_at(code, code.co_code, i.offset) == i.argval, (code, i)\n"
    )
    subprocess.run([FOUND[version], "-c", code, str(here.parents[1] / "guest"), str(here)], check=True, timeout=60)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["recorder_fast", "syscall_batch"])
def test_extensions_compile_without_warnings(name, version):
    command, _ = programs.compiler(name, FOUND[version])
    subprocess.run([*command, "-fsyntax-only", *programs.WARNINGS], check=True, timeout=120)
