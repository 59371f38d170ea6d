"""The database, as code inside has it: statements out, values in.

The hatch gives a result column by column, as plain values; what is made of them is
what psycopg 3 makes. Where it would fail (infinity, BC, a year past 9999), the
value stays the text that PostgreSQL prints.
"""

import builtins
import gc
import json
import sys

import convert
import hatch
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_ASK = 900_000  # bytes of a question; the host ends a child that sends more than 1 MiB
_EXPLAIN = "EXPLAIN (FORMAT JSON) "

_dumps, _print = json.dumps, print


class DatabaseError(Exception):
    """A statement failed or was refused. The attributes say why and where: reason (a
    stable code), sqlstate, position and line (from 1, 0 where unknown), nearest, hint."""

    __module__ = "builtins"  # what a traceback calls it

    def __init__(self, refusal: "dict | str" = ""):
        detail: dict = refusal if isinstance(refusal, dict) else {"message": refusal}
        self.reason = detail.get("reason", "")
        self.sqlstate = detail.get("sqlstate", "")
        self.position = detail.get("position", 0)
        self.line = detail.get("line", 0)
        self.nearest = detail.get("nearest", "")
        self.hint = detail.get("hint", "")
        message = detail.get("message", "refused")
        if self.line > 1:
            message += f" (line {self.line} of the statement)"
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


def to_rows(columns: list, data: list, truncated: bool) -> Rows:
    """Columns of plain values, as the hatch gives them, as a list of dicts. Of columns
    with one name the second is name_2."""
    names = values.unique(column["name"] for column in columns)
    collecting = gc.isenabled()
    gc.disable()  # it would look again and again at rows that can't be garbage yet
    try:
        ready = [convert.column(column, each) for column, each in zip(columns, data)]
        rows = Rows(dict(zip(names, row)) for row in zip(*ready))
    finally:
        if collecting:
            gc.enable()
    rows.truncated = truncated
    return rows


_frames: list = []  # the class, once pandas is there


def _plain_frame(frame):
    plain = __import__("pandas").DataFrame(frame)
    plain.attrs = frame.attrs
    return plain
    yield


def to_frame(columns: list, data: list, truncated: bool):
    """The same as a DataFrame, column by column; it may be awaited as Rows may, and what
    comes of that is a plain one."""
    pandas = __import__("pandas")
    if not _frames:
        body = {
            "__module__": "pandas",
            "__hash__": object.__hash__,
            "__await__": _plain_frame,
            "__reduce_ex__": lambda self, _protocol: (pandas.DataFrame, (), self.__getstate__()),
        }
        _frames.append(type("DataFrame", (pandas.DataFrame,), body))
    names = values.unique(column["name"] for column in columns)
    series = {name: convert.series(pandas, column, each) for name, column, each in zip(names, columns, data)}
    frame = _frames[0](series, columns=names, copy=False)
    frame.attrs["truncated"] = truncated
    return frame


class Database:
    """The helpers that ask the database; channel is a hatch.Channel."""

    def __init__(self, channel):
        self._channel = channel

    def db_query(self, sql, params=None):
        """Rows of one read-only statement as a list of dicts, with :name parameters;
        works with and without await. Raises ReadOnlyError or DatabaseError."""
        columns, data, truncated = self._query("db_query", sql, params)
        rows = to_rows(columns, data, truncated)
        if truncated:
            self._warn("db_query", len(rows))
        return rows

    def db_frame(self, sql, params=None):
        """The same as a pandas DataFrame, made column by column; attrs["truncated"] says
        whether there was more."""
        columns, data, truncated = self._query("db_frame", sql, params, packed=True)
        frame = to_frame(columns, data, truncated)
        if truncated:
            self._warn("db_frame", len(frame))
        return frame

    def db_explain(self, sql, params=None):
        """How the server would run a statement, which it does not: total_cost, rows (an
        estimate) and plan, the tree of EXPLAIN (FORMAT JSON)."""
        if isinstance(sql, str):
            sql = _EXPLAIN + sql
        try:
            _, data, _ = self._query("db_explain", sql, params)
        except DatabaseError as error:
            error.position = max(error.position - len(_EXPLAIN), 0)
            raise
        plan = json.loads(data[0][0])[0]["Plan"]
        return State(total_cost=plan["Total Cost"], rows=plan["Plan Rows"], plan=plan)

    def db_tables(self):
        """Names of the tables and views that may be read; works with and without await."""
        return Rows(self._ask(self._channel.tables) or ())

    def db_schema(self, table):
        """A table's columns: column_name, data_type, is_nullable, column_default, comment,
        primary_key, unique, references, and the table's row_estimate."""
        found = self._ask(self._channel.schema, str(table)) or {"columns": []}
        return Rows({**column, "row_estimate": found["row_estimate"]} for column in found["columns"])

    def get_execution_history(self):
        """This sandbox's earlier executions, newest first."""
        return Rows(self._ask(self._channel.history) or ())

    def _query(self, name: str, sql, params, packed: bool = False) -> tuple:
        if not isinstance(sql, str):
            raise TypeError(f"{name} takes the statement as a str, not {type(sql).__name__}")
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise TypeError(f"{name} takes parameters as a dict, {{'name': value}} for :name in the statement, not {type(params).__name__}")
        given, types = {}, {}
        for key, value in params.items():
            given[str(key)], kind = convert.parameter(value)
            if kind:
                types[str(key)] = kind
        try:
            size = len(_dumps(sql)) + len(_dumps(given)) + len(_dumps(types))
            sql.encode(), _dumps(given, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name}: PostgreSQL can't take text with a lone surrogate; encode it with errors='replace' first") from None
        if size > MAX_ASK:
            raise ValueError(f"{name}: the statement and its parameters are {size} bytes, at most {MAX_ASK}; ask in smaller parts")
        return self._ask(self._channel.query, str(sql), given, types, packed)

    @staticmethod
    def _ask(question, *args):
        try:
            return question(*args)
        except hatch.Refused as refused:
            detail = refused.detail if isinstance(refused.detail, dict) else {}
        raise (ReadOnlyError if detail.get("reason") == "read-only" else DatabaseError)(detail)

    @staticmethod
    def _warn(name: str, count: int) -> None:
        text = f"{name}: only the first {count} rows are here, there are more; max_rows bounds it. Aggregate in SQL, or use LIMIT\n"
        try:
            _print(text, end="", file=sys.stderr)
        except Exception:
            pass  # user code has replaced or closed it
