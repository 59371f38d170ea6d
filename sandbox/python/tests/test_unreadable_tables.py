"""Recordings and texts of tables whose memory is gone, or whose parts are not of pandas. A signal ends the tests."""

import errno
import mmap
import sys

import mapped_memory
import numpy
import pandas
import programs
import pytest
import values

RECORDERS = ["python", *(["extension"] if f"{sys.version_info[0]}.{sys.version_info[1]}" in programs.VERSIONS else [])]

SETUP = """
import mmap, tempfile
import numpy as np, pandas as pd
ran = []
file = tempfile.TemporaryFile()
file.truncate(1 << 20)
memory = mmap.mmap(file.fileno(), 1 << 20)
class Block:
    @property
    def values(self):
        ran.append('values')
        return np.arange(100_000) * 1.5
class Manager:
    @property
    def axes(self):
        ran.append('axes')
        return [pd.RangeIndex(5), pd.RangeIndex(5)]
    @property
    def blocks(self):
        ran.append('blocks')
        return (Block(), Block())
"""
GONE = "its memory is gone, because the file that it is mapped from has shrunk or is unmapped"

# Programs that make a table, and the reason why it is not read afterwards.
FOREIGN = {
    "block manager": (
        "x = pd.DataFrame({'a': [1, 2]})\nobject.__setattr__(x, '_mgr', Manager())",
        "its _mgr is a Manager, not the block manager of pandas",
    ),
    "block": (
        "x = pd.DataFrame({'a': [1, 2]})\nx._mgr.blocks = (Block(),)",
        "it has a block of the class Block, not one of pandas",
    ),
    "block of a series": (
        "x = pd.Series([1, 2])\nx._mgr.blocks = (Block(),)",
        "it has a block of the class Block, not one of pandas",
    ),
}
SHRUNK = {
    "array": "x = np.frombuffer(memory, dtype='u1')",
    "small array": "x = np.frombuffer(memory, dtype='u1')[-9:]",
    "array of two dimensions": "x = np.frombuffer(memory, dtype='f8').reshape(-1, 4)",
    "array backwards": "x = np.frombuffer(memory, dtype='f8')[::-1]",
    "part of an array": "x = np.frombuffer(memory, dtype='f8')[4::999]",
    "array of numpy.memmap": "x = np.asarray(np.memmap(file, dtype='f8', mode='r+'))",
    "array of a view": "x = np.frombuffer(memoryview(memory)[1 << 19:], dtype='u1')",
    "series": "x = pd.Series(np.frombuffer(memory, dtype='f8'), copy=False)",
    "frame": "x = pd.DataFrame(np.frombuffer(memory, dtype='f8').reshape(-1, 4), copy=False)",
    "labels": "x = pd.Series(1, index=pd.Index(np.frombuffer(memory, dtype='f8'), copy=False))",
}
PROGRAMS = {**FOREIGN, **{name: (f"{code}\ny = 1\nfile.truncate(0)", GONE) for name, code in SHRUNK.items()}}


@pytest.mark.parametrize("recorder", RECORDERS)
def test_recorded_steps_say_why_a_table_is_not_read(recorder):
    path = str(programs.extension("recorder_fast", sys.executable).parent) if recorder == "extension" else ""
    names = [name for name in PROGRAMS if name != "labels"]  # a change of labels in place is not noticed
    jobs = [{"name": name, "code": f"{SETUP}{PROGRAMS[name][0]}\nr = ran[:]\nend = 1"} for name in names]
    for name, (plain, watched) in zip(names, programs.record(sys.executable, jobs, path), strict=True):
        assert plain["same"] == watched["same"] and watched["same"]["error"] is None, name
        assert watched["same"]["result"] == "[]", f"{name}: user code has run"
        assert watched["reader"].lost == [] and watched["reader"].stack()[-1]["end"] == "1", name
        found = watched["reader"].stack()[-1]["x"]
        assert found.startswith("unread ") and f" that is not read: {PROGRAMS[name][1]}>" in found, name


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts_say_why_a_table_is_not_read(run, name):
    code, reason = PROGRAMS[name]
    run(SETUP + code)
    x = run.session._names["x"]
    assert values.preview(x, 300).endswith(f" that is not read: {reason}>")
    assert reason in run.session.variables()["variables"]["x"]["repr"]
    run("inspect_var('x', x)")
    assert reason in run.channel.notes[-1]["repr"]
    assert reason in run("x").ok["repr"]
    assert reason in run("[[x]]").ok[0][0]["repr"]


