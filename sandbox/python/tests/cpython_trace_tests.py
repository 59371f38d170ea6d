"""Runs CPython's own tests of line events with the recorder, in the interpreter that runs this file.

The tests are those of test.test_sys_settrace.TraceTestCase. Each traces a program and compares the events with a list.
Here sys.settrace starts and stops the recorder instead. The file writes a JSON object to stdout: "compared" has [test,
lines that the test expects, recorded lines, reasons of gaps] for each comparison, in lines from the first line of the
program, and "failed" has the text of each test that failed.

With the argument "fast" the recorder uses the extension.
"""

import json
import resource
import sys
import unittest

import record  # it adds the folder of the recorder to the path
import recorder_factory
import recording
import test.test_sys_settrace as theirs

MAX_MEMORY = 2 << 30
LEFT_OUT = {
    **dict.fromkeys(
        ("test_08_settrace_and_return", "test_09_settrace_and_raise"), "the program is traced from its middle on"
    ),
    **dict.fromkeys(
        (
            "test_set_and_retrieve_none",
            "test_set_and_retrieve_func",
            "test_settrace_error",
            "test_testcapi_settrace_error",
        ),
        "there is no list of events",
    ),
}


class System:
    """The module sys as the tests see it."""

    def __init__(self, fast: bool):
        self._fast, self._recorder, self._channel, self._outside = fast, None, None, set()
        self.filename = theirs.__file__  # of the program
        self.steps: list = []
        self.lost: list = []

    def __getattr__(self, name):
        return getattr(sys, name)

    def settrace(self, function) -> None:
        if function is not None:
            self._channel = record.Channel()
            new = recorder_factory.new_recorder
            self._recorder = new(self._channel, self.filename, vars(theirs), (), fast=self._fast)
            self._outside = _functions(sys._getframe())
            self._recorder.start()
        elif self._recorder is None:
            sys.settrace(None)
        else:
            self._recorder.stop()
            self._recorder = None
            reader = recording.Reader(self._channel.data)
            self.steps = [line for name, line in reader.steps if name not in self._outside]
            self.lost = [why for _, why in reader.lost]


def _functions(frame) -> set:
    """Returns the names of a frame's function and of its callers."""
    names = set()
    while frame is not None:
        names.add(frame.f_code.co_qualname)
        frame = frame.f_back
    return names


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, resource.RLIM_INFINITY))  # a defect may record without end
    system = theirs.sys = System("fast" in sys.argv)
    compared = []

    class Case(theirs.TraceTestCase):
        def run_and_compare(self, func, events):
            system.filename = func.__code__.co_filename
            super().run_and_compare(func, events)
            system.filename = theirs.__file__

        def compare_events(self, line_offset, events, expected_events):
            wanted = [line for line, event in expected_events if event == "line"]
            got = [line - line_offset for line in system.steps]
            compared.append([self._testMethodName, wanted, got, system.lost])

        def assertEqual(self, first, second, msg=None):
            """Accepts all values: a test may compare events that do not come from sys.settrace first."""

    result = unittest.TestResult()
    for name in unittest.defaultTestLoader.getTestCaseNames(Case):
        if name not in LEFT_OUT:
            Case(name).run(result)
    failed = [text for _, text in (*result.failures, *result.errors)]
    print(json.dumps({"compared": compared, "failed": failed}))


if __name__ == "__main__":
    main()
