"""Changes that come at an unusual time: recordings have them, at the line that made them."""

import functools
import sys

import programs
import pytest

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
RECORDERS = ["python", *(["extension"] if OWN in programs.VERSIONS else [])]

GENERATOR = """\
def g():
    global end
    try:
        yield 1
    finally:
        end = 3
it = g()
first = next(it)
it.close()
"""
FINALLY = """\
def f():
    global end
    try:
        return 1 / 0
    finally:
        end = 3
try:
    f()
except ZeroDivisionError:
    pass
"""
SORT = """\
xs = [3, 1, 2]
def key(v):
    n = len(xs)
    return v
xs.sort(key=key)
done = 1
"""
CALL = """\
def f():
    return 1
x = 5; f()
done = 1
"""
LOCAL_CALL = """\
def f():
    return 1
def g():
    x = 5; f()
    return x
g()
"""
NO_CALL = """\
def f():
    return 1
for x in [7]:
    f()
done = 1
"""
RESUME = """\
def g():
    yield 1
    yield 2
it = g()
first = next(it)
x = 5; next(it)
done = 1
"""
MANY = "".join(f"v{n} = [{n}]\n" for n in range(20))
ARRAYS = """\
import numpy as np
a = np.arange(12).reshape(3, 4)
row = a[1]
row[0] = 100
b = 1
c = a[0]
"""
MANY_ARRAYS = MANY + ARRAYS
OWNER = """\
import numpy as np
a = np.zeros(4)
part = a[:2]
a[0] = 7
b = 1
c = part[0]
"""
IN_FUNCTION = """\
import numpy as np
a = np.zeros(4)
part = a[:2]
def f():
    part[0] = 7
    return 1
f()
b = 1
c = a[0]
"""
DELETIONS = {name: f"x = 1\n{name}\ndel x\ndone = 1\n" for name in ("eval('2')", "exec('')", "globals()", "vars()")}
PROGRAMS = [
    *(GENERATOR, FINALLY, SORT, CALL, LOCAL_CALL, NO_CALL, RESUME, ARRAYS, MANY_ARRAYS, OWNER, IN_FUNCTION),
    *DELETIONS.values(),
]


@pytest.fixture(scope="module", params=RECORDERS)
def recorder(request):
    return request.param


@functools.cache
def _recorded(recorder):
    """Returns the recordings of all programs, by their code."""
    path = str(programs.extension("recorder_fast", sys.executable).parent) if recorder == "extension" else ""
    return programs.Recordings(sys.executable, {code: {"name": code, "code": code} for code in PROGRAMS}, path)


def records(recorder, code) -> list:
    plain, watched = _recorded(recorder)[code]
    assert plain["same"] == watched["same"] and watched["same"]["error"] is None
    assert watched["reader"].lost == []
    return watched["reader"].text


def line_of(found: list, text: str) -> str:
    """Returns the line at which the last record that begins with a text was made."""
    at = max(i for i, each in enumerate(found) if each.startswith(text))
    line, current, lines = "", "", {}
    for each in found[: at + 1]:
        kind, _, rest = each.partition(" ")
        if kind in ("push", "frame", "resume"):
            current = rest.split(" ")[0]
        elif kind in ("return", "unwind", "suspend"):
            current = ""
        elif kind == "line":
            lines[current] = line = rest
    return lines.get(current, line)


@pytest.mark.parametrize("code", [GENERATOR, FINALLY])
def test_a_change_of_the_last_line_before_an_exception_leaves_the_frame(recorder, code):
    found = records(recorder, code)
    ends = [i for i, each in enumerate(found) if each.startswith("unwind")]
    assert any("global end = 3" in found[:end] for end in ends)


def test_a_list_keeps_its_items_during_its_own_sort(recorder):
    found = [each for each in records(recorder, SORT) if "length" in each and "items" in each]
    assert [each.partition("items ")[2] for each in found] == ["[3, 1, 2]", "[1, 2, 3]"]


@pytest.mark.parametrize("code", DELETIONS.values(), ids=DELETIONS)
def test_a_deleted_global_is_gone(recorder, code):
    assert "forget x" in records(recorder, code)


@pytest.mark.parametrize(
    ("code", "change", "event"),
    [(CALL, "global x = 5", "push"), (LOCAL_CALL, "set x = 5", "push"), (RESUME, "global x = 5", "resume")],
)
def test_a_callee_sees_what_the_line_of_its_caller_has_set(recorder, code, change, event):
    found = records(recorder, code)
    last = max(i for i, each in enumerate(found) if each.startswith(event))
    assert change in found[:last]


def test_a_line_that_only_calls_is_not_read_before_the_call(recorder):
    found = records(recorder, NO_CALL)
    assert found.count("global x = 7") == 1


@pytest.mark.parametrize(("code", "line"), [(ARRAYS, "4"), (MANY_ARRAYS, "24"), (OWNER, "4"), (IN_FUNCTION, "5")])
def test_a_write_to_shared_memory_changes_both_arrays_at_its_line(recorder, code, line):
    found = records(recorder, code)
    changes = [i for i, each in enumerate(found) if each.startswith("mutate") and "ndarray" in each]
    assert len(changes) == 2
    for at in changes:
        assert line_of(found[: at + 1], "mutate") == line
