"""Tables as cells: their labels and values, and how an operation is computed again on a twin."""

import typing

import cell_paths
import fact_values
import fact_views
from cell_values import (
    INDEX,
    Cells,
    Ends,
    Event,
    Found,
    cell,
    is_array,
    is_frame,
    is_series,
    is_table,
    numpy,
    pandas,
    same,
    text_of,
)

MAX_CELLS_FOLLOWED = 2_000


ROW = "\x00glasshouse row"  # the name of a column of numbers


OTHER = "\x00glasshouse other"


def label(value, row: int) -> str:
    """Returns the label of a row."""
    if is_array(value):
        return str(row) if value.ndim == 1 else str(tuple(int(n) for n in numpy().unravel_index(row, value.shape)))
    one = value[row] if isinstance(value, pandas().Index) else value.index[row]
    if isinstance(one, tuple):
        return "(" + ", ".join(map(text_of, one)) + ")"
    return text_of(one) if not isinstance(one, str) else one


def column_name(value, column) -> str:
    """Returns the name of a column."""
    if isinstance(column, tuple) and column and column[0] == INDEX:
        return f"index {value.index.names[column[1]] or ''}".strip()
    if is_frame(value):
        name = value.columns[column]
    else:
        name = getattr(value, "name", None)
    return (
        ""
        if name is None
        else name
        if isinstance(name, str)
        else text_of(name)
        if fact_values.is_scalar(name)
        else str(tuple(map(str, name)))
        if isinstance(name, tuple)
        else ""
    )


def at(value, row: int, column):
    """Returns the value of one cell."""
    if isinstance(column, tuple) and column and column[0] == INDEX:
        return value.index.get_level_values(column[1])[row]
    if is_frame(value):
        return value.iat[row, column]
    if is_series(value):
        return value.iat[row]
    return value.flat[row] if is_array(value) else value[row]


def rows_of(value) -> int:
    """Returns the number of rows."""
    return value.size if is_array(value) else len(value)


def show(found: Found, value, cells: Cells) -> Found:
    """Adds the rows and cells of a table to a step."""
    found.of = rows_of(value)
    for row in cells.rows:
        if row not in found.rows:
            found.rows.append(row)
            found.labels.append(label(value, row))
    name = column_name(value, cells.column)
    for row in cells.rows[:200]:
        found.cells.append(cell(at(value, row, cells.column), label(value, row), name))
    return found


def need_plain(value) -> None:
    """Raises Ends if a comparison of values or labels of a table would call code of the program."""
    if is_array(value):
        if value.dtype.kind == "O":
            raise Ends("an array of objects is not followed")
        return
    if not cell_paths.are_labels_plain(value):
        raise Ends("labels of the program's own classes are not followed")
    columns = [value.iloc[:, n] for n in range(value.shape[1])] if is_frame(value) else [value]
    if not all(map(fact_views.is_plain, columns)):
        raise Ends("columns with objects are not followed")


def back(event: Event, source: Event, table, result, cells: Cells, what: str, numbers, *, is_moved=True) -> Found:
    """Returns the step of an operation that took cells. numbers has the numbers of ids_of(table) of the cells."""
    np = numpy()
    found = Found(event, what)
    numbers = np.asarray(numbers)
    by_column: dict = {}
    width = table.shape[1] if is_frame(table) else 1
    for row, number in zip(cells.rows, numbers.tolist()):
        if number is None or number != number or number < 0:
            found.what = f"{what}: no row had this place, and the cell is new"
            continue
        place, column = divmod(int(number), width) if is_frame(table) else (int(number), None)
        if is_moved and not same(at(table, place, column), at(result, row, cells.column)):
            raise Ends("what it gave is not what was computed again")
        by_column.setdefault(column, []).append(place)
    if not what and any(tuple(places) != cells.rows for places in by_column.values()):
        found.what = "took the row from another place"
    for column, places in by_column.items():
        before = Cells(places, column)
        show(found, table, before)
        found.parts.append((source, before))
    return found


