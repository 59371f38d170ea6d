"""The helpers that code finds already there."""

import builtins
import collections
import datetime
import decimal
import gc
import json
import resource
import sys
import uuid
from collections.abc import Callable

import hatch
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_ASK = 900_000  # bytes of a question; the host ends a child that sends more than 1 MiB
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_UTC = datetime.UTC
_dumps, _print = json.dumps, print


class DatabaseError(Exception):
    """A statement failed or was refused. The attributes say why and where: reason (a
    stable code), sqlstate, position and line (from 1, 0 where unknown), nearest, hint."""

    __module__ = "builtins"  # what a traceback calls it

    def __init__(self, refusal: "dict | str" = ""):
        detail = refusal if isinstance(refusal, dict) else {"message": refusal}
        self.reason = detail.get("reason", "")
        self.sqlstate = detail.get("sqlstate", "")
        self.position = detail.get("position", 0)
        self.line = detail.get("line", 0)
        self.nearest = detail.get("nearest", "")
        self.hint = detail.get("hint", "")
        message = detail.get("message", "refused")
        super().__init__(f"{message} (hint: {self.hint})" if self.hint and self.hint not in message else message)


class ReadOnlyError(DatabaseError):
    """The statement would write, and db_query only reads."""

    __module__ = "builtins"


class Rows(list):
    """A list as a helper answers it. It may also be awaited, gathered or made a task of,
    for to asyncio it is a coroutine that is done; what comes of that is a plain list.
    truncated is True exactly where there were more rows or bytes than allowed."""

    __module__ = "builtins"  # what its type is called
    __hash__ = object.__hash__  # type: ignore[assignment]  # asyncio keeps what it waits for in sets
    truncated = False

    def __await__(self):
        return list(self)
        yield

    def send(self, _value):
        raise StopIteration(list(self))

    def throw(self, error, value=None, trace=None):
        raise error

    def close(self):
        pass

    def __reduce_ex__(self, _protocol):  # a copy, or a pickle, is a plain list
        return list, (list(self),)


class State(dict):
    """A dict that may also be awaited."""

    __module__ = "builtins"

    def __await__(self):
        return dict(self)
        yield


values.LISTS.add(Rows)
values.DICTS.add(State)


# -- rows


def _timedelta(v):
    months, days, micros = v
    try:
        return datetime.timedelta(days=days + 30 * months, microseconds=micros)
    except OverflowError:
        return f"{months} mons {days} days {micros} microseconds"


def _timestamptz(v):
    return datetime.datetime.fromisoformat(v).astimezone(_UTC)


_CONVERT = {
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timetz": datetime.time.fromisoformat,
    "timestamp": datetime.datetime.fromisoformat,
    "timestamptz": _timestamptz,
    "uuid": uuid.UUID,
    "json": json.loads,
    "timedelta": _timedelta,
}


def _column(column: dict, data) -> list:
    """One column's plain values as Python's. What Python has no value for (infinity,
    BC, years past 9999) stays the text that it is."""
    kind = column["kind"]
    convert: Callable | None = _CONVERT.get(kind)  # type: ignore[assignment]
    if convert is None:
        return data
    if column["array"]:
        return [_array(convert, v, kind == "timedelta") for v in data]
    try:
        return [None if v is None else convert(v) for v in data]
    except (ValueError, OverflowError, ArithmeticError, RecursionError):
        return [_one(convert, v) for v in data]


def _one(convert, v):
    try:
        return None if v is None else convert(v)
    except (ValueError, OverflowError, ArithmeticError, RecursionError):
        return v


def _array(convert, v, interval: bool):
    # An interval is itself a list, of three integers.
    if isinstance(v, (list, tuple)) and not (interval and len(v) == 3 and all(type(x) is int for x in v)):
        return [_array(convert, x, interval) for x in v]
    return _one(convert, v)


def to_rows(columns: list, data: list, truncated: bool) -> Rows:
    """Columns of plain values, as the hatch gives them, as a list of dicts. Of columns
    with one name the second is name_2."""
    names = values.unique(column["name"] for column in columns)
    collecting = gc.isenabled()
    gc.disable()  # it would look again and again at rows that can't be garbage yet
    try:
        ready = [_column(column, each) for column, each in zip(columns, data)]
        rows = Rows(dict(zip(names, row)) for row in zip(*ready))
    finally:
        if collecting:
            gc.enable()
    rows.truncated = truncated
    return rows


# -- the helpers


