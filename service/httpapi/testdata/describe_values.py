# describe returns the type and the text of a value, so that values can be compared. It runs in a
# sandbox on the values of db_query, and in a process of the test on psycopg's values.
import datetime as dt
from decimal import Decimal
from uuid import UUID

def describe(v):
    kind = type(v)
    if v is None or kind in (bool, int, str):
        return [kind.__name__, v if kind is not int else str(v)]
    if kind.__name__ == "Range":
        return ["Range", describe(v.lower), describe(v.upper), v.bounds or ""]
    if kind.__name__ == "Multirange" or kind is list:
        return ["list", *map(describe, v)]
    if kind is tuple:
        return ["tuple", *map(describe, v)]
    if kind is dict:
        return ["dict", *([k, describe(x)] for k, x in v.items())]
    if kind is dt.datetime and v.tzinfo:
        return ["aware", v.astimezone(dt.timezone.utc).isoformat()]
    if kind in (dt.datetime, dt.date, dt.time):
        return [kind.__name__, v.isoformat()]
    if kind is bytes:
        return ["bytes", v.hex()]
    return [kind.__name__, repr(v) if kind in (float, dt.timedelta) else str(v)]

def all_of(run, cases):
    out = []
    for case in cases:
        try:
            out.append([describe(v) for v in run(case)])
        except Exception as e:
            out.append(type(e).__name__ + ": " + str(e))
    return out
