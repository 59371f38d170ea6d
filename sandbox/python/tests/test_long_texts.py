"""Values of the standard library, numpy and pandas whose text is very long, or takes quadratic time to write."""

import sys

import library_values
import programs
import pytest
import recorder_factory
import recording
import values

RECORDERS = ["python", *(["extension"] if f"{sys.version_info[0]}.{sys.version_info[1]}" in programs.VERSIONS else [])]
MAX_TEXT_BYTES = 64 << 10  # of a text in a recording

SETUP = """
import datetime, decimal, fractions, pathlib, re
import numpy as np, pandas as pd
"""
LONG = {
    "path": "pathlib.PurePath('x' * 66_000)",
    "path of four bytes each": "pathlib.PurePath('\\U0001f600' * 66_000)",
    "decimal": "decimal.Decimal('1' * 66_000)",
    "dtype": "np.dtype([('x' * 66_000, 'i4')])",
    "slice": "slice('x' * 66_000)",
    "zone": "datetime.timezone(datetime.timedelta(0), 'x' * 66_000)",
    "time": "datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), 'x' * 66_000))",
    "pattern": "re.compile('x' * 66_000)",
}
# An int of five million bits takes half a minute to write; these have several.
QUADRATIC = {
    "range": "range(1 << 5_000_000)",
    "range with a step": "range(0, 1 << 5_000_000, 1 << 5_000_000)",
    "slice of ints": "slice(1 << 5_000_000, -(1 << 5_000_000))",
    "fraction": "fractions.Fraction(1, 1 << 5_000_000)",
    "many ranges": "[range(1 << 100_000) for _ in range(300)]",
}
PROGRAMS = {
    f"{name}{place}": f"{SETUP}v = {wrapped.format(code)}\nw = 1"
    for name, code in {**LONG, **QUADRATIC}.items()
    for place, wrapped in {
        "": "{}",
        " in a list": "[{}]",
        " in an exception": "ValueError({})",
        " in a frame": "pd.DataFrame({{'a': pd.Series([{}], dtype=object)}})",
    }.items()
}


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_recordings_have_short_texts(run, monkeypatch, name, recorder):
    if recorder == "python":
        monkeypatch.setattr(recorder_factory, "_fast", None)
    assert run(PROGRAMS[name], watch=True).exception is None
    reader = recording.Reader(run.channel.recorded)
    shown = reader.stack()[-1]
    assert reader.lost == [] and shown["w"] == "1"
    # The reader escapes what is not ASCII.
    assert max(len(text.encode("ascii", "ignore")) for text in shown.values()) <= 5 * MAX_TEXT_BYTES


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_are_short(run, name):
    run(PROGRAMS[name])
    v = run.session._names["v"]
    for text in (
        values.preview(v, 300),
        values.safe_repr(v),
        run.session.variables()["variables"]["v"]["repr"],
        run("inspect_var('v', v)\nNone") and run.channel.notes[-1]["repr"],
        run("1 / 0").failure.traceback[0]["variables"]["v"],
    ):
        assert 0 < len(text) <= 5000


def test_long_texts_say_what_is_missing(run):
    run(f"{SETUP}v = pathlib.PurePath('x' * 66_000)", watch=True)
    reader = recording.Reader(run.channel.recorded)
    assert reader.stack()[-1]["v"].endswith('... [50017 more characters]"]')
    assert len(library_values.raw("\U0001f600" * 66_000).text.encode()) <= MAX_TEXT_BYTES
    run("v = range(3, 1 << 20_000)")
    assert values.safe_repr(run.session._names["v"]) == "range(3, <int of 20001 bits>)"
    run("v = [range(2), range(1, 2), range(1, 9, 3), slice(None), slice(1, 'a', 2.5)]")
    text = "[range(0, 2), range(1, 2), range(1, 9, 3), slice(None, None, None), slice(1, 'a', 2.5)]"
    assert values.safe_repr(run.session._names["v"]) == text
