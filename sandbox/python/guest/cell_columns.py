"""Where the cells of a column came from that was computed from a column: each cell, up to a cell, or all of them."""

import fact_tables
import fact_values
from cell_values import Cells, Ends, Event, Found, cell, close, is_dict, is_frame, is_series, numpy, same, short
from cell_views import MAX_CELLS_FOLLOWED, arguments_of, at, call_method, matched, need_plain, show

REDUCE = {
    "sum", "mean", "min", "max", "count", "median", "std", "var", "prod", "nunique", "any", "all", "quantile", "first",
    "last", "size", "sem", "skew", "mode", "idxmax", "idxmin", "item",
}  # fmt: skip


# Methods that compute each cell from the cells before it.
RUNNING = {"cumsum", "cumprod", "cummax", "cummin", "diff", "pct_change", "ffill", "bfill", "rank", "interpolate"}


def each(event: Event, name: str, value, selector, source: "Event | None") -> "Found | None":
    """Returns the cell from which an operation computed the cell at its place."""
    if source is None or not isinstance(selector, Cells):
        return None
    table = source.value
    if len(table) != len(value) or not value.index.equals(table.index):
        raise Ends(f"{name}: the rows are others")
    column = selector.column
    if is_frame(table):
        if not is_frame(value) or not table.columns.is_unique or not isinstance(column, int):
            raise Ends(f"{name}: not further")
        if value.columns[column] not in table.columns:
            raise Ends(f"{name}: the column is new")
        column = table.columns.get_loc(value.columns[column])
    else:
        column = None
    before = Cells(selector.rows, column)
    are_same = all(
        same(at(table, row, column), at(value, row, selector.column)) for row in selector.rows[:MAX_CELLS_FOLLOWED]
    )
    found = Found(event, "" if are_same else f"{name} of the same row")
    show(found, table, before)
    found.parts.append((source, before))
    return found