def assigned(change: Event, value: "Event | None", before, cells: Cells, what: str) -> Found:
    """Returns the step of an assignment of a column."""
    found = Found(change, what)
    found.of = len(before)
    found.rows, found.labels = list(cells.rows), [label(before, row) for row in cells.rows]
    found.side = "set"
    if value is None:
        return found
    given = value.value
    if is_series(given):
        rows = matched(before.index, given.index, cells.rows)
        kept = [row for row in rows if row is not None]
        if len(kept) < len(rows):
            found.what = f"{what}: no row of the value had the label, and the cell is missing (NaN)"
        if kept:
            found.parts.append((value, Cells(kept)))
            cells_of_value(found, given, kept)
    elif is_array(given) and given.ndim == 1 and len(given) == len(before):
        found.parts.append((value, Cells(cells.rows)))
        cells_of_value(found, given, cells.rows)
    elif type(given) in (list, tuple) and len(given) == len(before):
        for row in cells.rows:
            found.parts.append((value, (row,)))
            found.cells.append(cell(given[row], label(before, row)))
    elif fact_values.is_scalar(given):
        found.parts.append((value, ()))
        found.cells.append(cell(given))
    else:
        raise Ends(f"line {change.expression.line}: the assigned value is not followed")
    return found


def cells_of_value(found: Found, given, rows) -> None:
    for row in rows[:200]:
        found.cells.append(cell(at(given, row, None), label(given, row)))


def matched(target, index, rows) -> list:
    """Returns the positions of rows of a table in an index, by label."""
    if target.equals(index):
        return list(rows)
    if not index.is_unique or not fact_views.is_plain(index) or not fact_views.is_plain(target):
        raise Ends("the rows were matched by labels that are not unique")
    places = index.get_indexer(target[list(rows)])
    return [int(place) if place >= 0 else None for place in places]


def as_cells(value, selector) -> Cells:
    return selector if isinstance(selector, Cells) else Cells([0])


def wrapped(value, selector) -> typing.Any:
    """Returns a table for a value, so that a scalar, too, has a cell."""
    return value if isinstance(selector, Cells) else pandas().Series([value], dtype=object)


def numbers_at(ids, cells: Cells):
    np = numpy()
    rows = list(cells.rows)
    if is_frame(ids):
        return ids.iloc[rows, cells.column].to_numpy()
    return np.asarray(ids).ravel()[rows]


def is_groups(value) -> bool:
    return fact_values.package_of(value) == "pandas" and "GroupBy" in type(value).__name__


def table_behind(event: "Event | None") -> "Event | None":
    """Returns the event of the Series that an accessor such as .str or .dt belongs to."""
    while event is not None and not is_table(event.value):
        event = event.part("receiver")
    return event


def arguments_of(event: Event, *, without: tuple = ()) -> "tuple[list, dict]":
    """Returns the values of the arguments of a call. It raises Ends if one is not known, or is code of the program."""
    positional, named = [], {}
    for n, (role, _) in enumerate(event.expression.parts):
        if role == "receiver" or role in without:
            continue
        value = event.operand(n)
        if is_table(value):
            need_plain(value)
        elif type(value) in (list, tuple):
            if not all(fact_values.is_scalar(each) or is_table(each) or type(each) in (list, tuple) for each in value):
                raise Ends("an argument is an object of the program")
        if role == "argument":
            positional.append(value)
        else:
            named[role] = value
    return positional, named


def call_method(table, name: str, arguments: "tuple[list, dict]"):
    positional, named = arguments
    return getattr(table, name)(*positional, **{k: v for k, v in named.items() if k != "inplace"})


def twin_of(table):
    """Returns a copy of a table with a column of the numbers of its rows."""
    frame = table.to_frame(table.name if table.name is not None else "\x00value") if is_series(table) else table
    if len(frame) * (frame.shape[1] + 1) > cell_paths.MAX_CELLS:
        raise Ends("the table is too large")
    if not frame.columns.is_unique:
        raise Ends("columns with the same name are not followed")
    made = pandas().DataFrame(frame)
    made[ROW if frame.columns.nlevels == 1 else (ROW, *[""] * (frame.columns.nlevels - 1))] = numpy().arange(len(frame))
    return made