class Helpers:
    """The helpers of one session; names() is what a namespace begins with."""

    def __init__(self, channel, state, display):
        self._channel = channel
        self._state = state  # () -> sandbox.Variables of the session
        self._display = display
        self._logs: collections.deque = collections.deque(maxlen=1000)
        self._total = 0
        self._levels: dict = {}
        self._tracked: dict = {}

    def names(self) -> dict:
        public = (
            "db_query",
            "db_tables",
            "db_schema",
            "debug",
            "inspect_var",
            "get_debug_info",
            "get_execution_history",
            "get_sandbox_state",
        )
        out = {name: getattr(self, name) for name in public}
        out.update(display=self._display, datetime=datetime.datetime, timedelta=datetime.timedelta, timezone=datetime.timezone)
        out.update(ReadOnlyError=ReadOnlyError, DatabaseError=DatabaseError, exit=sys.exit, quit=sys.exit)
        return out

    def db_query(self, sql, params=None):
        """Rows of one read-only statement as a list of dicts, with :name parameters;
        works with and without await. Raises ReadOnlyError or DatabaseError."""
        if not isinstance(sql, str):
            raise TypeError(f"db_query takes the statement as a str, not {type(sql).__name__}")
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise TypeError(
                f"db_query takes parameters as a dict, {{'name': value}} for :name in the statement, not {type(params).__name__}"
            )
        given = {str(name): parameter(value) for name, value in params.items()}
        try:
            size = len(_dumps(sql)) + len(_dumps(given))
            sql.encode(), _dumps(given, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("db_query: PostgreSQL can't take text with a lone surrogate; encode it with errors='replace' first") from None
        if size > MAX_ASK:
            raise ValueError(f"db_query: the statement and its parameters are {size} bytes, at most {MAX_ASK}; ask in smaller parts")
        columns, data, truncated = self._ask(self._channel.query, str(sql), given)
        rows = to_rows(columns, data, truncated)
        if truncated:
            self._warn(
                f"db_query: only the first {len(rows)} rows are here, there are more; max_rows bounds it. Aggregate in SQL, or use LIMIT\n"
            )
        return rows

    def db_tables(self):
        """Names of the tables and views that may be read; works with and without await."""
        return Rows(self._ask(self._channel.tables) or ())

    def db_schema(self, table):
        """A table's columns: column_name, data_type, is_nullable, column_default, ..."""
        return Rows(self._ask(self._channel.schema, str(table)) or ())

    @staticmethod
    def _ask(question, *args):
        try:
            return question(*args)
        except hatch.Refused as refused:
            detail = refused.detail if isinstance(refused.detail, dict) else {}
        raise (ReadOnlyError if detail.get("reason") == "read-only" else DatabaseError)(detail)

    @staticmethod
    def _warn(text: str) -> None:
        try:
            _print(text, end="", file=sys.stderr)
        except Exception:
            pass  # user code has replaced or closed it

    def debug(self, message, level="INFO", data=None):
        """Keeps a note with the execution; level is DEBUG, INFO, WARNING or ERROR."""
        level = str(level).upper()
        level = "WARNING" if level == "WARN" else level
        if level not in LEVELS:
            raise ValueError(f"level {level!r} is not one of {', '.join(LEVELS)}")
        text = message if type(message) is str else values.safe_repr(message, 10_000)
        note = {"level": level, "message": values.readable(text, 10_000), **_place(sys._getframe(1))}
        if data is not None:
            note["data"] = values.plain(data, 50_000, 5_000)[0]
        self._total += 1
        self._levels[level] = self._levels.get(level, 0) + 1
        self._logs.append(note)
        self._channel.note(note)

    def inspect_var(self, name, value):
        """Records the value's type, size and a bounded repr under name; returns the value."""
        size = None
        try:
            size = value.nbytes if values.shape(value) is not None and values.name_of(type(value)) == "ndarray" else sys.getsizeof(value)
        except Exception:
            pass  # its __sizeof__ failed
        note = {
            "name": values.readable(str(name), 200),
            "type": values.type_name(value),
            "size": int(size or 0),
            "repr": values.safe_repr(value),
        }
        note.update(_place(sys._getframe(1)))
        if len(self._tracked) < 1000 or note["name"] in self._tracked:
            self._tracked.setdefault(note["name"], collections.deque(maxlen=50)).append(note)
        self._channel.note(note)
        return value

    def get_debug_info(self):
        """{total_logs, log_levels, tracked_variables, variable_names, recent_logs}"""
        return State(
            total_logs=self._total,
            log_levels=dict(self._levels),
            tracked_variables=len(self._tracked),
            variable_names=list(self._tracked),
            recent_logs=[dict(note) for note in list(self._logs)[-10:]],
        )

    def get_execution_history(self):
        """This sandbox's earlier executions, newest first."""
        return Rows(self._ask(self._channel.history) or ())

    def get_sandbox_state(self):
        """This sandbox's variables and what it uses."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        usage = {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_memory_mb": used.ru_maxrss / 1024}
        return State(self._state(), usage=usage)


def _place(frame) -> dict:
    return {
        "timestamp": datetime.datetime.now(_UTC).isoformat(),
        "line": frame.f_lineno or 0,
        "function": values.readable(frame.f_code.co_name, 200),
    }


def parameter(v):
    """A parameter as JSON; what PostgreSQL reads from text goes as text."""
    kind = type(v)
    if v is None or kind in (bool, str):
        return v
    if isinstance(v, int):
        return int(v)
    if isinstance(v, (list, tuple, set, frozenset)):
        return [parameter(x) for x in v]
    if isinstance(v, dict):
        return {str(k): parameter(x) for k, x in v.items()}
    if isinstance(v, str):
        return str.__str__(v)
    if isinstance(v, float):
        v = float(v)
        return v if v - v == 0 else "NaN" if v != v else "Infinity" if v > 0 else "-Infinity"
    if kind.__name__ in ("NaTType", "NAType"):
        return None
    if kind.__name__ == "datetime64" and kind.__module__ == "numpy":
        return None if str(v) == "NaT" else str(v)
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, datetime.timedelta):
        return f"{v.days} days {v.seconds} seconds {v.microseconds} microseconds"
    if isinstance(v, (decimal.Decimal, uuid.UUID)):
        return str(v)
    if isinstance(v, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(v).hex()
    plainly = getattr(v, "tolist", None)
    if callable(plainly) and kind.__module__.partition(".")[0] in ("numpy", "pandas"):
        return parameter(plainly())
    raise TypeError(f"a parameter of type {kind.__name__} has no PostgreSQL value; pass a str, number, date, list or dict")
