"""A session behind a fake hatch, as the child has it: what it sends is checked to be
what the host takes (JSON without NaN, within a frame's size)."""

import asyncio
import json
import pathlib
import signal
import socket
import sys

import matplotlib
import numpy
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot  # noqa: E402, F401 - imported ahead of the sessions, as the zygote has it

matplotlib.pyplot.figure()  # settles the backend, as the warm-up does
matplotlib.pyplot.close("all")

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "inside"))


matplotlib.use("Agg")

import hatch  # noqa: E402
import matplotlib.pyplot  # noqa: E402
import pandas  # noqa: E402, F401
import session  # noqa: E402

session._HOME = "/glasshouse"  # the tests go on importing our modules after leave_home

FRAME = 1 << 20

POLICY = {
    "max_memory_mb": 256,
    "max_threads": 10,
    "max_open_files": 100,
    "workspace_max_bytes": 1 << 26,
    "file_max_bytes": 50 << 20,
    "max_rows": 2,
}

RULES = {
    "enabled": True,
    "allowed": [
        "json",
        "datetime",
        "math",
        "re",
        "asyncio",
        "decimal",
        "collections",
        "time",
        "io",
        "pathlib",
        "urllib.parse",
        "concurrent",
        "dataclasses",
        "enum",
        "uuid",
        "threading",
        "traceback",
        "contextlib",
        "functools",
        "typing",
        "__future__",
        "processor_pipeline",
        "numpy",
        "pandas",
        "matplotlib",
        "PIL",
        "requests",
        "random",
        "warnings",
        "statistics",
        "logging",
    ],
    "allowed_only": False,
    "blocked": {
        "os": "pathlib for files in /session",
        "sys": "print() for output",
        "urllib": "urllib.parse",
        "importlib": "a plain import statement",
        "socket": "db_query for data",
    },
    "calls": {
        "eval": "json.loads",
        "exec": "functions",
        "compile": "functions",
        "__import__": "an import statement",
        "open": "the run's result",
    },
    "keys": {"open": "enable_file_access"},
    "blocked_modules": ["plotly"],
}


def pack(column, data):
    """A column of a frame, as the host packs it; a time that does not fit stays text."""
    kinds = {"int": "<i8", "bool": "?", "float": "<f8", "timestamp": "<M8[us]", "timestamptz": "<M8[us]"}
    kind = column["kind"]
    if kind not in kinds or column["array"] or "infinity" in data:
        return list(data)
    masked = kind in ("int", "bool") and None in data
    bare = [0 if masked and v is None else v[:26].removesuffix("+00:00") if type(v) is str else v for v in data]
    return numpy.array(bare, dtype=kinds[kind]).tobytes(), bytes(v is None for v in data) if masked else b""


class FakeChannel(hatch.Channel):
    """Answers questions from what a test put into it, and keeps what it was sent."""

    def __init__(self):
        super().__init__(socket.socket(socket.AF_UNIX).detach())  # where nobody is
        self.recorded = bytearray()
        self.told, self.waiting, self.script, self.play = [], [], None, None
        self.notes, self.outputs, self.asked = [], [], []
        self.columns, self.data, self.truncated = [], [], False
        self.refusal = None

    @staticmethod
    def _sent(value):
        body = json.dumps(value, allow_nan=False)
        assert len(body) < FRAME
        return json.loads(body)

    def query(self, sql, params, types, packed):
        self.asked.append(self._sent((sql, params, types)))
        if self.refusal:
            raise hatch.Refused(self.refusal)
        return [dict(c) for c in self.columns], [pack(c, d) if packed else list(d) for c, d in zip(self.columns, self.data)], self.truncated

    def tables(self):
        return ["orders", "users"]

    def schema(self, table):
        if table != "users":
            raise hatch.Refused(
                {"reason": "unknown-table", "message": f"there is no table {table!r}", "nearest": "users", "hint": "did you mean users?"}
            )
        columns = [{"column_name": "id", "data_type": "integer", "is_nullable": "NO", "column_default": None}]
        return {"table_name": "users", "row_estimate": 500, "columns": columns}

    def history(self):
        return [{"execution_id": "e1", "status": "completed"}]

    def note(self, note):
        self.notes.append(self._sent(note))

    def output(self, output):
        self.outputs.append(json.loads(json.dumps(output, allow_nan=False)))

    def send(self, kind, value, fds=None):
        """What a program that stands tells, and what play answers with."""
        self.told.append((kind, self._sent(value)))
        if kind == hatch.STOP:
            self.play = self.script(self.told[-1][1])
            self.waiting.append(next(self.play))
        elif kind == hatch.VALUE:
            self.waiting.append(self.play.send(self.told[-1][1]))

    def receive(self):
        return hatch.COMMAND, json.dumps(self.waiting.pop(0)).encode()

    def records(self, data):
        self.recorded += data

    def answers(self, **columns):
        """name=(kind, values) a column; a kind ending in [] is an array, range:int a range of int."""
        self.columns = []
        for name, (given, _) in columns.items():
            kind, _, of = given.removesuffix("[]").partition(":")
            self.columns.append({"name": name, "type": kind, "kind": kind, "of": of, "array": given.endswith("[]")})
        self.data = [values for _, values in columns.values()]


class Runner:
    """run(code) runs it in one session and answers the outcome; its keys are attributes too."""

    def __init__(self, rules=None):
        self.channel = FakeChannel()
        self.rules = {"enabled": False} if rules is None else rules
        self.session = session.Session(self.channel)
        self.session.enter(POLICY, self.rules)
        self.session.leave_home()

    def __call__(self, code, context=None, watch=False, stops=None):
        before = len(self.channel.outputs)
        outcome = self.session.run({"execution_id": "e1", "code": code, "context": context or {}, "watch": watch, "stops": stops})
        assert set(outcome) == {"result", "exception", "truncated", "exit", "interrupt"}
        outcome["outputs"] = self.channel.outputs[before:]
        return Outcome(json.loads(json.dumps(outcome, allow_nan=False)))


class Outcome(dict):
    __getattr__ = dict.__getitem__

    @property
    def ok(self):
        assert self.exception is None, self.exception
        return self.result

    @property
    def failure(self):
        assert self.exception is not None, self.result
        return Outcome({"column": 0, "hint": "", **self.exception})


@pytest.fixture(autouse=True)
def _as_before():
    """A session changes the process that it is in; the next test has a fresh one."""
    kept = (
        sys.modules["__main__"],
        asyncio.run,
        sys.path[:],
        sys.stdout,
        sys.stderr,
        signal.getsignal(signal.SIGINT),
        sys.get_int_max_str_digits(),
    )
    yield
    sys.modules["__main__"], asyncio.run, sys.path[:], sys.stdout, sys.stderr = kept[:5]
    asyncio.runners.run = kept[1]
    signal.signal(signal.SIGINT, kept[5])
    sys.set_int_max_str_digits(kept[6])
    matplotlib.pyplot.close("all")


@pytest.fixture
def run(_as_before):
    """A session without import rules."""
    return Runner()


@pytest.fixture
def ruled(_as_before):
    """A session with import rules."""
    return Runner(RULES)


def pytest_make_parametrize_id(val):
    """A huge int has no str."""
    return "int" if type(val) is int and val.bit_length() > 1000 else None
