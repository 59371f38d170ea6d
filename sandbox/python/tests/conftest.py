"""A session of a guest with a fake channel. The channel checks that the supervisor would accept each frame: it is JSON
that strict readers accept, within the size of a frame."""

import asyncio
import builtins
import contextlib
import functools
import importlib.util
import json
import pathlib
import signal
import socket
import sys

import matplotlib
import numpy
import programs
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot  # noqa: E402, F401 - imported before the sessions, like in the zygote

matplotlib.pyplot.figure()  # chooses the backend, like the warm-up
matplotlib.pyplot.close("all")

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "guest"))

matplotlib.use("Agg")


# The extension of this source, whatever is installed.
if f"{sys.version_info[0]}.{sys.version_info[1]}" in programs.VERSIONS:
    sys.path.insert(0, str(programs.extension("recorder_fast", sys.executable).parent))

import import_hooks  # noqa: E402
import matplotlib.pyplot  # noqa: E402
import pandas  # noqa: E402, F401
import protocol  # noqa: E402
import session  # noqa: E402
import supervisor_ring  # noqa: E402

session._OWN = "/glasshouse"  # the tests go on importing our modules after hide_own_modules

FRAME = 1 << 20


@pytest.fixture
def extension():
    """syscall_batch of this source, whatever is installed."""
    return _syscall_batch()


@functools.cache  # a fixture of the session would keep a failure, too
def _syscall_batch():
    target = programs.extension("syscall_batch", sys.executable)
    spec = importlib.util.spec_from_file_location("syscall_batch", target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


_FORMS = {"int": ("q", "<i8"), "bool": ("?", "?"), "float": ("d", "<f8")}
_TIMES = {"date": "<M8[s]", "timestamp": "<M8[us]", "timestamptz": "<M8[us]", "timedelta": "<m8[us]"}


def pack(column, data, form, exact=True):
    """Packs values of a column like the supervisor. A time that is out of range stays text."""
    kind, nulls = column["kind"], bytes(v is None for v in data) if None in data else b""
    if column["array"] or kind == "bytes":
        return list(data)
    if form and kind == "decimal" and not exact:
        kind, data = "float", [None if v is None else float(v) for v in data]
    if kind in _FORMS:
        return (
            _FORMS[kind][0],
            numpy.array(
                [(float("nan") if kind == "float" else 0) if v is None else v for v in data], dtype=_FORMS[kind][1]
            ).tobytes(),
            nulls,
        )
    if form and kind == "timedelta":
        bare = [None if v is None else (v[0] * 30 + v[1]) * 86_400_000_000 + v[2] for v in data]
        return "q", numpy.array(["NaT" if v is None else v for v in bare], dtype=_TIMES[kind]).tobytes(), nulls
    if form and kind in _TIMES and all(v is None or v[:2] == "20" and "BC" not in v for v in data):
        return (
            "q",
            numpy.array(["NaT" if v is None else v.removesuffix("+00:00") for v in data], dtype=_TIMES[kind]).tobytes(),
            nulls,
        )
    if kind == "timedelta":
        return list(data)
    texts = ["" if v is None else v for v in data]
    if form == "arrow" and kind in ("string", "text"):
        each = [v.encode() for v in texts]
        return "a", b"".join(each), nulls, numpy.array([len(v) for v in each], dtype="<i4").tobytes()
    return "t", "\0".join(texts).encode(), nulls


def strictly(value):
    """Returns the value as a strict reader gets it from a frame."""
    body = protocol.encode(value)
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4300)
    try:
        read = json.loads(body, object_pairs_hook=_unique, parse_constant=_no_constant)
    finally:
        sys.set_int_max_str_digits(limit)
    json.dumps(read, ensure_ascii=False).encode()  # fails for a lone surrogate
    return read


