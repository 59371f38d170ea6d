"""Costs of recording: bench_recorder.py prints ns added a line and the ratio to the
program alone, beside an empty tracer, each the least of some runs, in turn.
"""

import mmap
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "inside"))

import recorder_make  # noqa: E402
import recorder_ring  # noqa: E402

FILE = "<execution 1>"

LOOP = """
def f(n):
    t = 0
    for i in range(n):
        t += i
    return t
f(40000)
"""

CALLS = """
def add(a, b):
    return a + b
def f(n):
    t = 0
    for i in range(n):
        t = add(t, i)
    return t
f(15000)
"""

SCRIPT = """
import math, json, re
from collections import defaultdict
import numpy as np
import pandas as pd
rng = np.random.default_rng(1)
N = 6000
raw = pd.DataFrame({
    'user': rng.integers(1, 50, N),
    'action': rng.choice(['login', 'view', 'buy'], N),
    'amount': rng.normal(20, 5, N).round(2),
    'day': pd.date_range('2024-01-01', periods=N, freq='h'),
})
class Stats:
    def __init__(self):
        self.count = 0
        self.total = 0.0
        self.seen = []
    def add(self, value):
        self.count += 1
        self.total += value
        if value > 30:
            self.seen.append(value)
    def mean(self):
        return self.total / self.count if self.count else 0.0
def clean(row):
    name = row['action'].strip().lower()
    amount = row['amount']
    if amount < 0:
        amount = 0.0
    return name, amount
stats = defaultdict(Stats)
log = []
for row in raw.to_dict('records'):
    name, amount = clean(row)
    stats[name].add(amount)
    if amount > 35:
        log.append((row['user'], name, amount))
totals = raw.groupby(['user', 'action'])['amount'].sum().unstack(fill_value=0)
share = totals.div(totals.sum(axis=1), axis=0)
top = totals.sum(axis=1).nlargest(10)
words = defaultdict(int)
text = ' '.join(raw['action'].head(2000))
for word in re.findall(r'[a-z]+', text):
    words[word] += 1
daily = raw.set_index('day')['amount'].resample('D').mean()
smooth = daily.rolling(7).mean().dropna()
best = None
for day, value in smooth.items():
    if best is None or value > best[1]:
        best = (day, value)
scores = {}
for user in range(1, 50):
    part = raw[raw['user'] == user]
    scores[user] = float(part['amount'].std())
merged = share.reset_index().merge(pd.Series(scores, name='std'), left_on='user', right_index=True)
report = {
    'mean': {name: s.mean() for name, s in stats.items()},
    'top': [int(u) for u in top.index],
    'rows': len(merged),
}
out = json.dumps(report, sort_keys=True)
"""


class Ring(recorder_ring.Ring):
    """Emptied when it is full, by nobody: what takes the records is not measured here."""

    def __init__(self):
        super().__init__(mmap.mmap(-1, recorder_ring.HEAD + recorder_ring.SIZE), self.empty)
        self.places = memoryview(self.memory)[: recorder_ring.HEAD].cast("Q")
        self.size = 0

    def empty(self) -> None:
        self.places[8] = self.places[0]

    def close(self) -> None:
        self.size = self.places[0]
        self.places.release()
        super().close()


class Channel:
    interrupted = False

    def ring(self) -> Ring:
        self.given = Ring()
        return self.given


def once(source: str, how: str) -> "tuple[float, int, int]":
    """Seconds, steps and bytes of one run."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    names, channel, count = main.__dict__, Channel(), 0
    code = compile(source, FILE, "exec")

    def local(frame, event, arg):
        return local

    def empty(frame, event, arg):
        return local if frame.f_code.co_filename == FILE else None

    watch = recorder_make.make(channel, FILE, names, (), fast=how == "extension") if how in ("python", "extension") else None
    begun = time.perf_counter()
    if watch:
        watch.start()
    elif how == "empty":
        sys.settrace(empty)
    exec(code, names)
    if watch:
        watch.stop()
        count = watch.count
    elif how == "empty":
        sys.settrace(None)
    seconds = time.perf_counter() - begun
    return seconds, count, channel.given.size if watch else 0


def main() -> None:
    kinds = ["alone", "empty", "python", "extension"]
    for name, source in (("tight loop", LOOP), ("calls", CALLS), ("pandas script", SCRIPT)):
        try:
            once(source, "alone")
        except ImportError:
            print(f"{name}: not run, pandas is not here")
            continue
        best: dict = {}
        for _ in range(5):
            for how in kinds:
                got = once(source, how)
                best[how] = min(best.get(how, got), got)
        alone, steps = best["alone"][0], best["python"][1]
        for how in kinds[1:]:
            seconds, _, size = best[how]
            added = (seconds - alone) / steps * 1e9
            print(f"{name}, {steps} lines: {how} {added:.0f} ns a line, {seconds / alone:.1f}x, {size / steps:.2f} bytes a step")


if __name__ == "__main__":
    main()