def test_ordinary_mapped_memory_is_read():
    memory = mmap.mmap(-1, 1 << 16)
    memory[:2] = b"ab"
    array = numpy.frombuffer(memory, dtype="u1")
    assert values.preview(array).startswith("<ndarray uint8 65536: 97, 98, 0, ")
    assert values.preview(pandas.Series(array[1:3], copy=False)) == "<Series uint8 2: 98, 0>"
    assert values.preview(numpy.frombuffer(b"ab", dtype="u1")) == "<ndarray uint8 2: 97, 98>"


ARROW = """
import os, tempfile
import pandas as pd, pyarrow as pa, pyarrow.ipc
file = tempfile.NamedTemporaryFile()
numbers = pa.array(range(100_000), pa.int64())
words = pa.array([f"word {n}" for n in range(100_000)], pa.string())
made = pa.table({"n": numbers, "s": words, "d": words.dictionary_encode()})
with pa.ipc.new_file(file.name, made.schema) as writer:
    writer.write_table(made)
mapped = pa.ipc.open_file(pa.memory_map(file.name)).read_all()
"""
ARROW_PANDAS = {
    "texts": "x = mapped.to_pandas()['s']",
    "numbers": "x = pd.Series(pd.array(mapped['n'], dtype=pd.ArrowDtype(pa.int64())))",
    "categories": "x = pd.Series(pd.array(mapped['d'], dtype=pd.ArrowDtype(mapped['d'].type)))",
    "part": "x = mapped.to_pandas()['s'][9:12]",
    "frame": "x = mapped.to_pandas(types_mapper=pd.ArrowDtype)",
    "arrow labels": "x = pd.Series(range(100_000), index=pd.Index(mapped.to_pandas()['s'], copy=False))",
}
ARROW_OWN = {
    "table": "x = mapped",
    "batch": "x = mapped.to_batches()[0]",
    "column": "x = mapped['s']",
    "array": "x = mapped['n'].chunk(0)",
    "dictionary": "x = mapped['d'].chunk(0)",
}
SHRINK = "\ny = 1\nos.truncate(file.name, 0)"


@pytest.mark.parametrize("name", [*ARROW_PANDAS, *ARROW_OWN])
def test_values_of_arrow_say_that_their_file_has_shrunk(run, name):
    pytest.importorskip("pyarrow")
    run(ARROW + {**ARROW_PANDAS, **ARROW_OWN}[name])
    before = values.safe_repr(run.session._names["x"])
    run(SHRINK)
    x = run.session._names["x"]
    end = f" that is not read: {GONE}>"
    if name in ARROW_PANDAS:
        assert values.preview(x, 300).endswith(end)
        assert run.session.variables()["variables"]["x"]["repr"].endswith(end)
    assert GONE not in before and values.safe_repr(x).endswith(end)
    run("inspect_var('x', x)")
    assert run.channel.notes[-1]["repr"].endswith(end)
    assert run("x").ok["repr"].endswith(end)
    assert run("[[x]]").ok[0][0]["repr"].endswith(end)


@pytest.mark.parametrize("name", [*ARROW_PANDAS, *ARROW_OWN])
def test_values_of_arrow_are_read_while_their_file_is_there(run, name):
    pytest.importorskip("pyarrow")
    run(ARROW + {**ARROW_PANDAS, **ARROW_OWN}[name] + "\nowned = made.to_pandas()['s']")
    for text in (values.preview(run.session._names["x"]), run.session.variables()["variables"]["x"]["repr"]):
        assert "not read" not in text
    shown = run("[x, owned]").ok
    assert "not read" not in str(shown) and "word 0" in str(shown[1])


@pytest.mark.parametrize("recorder", RECORDERS)
def test_recorded_steps_say_that_the_file_of_arrow_has_shrunk(recorder):
    pytest.importorskip("pyarrow")
    path = str(programs.extension("recorder_fast", sys.executable).parent) if recorder == "extension" else ""
    jobs = [
        {"name": name, "code": f"{ARROW}os.truncate(file.name, 0)\n{code}\nend = 1"}
        for name, code in {
            "texts": "x = pd.Series(pd.array(mapped['s'], dtype=pd.ArrowDtype(pa.string())), copy=False)",
            "numbers": ARROW_PANDAS["numbers"],
        }.items()
    ]
    for job, (_, watched) in zip(jobs, programs.record(sys.executable, jobs, path), strict=True):
        assert watched["same"]["error"] is None, job["name"]
        found = watched["reader"].stack()[-1]
        assert found["end"] == "1" and f" that is not read: {GONE}>" in found["x"], job["name"]


def test_values_of_arrow_are_read_where_the_system_cannot_tell(run, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(mapped_memory, "_madvise", lambda *_: -1)
    monkeypatch.setattr(mapped_memory, "_errno", lambda: errno.EINVAL)
    shown = run(ARROW + "[mapped.to_pandas()['s'], mapped]").ok
    assert "word 0" in str(shown[0]) and "word 0" in str(shown[1])
