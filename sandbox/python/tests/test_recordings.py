"""Recordings of programs: what fails for one test does not fail for the next."""

import sys

import programs
import pytest


def test_a_program_that_ends_the_process_fails_once(tmp_path):
    """The other programs run in a new process, and so does this one, when the next test asks for it."""
    mark = tmp_path / "ended"
    once = f"import os, pathlib\nmark = pathlib.Path({str(mark)!r})\nif not mark.exists():\n"
    once += "    mark.touch()\n    os.write(2, b'the end')\n    os._exit(7)\nr = 2"
    codes = {1: "r = 1", "once": once, 3: "r = 3"}
    recordings = programs.Recordings(sys.executable, {key: {"code": code} for key, code in codes.items()})
    try:
        assert recordings[1][0]["same"]["result"] == "1"
        with pytest.raises(AssertionError, match="status 7.*the end"):
            recordings["once"]
        for key, want in {3: "3", "once": "2", 1: "1"}.items():
            plain, watched = recordings[key]
            assert plain["same"]["result"] == watched["same"]["result"] == want
    finally:
        recordings.close()


def test_a_program_that_hangs_fails_once():
    recordings = programs.Recordings(sys.executable, {"hangs": {"code": "while True: pass"}, "good": {"code": "r = 1"}})
    try:
        recordings.timeout = 0.1
        with pytest.raises(AssertionError, match="-9 after 0.1 s"):
            recordings["hangs"]
        del recordings.timeout
        assert recordings["good"][0]["same"]["result"] == "1"
    finally:
        recordings.close()


def test_a_program_reads_and_writes_nothing_of_the_protocol():
    """Its input is empty, and its output past sys.stdout is not a result."""
    code = "import os\nos.write(1, b'[]\\n')\ntry:\n    input()\nexcept EOFError:\n    r = 'no input'"
    ((plain, watched),) = programs.record(sys.executable, [{"code": code}])
    assert plain["same"]["result"] == watched["same"]["result"] == "'no input'"
