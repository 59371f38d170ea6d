"""The variables in the report of a failed run."""

import time


def variables(run, code):
    return [frame.get("variables") for frame in run(code).failure.traceback]


def test_frames_have_their_variables(run):
    code = "import json\nrate = 2\ndef f(n):\n    half = n / rate\n    return half['k']\nf(3)"
    assert variables(run, code) == [{"rate": "2"}, {"half": "1.5", "n": "3"}]


def test_nearest_name_has_a_field_of_its_own(run):
    assert run("total = 1\ntotl").failure.nearest == "total"
    assert run("d = {'price': 1}\nd['prize']").failure.nearest == "price"
    assert "nearest" not in run("1 / 0").failure


def test_tables_are_described_by_shape_and_types(run):
    code = "import pandas as pd, numpy as np\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})\ns = df['a']\narr = np.zeros((3, 4))\ndf['c']"
    assert variables(run, code)[0] == {
        "df": "<DataFrame 2x2: a int64, b str | 1, 'x' | 2, 'y'>",
        "s": "<Series a int64 2: 1, 2>",
        "arr": "<ndarray float64 3x4: [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]>",
    }


def test_variables_are_bounded_and_named_ones_come_first(run):
    code = "for i in range(500): globals()[f'v{i}'] = 'x' * 5000\nlast = 'z'\ndef f(n):\n    big = list(range(10 ** 5))\n    if n == 0: 1 / 0\n    f(n - 1)\nf(30)"
    frames = variables(run, code)
    assert len(frames) == 32 and frames[0] is None and len(frames[-1]["big"]) < 300
    assert sum(len(name) + len(text) for frame in frames for name, text in (frame or {}).items()) < 8000
    assert "last" in variables(run, "last = 'z'\nlast / 2")[0]


def test_hostile_objects_do_no_harm(run):
    code = """
import time
class Slow:
    def __repr__(self):
        while True: time.sleep(1)
    __len__ = __str__ = __bool__ = __eq__ = __getattribute__ = __repr__
    __class__ = property(__repr__)
slow = [Slow(), {1: Slow()}]
slow / 2
"""
    began = time.monotonic()
    assert variables(run, code) == [{"slow": "[<Slow>, {1: <Slow>}]"}]
    assert time.monotonic() - began < 60
