"""Hints for a TypeError about values of the database: numeric, dates, and values that JSON does not have."""

import builtins
import re

import lookup
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_ROWS = 100  # of a list in which the column of a value is searched
MAX_VARIABLES = 200  # of a frame that may have that list

_DATE_WITH_TIMESTAMPS = re.compile(
    r"dtype=datetime64\[\w+\] and date$|'DatetimeArray' and 'datetime\.date'|'datetime\.date' and 'DatetimeArray'"
)
_TIME_ZONES = re.compile(r"dtype=datetime64\[\w+(, [^]]+)?\] and (datetime|Timestamp)$|tz-naive and tz-aware")


def hint(text: str, frames: list) -> str:
    """Returns the hint for the message of a TypeError, or "". frames are those of its traceback, innermost first."""
    if "not JSON serializable" in text:
        return _json_hint(frames)
    if "'decimal.Decimal'" in text and "'float'" in text:
        return "a numeric value of the database is a Decimal: write float(x), or cast it in SQL: x::float8"
    if _DATE_WITH_TIMESTAMPS.search(text):
        return "a column of dates has the dtype datetime64: use pd.Timestamp(x) in place of the date"
    if _TIME_ZONES.search(text):
        return (
            "one of the two has a time zone: a timestamptz column is in UTC, compare it with "
            "pd.Timestamp(x, tz='UTC'); a timestamp column has no time zone"
        )
    return ""


def _json_hint(frames: list) -> str:
    value = column = None
    for frame in frames:
        if frame.f_globals.get("__name__") == "json.encoder" and frame.f_code.co_name == "default":
            value = frame.f_locals.get("o")
        elif value is not None and column is None:
            column = _column_of(value, frame)
    kind = type(value)
    name = values.name_of(kind)
    if name in ("DataFrame", "Series"):
        return "write it as JSON with its method to_json(orient='records', date_format='iso')"
    if kind in (set, frozenset):
        return "json.dumps(x, default=list) writes sets as lists"
    if lookup.module_of(kind) == "numpy":
        return "json.dumps(x, default=lambda v: v.tolist()) writes numpy's values as Python's"
    subject = f"the column {column!r} has values of type {name}: " if column else ""
    if name == "Decimal":
        return f"{subject}json.dumps(x, default=str) writes them as text with all digits, default=float as numbers"
    return f"{subject}json.dumps(x, default=str) writes them as text"


def _column_of(value: object, frame) -> "str | None":
    """Returns the key that has the value in a list of dicts, or in a dict, among the variables of a frame."""
    for rows in list(frame.f_locals.values())[:MAX_VARIABLES]:
        if issubclass(type(rows), dict):
            rows = [rows]
        elif not issubclass(type(rows), list):
            continue
        for row in list.__getitem__(rows, slice(MAX_ROWS)):
            if type(row) is dict:
                for key, cell in row.items():
                    if cell is value and type(key) is str:
                        return key
    return None
