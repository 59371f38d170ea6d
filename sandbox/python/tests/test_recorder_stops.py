"""Stops of a program whose budget of recorded steps is used up, by each recorder.

Each program runs with the usual budget and with a small one. Its stops must be the same: steps, lines and variables.
"""

import pytest
from test_recorder import EXTENSIONS, VERSIONS, recordings

pytestmark = pytest.mark.long

SMALL = {"HEAD_STEPS": 20, "MAX_STEPS": 40, "SEGMENT_STEPS": 15, "CHECK_STEPS": 5, "CHECK_HELD_STEPS": 4}

SUM = "t = 0\nfor i in range(500):\n    t += i\nprint(t)\n"
CALLS = """\
class Total:
    def __init__(self):
        self.sum = 0
        self.all = []
    def add(self, n):
        self.sum += n
        self.all.append([n])
        return self.sum
def inner(total, i):
    got = total.add(i)
    if got > 10 ** 9:
        raise ValueError(i)
    return got
def outer(count):
    total = Total()
    for i in range(count):
        last = inner(total, i)
    return last
def numbers(n):
    for i in range(n):
        yield [i]
rows = numbers(3)
next(rows)
x = outer(100)
next(rows)
y = outer(5)
z = [x, y]
"""
CYCLES = """\
class Node:
    pass
for i in range(200):
    a = Node()
    a.me = a
    if i == 3:
        kept = iter([a])
    a = None
b = next(kept)
b.found = True
c = b
"""
TASKS = """\
import asyncio
async def work(n):
    t = 0
    for i in range(n):
        t += i
        await asyncio.sleep(0)
    return t
async def main():
    return await asyncio.gather(work(30), work(40))
r = asyncio.run(main())
"""
THREADS = """\
import threading
done = []
def work(n):
    t = 0
    for i in range(n):
        t += i
    done.append(t)
for n in (50, 60):
    thread = threading.Thread(target=work, args=(n,))
    thread.start(); thread.join()
r = done
"""
RAISING = """\
bad = 0
for i in range(100):
    try:
        int('x' if i == 90 else '1')
    except ValueError as error:
        bad = str(error)
"""
PAUSED = "def f(n):\n    if n == 150:\n        pause()\n    return n\nfor i in range(200):\n    f(i)\n"
COMPREHENSION = """\
def double(i):
    return 2 * i
a = [
    double(i)
    for i in range(60)
]
b = a
"""
GENERATOR = COMPREHENSION.replace("[", "sum(").replace("]", ")")


def at(line, **more):
    return {"lines": [{"id": 1, "line": line, **more}]}


# name: (code, stops, moves)
STOPS = {
    "the last line": (SUM, at(4), ["continue"]),
    "a loop": (SUM, at(3), ["continue"]),
    "a condition": (SUM, at(3, condition="i in (5, 100, 101, 300)"), ["continue"]),
    "a hit count": (SUM, at(3, hits="% 77"), ["continue"]),
    "a log point": (SUM, at(3, hits="% 100", log="{i}: {t}"), ["continue"]),
    "next": (SUM, at(3, hits="100"), ["next"]),
    "step in": (CALLS, at(17, hits="90"), ["stepIn"]),
    "step over calls": (CALLS, at(17, hits="90"), ["next"]),
    "step out": (CALLS, at(6, hits="90"), ["next", "stepOut", "stepOut", "next", "stepIn", "stepOut", "continue"]),
    "objects in calls": (CALLS, at(13, condition="i % 30 == 7"), ["continue"]),
    "objects in the namespace": (CALLS, at(26), ["next"]),
    "a data breakpoint": (SUM, {"data": [{"id": 1, "frame": 0, "name": "t"}]}, ["continue"]),
    "a data breakpoint in a call": (CALLS, {"data": [{"id": 1, "frame": 0, "name": "y"}]}, ["continue", "next"]),
    "pause": (PAUSED, {}, ["continue"]),
    "pause and steps": (PAUSED, {}, ["next", "stepOut", "next", "stepIn"]),
    "cycles": (CYCLES, at(9), ["next"]),
    "tasks": (TASKS, at(5, condition="i == 25"), ["next"]),
    "threads": (THREADS, at(6, condition="i > 47"), ["next"]),
    "an exception": (RAISING, {"exceptions": ["raised"]}, ["next"]),
    "a comprehension": (COMPREHENSION, at(4, condition="i > 50"), ["next", "continue"]),
    "a generator expression": (GENERATOR, at(4, condition="i > 50"), ["next", "continue"]),
    "nothing": (CALLS, at(99), ["continue"]),
}
# Limits in which a key frame is large compared with a segment, and in which no step is dropped.
LIMITS = {
    "small": SMALL,
    "tiny segments": {**SMALL, "SEGMENT_STEPS": 2, "CHECK_HELD_STEPS": 1},
    "few bytes": {**SMALL, "MAX_STEPS": 10**6, "MAX_BYTES": 300, "SEGMENT_BYTES": 50},
    "one segment": {**SMALL, "SEGMENT_STEPS": 10**6},
}
# Limits in which a stop sends only the state, and in the end nothing.
FULL = {**SMALL, "SEGMENT_STEPS": 10**6, "MAX_SENT_BYTES": 1200}


