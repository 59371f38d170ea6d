"""Steps into one of the calls of a line."""

import pytest
from test_debug_control import GO, at, recorder, stopped  # noqa: F401

PROGRAM = """\
class C:
    def __init__(self, n):
        self.n = n
    def get(self):
        return self.n
def a(n=0):
    return n + 1
def b(n, m=0):
    return n * 2
def twice():
    x = LINE
    return x
twice()
"""


@pytest.mark.parametrize(
    "line, index, label, want",
    [
        ("b(a(1))", 0, "a(1)", 7),
        ("b(a(1))", 1, "b(a(1))", 9),
        ("a(1) + b(2)", 1, "b(2)", 9),
        ("a(a(a()))", 2, "a(a(a()))", 7),
        ("b(a(), a())", 1, "a()", 7),
        ("C(a()).get()", 1, "C(a())", 3),
        ("C(a()).get()", 2, "C(a()).get()", 5),
        ("sorted([a(1)], key=b)", 1, "sorted([a(1)], key=b)", 9),
        ("len('é') + a()", 1, "a()", 7),
        ("b(a(), len(str(a())))", 2, "str(a())", 12),  # runs no line of the program
        ("a(0) or b(1)", 1, "b(1)", 12),  # is not called
        ("(a(b(", 0, "", 0),
    ],
)
def test_step_goes_into_the_call_of_a_target(run, line, index, label, want):
    found = []

    def script(stop, n):
        if n > 1:
            yield GO
        for frame in range(1, 20):
            answer = yield {"do": "targets", "frame": frame}
            found.extend(answer.get("targets", []))
        target = found[index]
        yield {"do": "resume", "mode": "stepIn", "place": target["place"]}

    code = PROGRAM.replace("LINE", line)
    if not want:
        assert stopped(run, code, at(11), script)[1] == []  # no program
        return
    out, seen = stopped(run, code, at(11), script)
    assert (out.exception, found[index]["label"]) == (None, label)
    assert seen == [("breakpoint", 11), ("step", want)]
