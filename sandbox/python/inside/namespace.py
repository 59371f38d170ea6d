"""The helpers that code finds already there."""

import collections
import datetime
import decimal
import json
import sys
import uuid

import hatch
import values

_UTC = datetime.timezone.utc


class DatabaseError(Exception):
    """A statement failed or was refused; the attributes say why and where."""

    def __init__(self, refusal: dict):
        self.reason = refusal.get("reason", "")
        self.sqlstate = refusal.get("sqlstate", "")
        self.position = refusal.get("position", 0)
        self.line = refusal.get("line", 0)
        self.nearest = refusal.get("nearest", "")
        self.hint = refusal.get("hint", "")
        super().__init__(refusal.get("message", "refused"))


class ReadOnlyError(DatabaseError):
    """The statement would write, and db_query only reads."""


class Rows(list):
    """Rows as a list of dicts; `await` gives a plain list of them, as does a task.
    truncated is True exactly where there were more rows or bytes than allowed."""

    truncated = False
    __hash__ = object.__hash__  # asyncio keeps what it waits for in sets

    def __await__(self):
        return list(self)
        yield

    # What makes asyncio.create_task and gather take it: a coroutine that is done.
    def send(self, _value):
        raise StopIteration(list(self))

    def throw(self, error, value=None, trace=None):
        raise error

    def close(self):
        pass


class Done(Rows):
    """Any other answer that may be awaited."""


def _decimal(v):
    return decimal.Decimal(v)


def _temporal(parse):
    def convert(v):
        try:
            return parse(v)
        except ValueError:
            return v  # infinity, BC and years past 9999 have no Python value
    return convert


def _timestamptz(v):
    return datetime.datetime.fromisoformat(v).astimezone(_UTC)


def _timedelta(v):
    months, days, micros = v
    return datetime.timedelta(days=days + 30 * months, microseconds=micros)


_CONVERT = {
    "decimal": _decimal,
    "date": _temporal(datetime.date.fromisoformat),
    "time": _temporal(datetime.time.fromisoformat),
    "timetz": _temporal(datetime.time.fromisoformat),
    "timestamp": _temporal(datetime.datetime.fromisoformat),
    "timestamptz": _temporal(_timestamptz),
    "timedelta": _timedelta,
    "uuid": uuid.UUID,
    "json": json.loads,
}


def _deep(convert, v):
    if isinstance(v, list):
        return [_deep(convert, x) for x in v]
    return None if v is None else convert(v)


def to_rows(columns: list, data: list, truncated: bool) -> Rows:
    names, seen = [], set()
    for column in columns:
        name, n = column["name"], 2
        while name in seen:
            name, n = f"{column['name']}_{n}", n + 1
        seen.add(name)
        names.append(name)
    for i, column in enumerate(columns):
        convert = _CONVERT.get(column["kind"])
        if convert is None:
            continue
        if column["array"]:
            data[i] = [_deep(convert, v) for v in data[i]]
        else:
            data[i] = [None if v is None else convert(v) for v in data[i]]
    rows = Rows([dict(zip(names, row)) for row in zip(*data)])
    rows.truncated = truncated
    return rows