def _unique(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def _no_constant(name):
    raise AssertionError(name)


class FakeChannel(protocol.Channel):
    """Answers requests with the results that a test has set, and keeps the frames that it gets."""

    def __init__(self):
        super().__init__(socket.socket(socket.AF_UNIX).detach())  # a socket that is not connected
        self._recorded, self.rings = bytearray(), []
        self.told, self.waiting, self.script, self.play = [], [], None, None
        self.notes, self.outputs, self.asked, self.databases = [], [], [], []
        self.columns, self.data, self.truncated = [], [], False
        self.refusal, self.refuses_late, self.count, self.part = None, False, 0, 2
        self.raw, self.form = None, ""
        self.staged, self.stages_answer = [], None

    @staticmethod
    def _sent(value):
        assert len(protocol.encode(value)) < FRAME
        return strictly(value)

    def query(self, database, sql, params, types, result):
        """Sends one or two rows at a time, so that a result consists of several batches."""
        self.databases.append(self._sent(database))
        self.asked.append(self._sent((sql, params, types)))
        if self.refusal and not self.refuses_late:
            raise protocol.Refused(self.refusal)
        result.begin([dict(c) for c in self.columns])
        many = len(self.data[0]) if self.data else self.count
        for at, end in [(0, 1), *((i, i + self.part) for i in range(1, many, self.part))] if many else []:
            parts = [d[at:end] for d in self.data]
            result.take(
                min(end, many) - at,
                [self.raw or pack(c, d, self.form or result.form, result.exact) for c, d in zip(self.columns, parts)],
            )
        if self.refusal:
            raise protocol.Refused(self.refusal)
        return self.truncated

    def stages(self, database, sql, params, types):
        self.staged.append(self._sent((database, sql, params, types)))
        if self.stages_answer is None:
            raise protocol.Refused({"reason": "volatile", "message": "it is <volatile>"})
        return self.stages_answer

    def tables(self, database):
        self.databases.append(self._sent(database))
        return ["orders", "users"]

    def schema(self, database, table):
        self.databases.append(self._sent(database))
        if table != "users":
            raise protocol.Refused(
                {
                    "reason": "unknown-table",
                    "message": f"there is no table {table!r}",
                    "nearest": "users",
                    "hint": "did you mean users?",
                }
            )
        columns = [{"column_name": "id", "data_type": "integer", "is_nullable": "NO", "column_default": None}]
        return {"table_name": "users", "row_estimate": 500, "columns": columns}

    def history(self):
        return [{"execution_id": "e1", "status": "completed"}]

    def note(self, note):
        self.notes.append(self._sent(note))

    def output(self, output):
        self.outputs.append(strictly(output))

    def send(self, kind, value, fds=None):
        """Keeps the messages of a stopped program, and queues the commands of the script."""
        self.told.append((kind, self._sent(value)))
        if kind == protocol.STOP:
            self.play = self.script(self.told[-1][1])
            self.waiting.append(next(self.play))
        elif kind == protocol.VALUE:
            self.waiting.append(self.play.send(self.told[-1][1]))

    def receive(self):
        return protocol.COMMAND, json.dumps(self.waiting.pop(0)).encode()

    def open_ring(self):
        self.rings.append(supervisor_ring.Ring(self._recorded))
        return self.rings[-1]

    @property
    def recorded(self):
        for ring in self.rings:
            if not ring.memory.closed:
                ring.take()
        return self._recorded

    def answers(self, **columns):
        """Sets the columns of the next result, name=(kind, values). "int[]" is an array, "range:int" a range of int."""
        self.columns = []
        for name, (given, _) in columns.items():
            kind, _, of = given.removesuffix("[]").partition(":")
            self.columns.append({"name": name, "type": kind, "kind": kind, "of": of, "array": given.endswith("[]")})
        self.data = [values for _, values in columns.values()]


class Runner:
    """A session whose call run(code) returns an Outcome."""

    def __init__(self, rules=None):
        self.channel = FakeChannel()
        self.rules = {"enabled": False} if rules is None else rules
        self.session = session.Session(self.channel)
        self.session.enter(POLICY, self.rules)
        self.session.hide_own_modules()

    def __call__(self, code, context=None, watch=False, stops=None, **scope):
        before = len(self.channel.outputs)
        outcome = self.session.run(
            {"execution_id": "e1", "code": code, "context": context or {}, "watch": watch, "stops": stops, **scope}
        )
        assert set(outcome) == {"result", "exception", "truncated", "exit", "interrupt", "compile_ms"}
        outcome["outputs"] = self.channel.outputs[before:]
        return Outcome(strictly(outcome))


class Outcome(dict):
    """A sandbox.Outcome whose keys are also attributes."""

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
def _restored_process():
    """Undoes the changes of a session in this process."""
    kept = (
        sys.modules["__main__"],
        asyncio.run,
        sys.path[:],
        sys.stdout,
        sys.stderr,
        signal.getsignal(signal.SIGINT),
        sys.get_int_max_str_digits(),
    )
    read, create_task, loops = builtins.input, asyncio.create_task, asyncio.get_event_loop_policy()
    yield
    asyncio.create_task = asyncio.tasks.create_task = create_task
    asyncio.set_event_loop_policy(loops)
    builtins.input = read
    sys.modules["__main__"], asyncio.run, sys.path[:], sys.stdout, sys.stderr = kept[:5]
    asyncio.runners.run = kept[1]
    signal.signal(signal.SIGINT, kept[5])
    sys.set_int_max_str_digits(kept[6])
    import_hooks._pending.clear()
    matplotlib.pyplot.close("all")


@pytest.fixture
def run(_restored_process):
    """A session without import rules."""
    return Runner()


@pytest.fixture
def notebook(_restored_process):
    """A session with the profile notebook."""
    runner = Runner()
    runner.session.enter({**POLICY, "profile": "notebook"}, {"enabled": False})
    return runner


@pytest.fixture
def ruled(_restored_process):
    """A session with import rules."""
    return Runner(RULES)


def pytest_make_parametrize_id(val):
    """Gives huge integers a test ID, because str() fails for them."""
    return "int" if type(val) is int and val.bit_length() > 1000 else None


@pytest.fixture
def new_guest(extension):
    """Starts guests, which end with the test."""
    import input_guests  # needs the path that this module sets

    with contextlib.ExitStack() as guests:

        def start(preload: bool = True, has_fast_recorder: bool = True):
            is_fast = has_fast_recorder and programs.OWN in programs.VERSIONS
            guest = input_guests.Guest(extension.__file__, preload, is_fast)
            guests.callback(guest.close)
            return guest

        yield start