@pytest.fixture(scope="module", params=[*VERSIONS, *EXTENSIONS])
def recorded(request):
    """Returns what each program did, by the names of its stops and limits."""
    jobs = {}
    for name, (code, stops, moves) in STOPS.items():
        for limits, values in {"none": {}, **LIMITS}.items():
            jobs[name, limits] = {"code": code, "stops": stops, "moves": moves, "limits": values}
    jobs["full"] = {"code": SUM, "stops": at(3, hits="% 40"), "moves": ["continue"], "limits": FULL}
    jobs["not full"] = {**jobs["full"], "limits": {}}
    found = recordings(request.param, jobs)
    yield found
    found.close()


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", STOPS)
def test_stops_behind_the_budget_are_the_same(recorded, name, limits):
    plain, whole = recorded[name, "none"]
    _, cut = recorded[name, limits]
    assert cut["stops"] == whole["stops"]
    assert (cut["logs"], cut["same"], cut["count"]) == (whole["logs"], whole["same"], whole["count"])
    assert plain["same"] == whole["same"]
    assert len(whole["stops"]) > 0 or name in ("a log point", "nothing")


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", STOPS)
def test_a_recording_with_stops_stays_whole(recorded, name, limits):
    """It has the first steps, the last ones, and the number of those between them."""
    whole, cut = (recorded[name, which][1]["reader"] for which in ("none", limits))
    assert whole.lost == [] and whole.step == cut.step == recorded[name, limits][1]["count"]
    head = SMALL["HEAD_STEPS"]
    assert cut.steps[:head] == whole.steps[:head]
    assert cut.steps[-2:] == whole.steps[-2:]
    assert cut.step == len(cut.steps) + sum(count for count, _ in cut.lost)
    assert all("budget" in why and count > 0 for count, why in cut.lost)
    assert cut.shown(0) == whole.shown(0)


@pytest.mark.parametrize("name", ["a comprehension", "a generator expression"])
def test_breakpoints_in_comprehensions(recorded, name):
    stops = recorded[name, "none"][1]["stops"]
    assert [stop[3][1] for stop in stops if stop[0] == "breakpoint"] == [4] * 9  # items 51 to 59
    assert stops[0][3][2]["i"] == "51"


def test_a_stop_sends_only_the_last_steps(recorded):
    reader = recorded["the last line", "small"][1]["reader"]
    assert [why for _, why in reader.lost] == ["the budget of steps is used; the last are kept"]
    assert 40 + 15 <= len(reader.steps) <= 40 + 2 * (15 + 4)


def test_a_full_recording_ends_with_a_reason(recorded):
    plain, cut = recorded["full"]
    whole = recorded["not full"][1]["stops"]
    assert plain["same"] == cut["same"]
    assert 2 < len(cut["stops"]) < len(whole) and cut["stops"] == whole[: len(cut["stops"])]
    assert cut["reader"].lost[-1] == (80, "the budget of bytes is used; later steps are not recorded")
    assert any(count > 30 for count, _ in cut["reader"].lost)