def each_of_several(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a method such as fillna or add, whose argument may be a table, too."""
    found = each(event, name, value, selector, receiver)
    if found is None:
        return None
    _each_again(event, name, value, selector, receiver.value)
    for n, (role, _) in enumerate(event.expression.parts):
        part = event.parts[n]
        if role == "receiver" or part is None or role in ("inplace", "errors", "format"):
            continue
        if is_series(part.value) and name not in ("map", "isin"):
            rows = [row for row in matched(value.index, part.value.index, selector.rows) if row is not None]
            if rows:
                show(found, part.value, Cells(rows))
                found.parts.append((part, Cells(rows)))
                found.what = found.what or f"{name} of the same row"
        elif name == "map" and is_dict(part.value):
            for row in selector.rows:
                key = at(receiver.value, row, None)
                if fact_values.is_plain_key(key) and fact_values.has_plain_keys(part.value) and key in part.value:
                    found.parts.append((part, (key,)))
        elif name == "map" and is_series(part.value):
            keys = [at(receiver.value, row, None) for row in selector.rows]
            if part.value.index.is_unique:
                places = part.value.index.get_indexer(keys)
                found.parts.append((part, Cells([each for each in places if each >= 0])))
        elif fact_values.is_scalar(part.value):
            found.parts.append((part, ()))
    return found


def _each_again(event: Event, name: str, value, cells: Cells, table) -> None:
    """Computes some cells again from their rows alone. It raises Ends if the results are others."""
    positional, named = arguments_of(event)
    for row in cells.rows[:5]:

        def of_row(given, row=row):
            if not (is_series(given) or is_frame(given)) or given is not table and name in ("map", "isin"):
                return given
            place = matched(value.index, given.index, [row])[0]
            if place is None:
                raise Ends(f"{name}: no row of an argument has the label")
            return given.iloc[[place]]

        one = call_method(
            of_row(table), name, (list(map(of_row, positional)), {k: of_row(v) for k, v in named.items()})
        )
        if not close(at(one, 0, cells.column), at(value, row, cells.column)):
            raise Ends(f"{name}: the row alone does not give the cell")


def chosen(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a method that keeps the cell, or takes another value: where, mask, fillna and combine_first."""
    table = receiver.value
    if not isinstance(selector, Cells):
        return None
    found, kept, others = Found(event, ""), list[int](), list[int]()
    rows = matched(value.index, table.index, selector.rows)
    column = selector.column
    if is_frame(table):
        if not is_frame(value) or not value.columns.equals(table.columns) or not table.columns.is_unique:
            raise Ends(f"{name}: not further")
    for row, before in zip(selector.rows, rows):
        is_kept = before is not None and same(at(table, before, column), at(value, row, column))
        (kept if is_kept else others).append(row)
    if kept:
        cells = Cells(matched(value.index, table.index, kept), column)
        show(found, table, cells)
        found.parts.append((receiver, cells))
    if not others:
        return found
    found.what = f"{name} took the other value"
    if kept:
        found.what += f" in {len(others)} of {len(kept) + len(others)} rows"
    if name in ("fillna", "combine_first"):  # in place of those that are missing
        show(found, table, Cells([row for row in matched(value.index, table.index, others) if row is not None], column))
    roles = [role for role, _ in event.expression.parts]
    wanted = 0 if name in ("fillna", "combine_first") else 1
    places = [n for n, role in enumerate(roles) if role == "argument"][wanted:]
    places += [n for n, role in enumerate(roles) if role in ("other", "value")]
    if not places:
        found.what = f"{name}: the cell is missing (NaN)"
        return found
    part, given = event.parts[places[0]], event.operand(places[0])
    if fact_values.is_scalar(given):
        if not all(close(given, at(value, row, column)) for row in others):
            raise Ends(f"{name}: what it gave is not what was computed again")
        found.cells.append(cell(given))
        if part is not None:
            found.parts.append((part, ()))
        return found
    if is_dict(given) and is_frame(table) and part is not None and value.columns[column] in given:
        found.parts.append((part, (value.columns[column],)))
        return found
    if is_series(given) and is_series(table) or is_frame(given) and is_frame(table):
        inner = None
        if is_frame(given):
            if not given.columns.is_unique or value.columns[column] not in given.columns:
                raise Ends(f"{name}: not further")
            inner = given.columns.get_loc(value.columns[column])
        places = matched(value.index, given.index, others)
        if None in places or part is None:
            raise Ends(f"{name}: not further")
        for place, row in zip(places, others):
            if not close(at(given, place, inner), at(value, row, column)):
                raise Ends(f"{name}: what it gave is not what was computed again")
        cells = Cells(places, inner)
        show(found, given, cells)
        found.parts.append((part, cells))
        return found
    raise Ends(f"{name}: the other value is not followed")


def running(event: Event, name: str, value, cells: Cells, receiver: Event) -> Found:
    """Follows a method that computes a cell from the cells up to it, and checks it with these cells alone."""
    table = receiver.value
    need_plain(table)
    arguments = arguments_of(event)
    if len(cells.rows) != 1:
        raise Ends(f"{name}: ask for one cell")
    row, column = cells.rows[0], cells.column
    if is_frame(table):
        raise Ends(f"{name} of a table: not further")
    if name in ("rank", "bfill", "interpolate"):
        used = list(range(len(table)))
    elif name in ("diff", "pct_change"):
        periods = next(iter(arguments[0]), arguments[1].get("periods", 1))
        used = [each for each in (row - periods, row) if 0 <= each < len(table)]
    elif name == "ffill":
        used = [row]
        while used[0] > 0 and fact_values.is_missing(at(table, used[0], None)):
            used = [used[0] - 1]
    else:
        used = list(range(row + 1))
    if name in ("rank", "bfill", "interpolate"):
        again = call_method(table, name, arguments).iat[row]
    elif name == "ffill":
        again = at(table, used[0], None)
    else:
        again = call_method(table.iloc[used], name, arguments).iat[-1]
    if not close(again, at(value, row, column)):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{name} of {fact_values.count(len(used), 'row')}")
    before = Cells(used)
    show(found, table, before)
    found.parts.append((receiver, before))
    return found


def windowed(event: Event, name: str, value, selector, receiver: Event, behind: Event) -> Found:
    """Follows rolling(n).mean() and expanding().sum() of a Series."""
    table = behind.value
    if not isinstance(selector, Cells) or not is_series(table) or not is_series(value) or len(selector.rows) != 1:
        raise Ends(f"{name} of windows: not further")
    maker = fact_tables.called_name(receiver.expression.node)
    if maker not in ("rolling", "expanding") or arguments_of(event) != ([], {}):
        raise Ends(f"{name} of windows: not further")
    row = selector.rows[0]
    positional, named = arguments_of(receiver)
    window = next(iter(positional), named.get("window"))
    if maker == "expanding":
        used = list(range(row + 1))
    elif isinstance(window, int) and not named.get("center"):
        used = list(range(max(0, row - window + 1), row + 1))
    else:
        raise Ends("windows of time are not followed")
    again = getattr(call_method(table.iloc[used], maker, (positional, named)), name)().iat[-1]
    if not close(again, at(value, row, None)):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{maker} {name} of {fact_values.count(len(used), 'row')}")
    show(found, table, Cells(used))
    found.parts.append((behind, Cells(used)))
    return found


def reduced(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows s.sum(), and one value of df.sum()."""
    table = receiver.value
    need_plain(table)
    arguments = arguments_of(event)
    for each in (*arguments[0], *arguments[1].values()):
        if callable(each):
            raise Ends(f"{name}: a function of the program computed it")
    if is_series(table):
        if isinstance(selector, Cells):
            raise Ends(f"{name}: not further")
        column, rows, result = None, list(range(len(table))), value
        again = call_method(table, name, arguments)
    else:
        if not isinstance(selector, Cells) or not is_series(value) or len(selector.rows) != 1:
            raise Ends(f"{name} of a table: not further")
        result = at(value, selector.rows[0], None)
        made = call_method(table, name, arguments)
        if not is_series(made) or not made.index.equals(value.index):
            raise Ends(f"{name}: what it gave is not what was computed again")
        again = made.iat[selector.rows[0]]
        if arguments[1].get("axis") in (1, "columns") or arguments[0][:1] in ([1], ["columns"]):
            return _row_reduced(event, name, selector, receiver, again, result)
        if not table.columns.is_unique:
            raise Ends(f"{name}: columns with the same name are not followed")
        column, rows = table.columns.get_loc(value.index[selector.rows[0]]), list(range(len(table)))
    if not close(again, result):
        raise Ends(f"{name}: what it gave is not what was computed again")
    values = table.iloc[:, column] if column is not None else table
    return of_rows(event, receiver, values, rows, column, name, result, "")


def _row_reduced(event, name, selector, receiver, again, result) -> Found:
    table, row = receiver.value, selector.rows[0]
    if not close(again, result):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{name} of the row gave {short(result)}")
    for column in range(table.shape[1]):
        show(found, table, Cells([row], column))
        found.parts.append((receiver, Cells([row], column)))
    return found


def of_rows(event, source: Event, values, rows: list, column, name: str, result, where: str) -> Found:
    """Returns the step of a value that was computed from rows of a column."""
    np = numpy()
    used = rows
    some = values.iloc[rows]
    if name in ("min", "max", "idxmin", "idxmax", "first", "last"):
        present = [row for row in rows if not fact_values.is_missing(values.iat[row])]
        if name in ("first", "last"):
            used = present[:1] if name == "first" else present[-1:]
        elif present:
            best = (min if "min" in name else max)(values.iat[row] for row in present)
            used = [row for row in present if same(values.iat[row], best)][:1]
    found = Found(event, "")
    total = f"{fact_values.count(len(rows), 'row')}{where}"
    missing = int(some.isna().sum())
    found.what = f"{name} of {total} gave {short(result)}"
    if missing and name not in ("size", "len"):
        found.what += f"; {missing} missing (NaN)"
    if name == "mean" and getattr(some.dtype, "kind", "O") in "iuf" and len(rows):
        found.what += f"; their sum is {short(some.sum())}"
    show(found, source.value, Cells(used, column))
    if used is not rows:
        found.of = len(rows)
    del np
    if len(used) > MAX_CELLS_FOLLOWED:
        found.ends = f"{len(used)} rows are not followed one by one"
    elif name not in ("size",):
        found.parts.append((source, Cells(used, column)))
    else:
        found.parts.append((source, Cells(used, column)))
    return found
