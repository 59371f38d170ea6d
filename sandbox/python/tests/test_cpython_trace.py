"""CPython's own tests of line events, with each recorder: the recorded lines are those that the tests expect.

The tests always use this version of Python, and in the nightly tier also the others. Many installations of Python lack
the package test. Then the version is not run.
"""

import json
import os
import pathlib
import subprocess

import programs
import pytest

HERE = pathlib.Path(__file__).parent
HAS_TESTS = "import importlib.util, sys; sys.exit(importlib.util.find_spec('test.test_sys_settrace') is None)"


def with_tests(version):
    """Returns an interpreter of a version that has CPython's tests, or None."""
    for python in programs.candidates(version):
        if subprocess.run([python, "-c", HAS_TESTS], capture_output=True).returncode == 0:
            return python
    return None


FOUND = {version: python for version in programs.VERSIONS if (python := with_tests(version))}
VERSIONS = [pytest.param(v, marks=() if v == programs.OWN else pytest.mark.nightly) for v in FOUND]
MIN_PROGRAMS, MIN_LINES = 60, 400

# By test and recorder: the recorded lines, and why they are not the lines that the test expects.
ONE_LINE = [1, 2, 3, 4, 5, 6], "sys.monitoring has no event for a jump to the beginning of the same line"
F_TRACE = [1, 2], "the program sets f_trace, which only functions of sys.settrace obey"
DIFFERENCES = {
    ("test_12_tighterloop", "monitoring"): ONE_LINE,
    ("test_17_none_f_trace", "monitoring"): F_TRACE,
    ("test_17_none_f_trace", "extension"): F_TRACE,
}
# By test and recorder: why the recording says that lines are missing.
LOST = {
    ("test_17_none_f_trace", "settrace"): ["the program set f_trace of func; later steps of this call are not recorded"]
}


def extension_folder(python):
    """Returns the folder of the extension for an interpreter, or "" if it cannot be built."""
    try:
        return str(programs.extension("recorder_fast", python).parent)
    except subprocess.CalledProcessError:
        return ""


def test_interpreters():
    """Prints the versions whose tests are not on this machine."""
    missing = [v for v in programs.VERSIONS if v not in FOUND]
    print(
        f"trace tests of CPython: run on {', '.join(FOUND) or 'none'}; {len(missing)} without the package test "
        f"(Debian: libpython3.11-testsuite): {', '.join(missing) or 'none'}"
    )


@pytest.mark.parametrize("recorder", ["python", "extension"])
@pytest.mark.parametrize("version", VERSIONS)
def test_lines_are_those_of_cpython(version, recorder):
    python = FOUND[version]
    folder = extension_folder(python) if recorder == "extension" else ""
    if recorder == "extension" and not folder:
        assert version > "3.11", "the extension does not build"
        print(f"trace tests of CPython: there is no extension for {version}")
        return
    done = subprocess.run(
        [python, str(HERE / "cpython_trace_tests.py"), *(["fast"] if folder else [])],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": folder},
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert results["failed"] == []
    kind = "monitoring" if version >= "3.12" else "settrace"
    kinds = {kind, "extension"} if folder else {kind}
    lines, used = 0, set()
    for name, wanted, got, lost in results["compared"]:
        different = [key for key in DIFFERENCES if key[0] == name and key[1] in kinds]
        assert got == (DIFFERENCES[different[0]][0] if different else wanted), name
        assert lost == ([] if folder else LOST.get((name, kind), [])), name
        used.update(different)
        lines += len(wanted)
    assert used == {key for key in DIFFERENCES if key[1] in kinds}
    assert len(results["compared"]) >= MIN_PROGRAMS and lines >= MIN_LINES
    print(f"Python {version}, {recorder}: {lines} lines of {len(results['compared'])} programs")
