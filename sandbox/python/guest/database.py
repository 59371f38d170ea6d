"""The database helpers. They send statements to the supervisor and convert the returned values.

Values have the same Python types as with psycopg 3. Values that psycopg 3 cannot convert (infinity, BC, a year past
9999) stay the text that PostgreSQL prints.
"""

import builtins
import json
import sys

import pgtypes
import protocol
import values
from explanation import Explanation
from helpers import helper
from rows import FrameResult, ListResult, Rows

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_NAME = 10_000  # characters of the name of a table
MAX_REQUEST = 900_000  # bytes of a request; the supervisor ends a guest that sends more than 1 MiB
_EXPLAIN = "EXPLAIN (FORMAT JSON) "

_dumps, _print = json.dumps, print


@helper("database", signature="except DatabaseError as error")
class DatabaseError(Exception):
    """Raised if a statement fails or is refused. Its attributes say why and where: reason (a stable code), sqlstate,
    position and line (from 1; 0 if unknown), nearest and hint."""

    __module__ = "builtins"  # the module that a traceback shows

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


@helper("database", signature="except ReadOnlyError as error")
class ReadOnlyError(DatabaseError):
    """The DatabaseError for a statement that would write: the helpers only read."""

    __module__ = "builtins"


def _database_name(helper_name: str, database) -> str:
    """Returns the argument database of a helper as a name, which is "" for the default database."""
    if database is None:
        return ""
    if not isinstance(database, str):
        raise TypeError(f"{helper_name} takes database as a str, its name, not {type(database).__name__}")
    if len(database) > MAX_NAME:
        raise ValueError(f"{helper_name}: the name of the database has {len(database)} characters, over {MAX_NAME}")
    try:
        str.encode(database)
    except UnicodeEncodeError:
        raise ValueError(f"{helper_name}: the name of the database has lone surrogates") from None
    return str.__str__(database)


class State(dict):
    """A dict that may also be awaited."""

    __module__ = "builtins"

    def __await__(self):
        return dict(self)
        yield


values.DICTS.add(State)


class Database:
    """The helpers that send requests to the supervisor over channel, a protocol.Channel."""

    def __init__(self, channel):
        self._channel = channel

    @helper("database", awaitable=True)
    def db_query(self, sql, params=None, database=None):
        """Returns the rows of one read-only statement as a list of dicts. params has the values of :name parameters;
        database is the name of a database, by default the first. Raises ReadOnlyError or DatabaseError. truncated is
        True on the list if there were more rows than allowed."""
        result = ListResult()
        rows = result.rows
        rows.truncated = self._query("db_query", sql, params, database, result)
        if rows.truncated:
            self._warn("db_query", len(rows))
        return rows

    @helper("database", awaitable=True)
    def db_frame(self, sql, params=None, database=None, exact=False):
        """Returns the same rows as a pandas DataFrame with the right dtypes, faster for many rows. Numeric columns are
        float64, as with pandas.read_sql, and the notes of the run name those that lost digits; with exact=True they are
        objects of Decimal. attrs["truncated"] is True if there were more rows than allowed."""
        result = FrameResult(bool(exact))
        frame = result.frame(self._query("db_frame", sql, params, database, result))
        if frame.attrs["truncated"]:
            self._warn("db_frame", len(frame))
        return frame

    @helper("database", awaitable=True)
    def db_explain(self, sql, params=None, database=None):
        """Returns how the server would run a statement, without running it: a dict of total_cost, rows (an estimate)
        and plan, the tree of EXPLAIN (FORMAT JSON). Its text, blocks and findings, print() and the display in a
        notebook run the statement once: they have the rows after each table, join and condition, and what may be
        wrong."""
        explained = _EXPLAIN + sql if isinstance(sql, str) else sql
        result = ListResult()
        try:
            self._query("db_explain", explained, params, database, result)
        except DatabaseError as error:
            error.position = max(error.position - len(_EXPLAIN), 0)
            raise
        ((plan,),) = result.rows[0].values()
        given = dict(params or {})
        top = plan["Plan"]
        return Explanation(
            {"total_cost": top["Total Cost"], "rows": top["Plan Rows"], "plan": top},
            lambda: self._ask("db_explain", self._channel.stages, sql, given, database),
            DatabaseError,
        )

    @helper("database", awaitable=True)
    def db_tables(self, database=None):
        """Returns the names of the tables and views that may be read, as a statement writes them: "Order", with quotes,
        and sales.orders, with its schema, if they need them."""
        return Rows(self._request(self._channel.tables, _database_name("db_tables", database)) or ())

    @helper("database", awaitable=True)
    def db_schema(self, table, database=None):
        """Returns the columns of a table: column_name, data_type, is_nullable, column_default, comment, primary_key,
        unique, references, and the row_estimate of the table."""
        name = str(table)
        if len(name) > MAX_NAME:
            raise ValueError(f"db_schema: the name of the table has {len(name)} characters, over {MAX_NAME}")
        database = _database_name("db_schema", database)
        found = self._request(self._channel.schema, database, name) or {"columns": []}
        return Rows({**column, "row_estimate": found["row_estimate"]} for column in found["columns"])

    @helper("debugging", awaitable=True)
    def get_execution_history(self):
        """Returns this sandbox's earlier executions, newest first."""
        return Rows(self._request(self._channel.history) or ())

    def _query(self, name: str, sql, params, database, result: "ListResult | FrameResult") -> bool:
        return self._ask(name, self._channel.query, sql, params, database, result)

    def _ask(self, name: str, request, sql, params, database, *more):
        if not isinstance(sql, str):
            raise TypeError(f"{name} takes the statement as a str, not {type(sql).__name__}")
        sql = str.__str__(sql)
        database = _database_name(name, database)
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise TypeError(
                f"{name} takes parameters as a dict, {{'name': value}} for :name, not {type(params).__name__}"
            )
        given, types = {}, {}
        for key, value in params.items():
            given[str(key)], kind = pgtypes.parameter(value)
            if kind:
                types[str(key)] = kind
        try:
            size = len(_dumps(sql)) + len(_dumps(given)) + len(_dumps(types))
            sql.encode(), _dumps(given, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{name}: PostgreSQL does not store lone surrogates: encode the text with errors='replace' first"
            ) from None
        if size > MAX_REQUEST:
            raise ValueError(
                f"{name}: the statement and its parameters are {size} bytes, over {MAX_REQUEST}: ask in smaller parts"
            )
        return self._request(request, database, sql, given, types, *more)

    @staticmethod
    def _request(request, *args):
        try:
            return request(*args)
        except protocol.Refused as refused:
            detail = refused.detail if isinstance(refused.detail, dict) else {}
        raise (ReadOnlyError if detail.get("reason") == "read-only" else DatabaseError)(detail)

    @staticmethod
    def _warn(name: str, count: int) -> None:
        text = f"{name}: only the first {count} rows are returned (max_rows): aggregate in SQL, or use LIMIT\n"
        try:
            _print(text, end="", file=sys.stderr)
        except Exception:
            pass  # user code has replaced or closed it