class Helpers:
    """The helpers of one session; names() is what a namespace begins with."""

    def __init__(self, channel, state):
        self._channel = channel
        self._state = state  # () -> sandbox.Variables of the session
        self.logs = collections.deque(maxlen=1000)
        self.total = 0
        self.levels: dict = {}
        self.tracked: dict = {}
        self.display = None

    def names(self) -> dict:
        public = ("db_query", "db_tables", "db_schema", "debug", "inspect_var", "get_debug_info", "get_execution_history", "get_sandbox_state")
        out = {name: getattr(self, name) for name in public}
        out.update(display=self.display, datetime=datetime.datetime, timedelta=datetime.timedelta, timezone=datetime.timezone)
        out.update(ReadOnlyError=ReadOnlyError, DatabaseError=DatabaseError, exit=sys.exit, quit=sys.exit)
        return out

    def db_query(self, sql, params=None):
        """Rows of one read-only statement, with :name parameters; works with and without await."""
        if not isinstance(sql, str):
            raise TypeError(f"db_query takes the statement as a str, not {type(sql).__name__}")
        if params is not None and not isinstance(params, dict):
            raise TypeError("db_query takes parameters as a dict, named in the statement as :name")
        columns, data, truncated = self._ask(self._channel.query, sql, {str(k): _parameter(v) for k, v in (params or {}).items()})
        rows = to_rows(columns, data, truncated)
        if truncated:
            print(f"db_query: only the first {len(rows)} rows are here; there are more (max_rows)", file=sys.stderr)
        return rows

    def db_tables(self):
        """Names of the tables and views that may be read."""
        return Done(self._ask(self._channel.tables))

    def db_schema(self, table):
        """Columns of a table: column_name, data_type, is_nullable, column_default, ..."""
        return Done(self._ask(self._channel.schema, str(table)))

    @staticmethod
    def _ask(question, *args):
        try:
            return question(*args)
        except hatch.Refused as refused:
            kind = ReadOnlyError if refused.detail.get("reason") == "read-only" else DatabaseError
            raise kind(refused.detail) from None

    def debug(self, message, level="INFO", data=None):
        """Keeps a note with the execution; level is DEBUG, INFO, WARNING or ERROR."""
        level = str(level).upper()
        if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            raise ValueError(f"level {level!r} is not one of DEBUG, INFO, WARNING, ERROR")
        frame = sys._getframe(1)
        text = message if type(message) is str else values.safe_repr(message)
        note = {"level": level, "message": text[:10_000].encode("utf-8", "backslashreplace").decode(), "line": frame.f_lineno, "function": frame.f_code.co_name}
        if data is not None:
            note["data"] = values.to_json(data, 100_000)[0]
        self.total += 1
        self.levels[level] = self.levels.get(level, 0) + 1
        self.logs.append(note)
        self._channel.note(note)

    def inspect_var(self, name, value):
        """Records the value's type, size and a bounded repr under name; returns the value."""
        frame = sys._getframe(1)
        size = getattr(value, "nbytes", None) if values.type_name(value).startswith("numpy.") else None
        try:
            size = int(size) if size is not None else sys.getsizeof(value)
        except Exception:
            size = 0
        note = {"name": str(name)[:200], "type": values.type_name(value), "size": size, "repr": values.safe_repr(value), "line": frame.f_lineno, "function": frame.f_code.co_name}
        self.tracked.setdefault(note["name"], collections.deque(maxlen=50)).append(note)
        self._channel.note(note)
        return value

    def get_debug_info(self):
        """{total_logs, log_levels, tracked_variables, variable_names, recent_logs}"""
        return {"total_logs": self.total, "log_levels": dict(self.levels), "tracked_variables": len(self.tracked),
                "variable_names": list(self.tracked), "recent_logs": list(self.logs)[-10:]}

    def get_execution_history(self):
        """This sandbox's earlier executions, newest first."""
        return Done(self._channel.history())

    def get_sandbox_state(self):
        """This sandbox's variables and what it uses."""
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        return {**self._state(), "usage": {"cpu_seconds": used.ru_utime + used.ru_stime}}


def _parameter(v):
    """A parameter as JSON; what PostgreSQL reads from text goes as text."""
    if isinstance(v, (list, tuple)):
        return [_parameter(x) for x in v]
    if isinstance(v, dict):
        return {str(k): _parameter(x) for k, x in v.items()}
    if v is None or type(v) in (bool, int, str):
        return v
    if type(v) is float:
        return v if v == v and v not in (float("inf"), float("-inf")) else str(v).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, datetime.timedelta):
        return f"{v.days} days {v.seconds} seconds {v.microseconds} microseconds"
    if isinstance(v, (decimal.Decimal, uuid.UUID)):
        return str(v)
    if isinstance(v, bytes):
        return "\\x" + v.hex()
    item = getattr(v, "item", None)
    if callable(item) and type(v).__module__ == "numpy":
        return _parameter(item())
    raise TypeError(f"a parameter of type {type(v).__name__} has no PostgreSQL value; pass a str, number, date, list or dict")
