"""Where the results of groups of rows came from."""

import ast
import typing

import fact_tables
import fact_values
from cell_columns import REDUCE, of_rows
from cell_values import (
    Cells,
    Ends,
    Event,
    Found,
    close,
    is_array,
    is_dict,
    is_frame,
    is_series,
    is_table,
    pandas,
    text_of,
)
from cell_views import ROW, arguments_of, at, call_method, label, need_plain, show, twin_of

_GROUP_EACH = {"transform", "cumsum", "cumcount", "cumprod", "cummax", "cummin", "shift", "diff", "rank", "pct_change",
               "ffill", "bfill", "fillna"}  # fmt: skip


def is_grouped(event: Event) -> bool:
    return type(event.value).__name__ in ("DatetimeIndexResampler", "Resampler", "DatetimeIndexResamplerGroupby")


class _Groups:
    """Groups of rows: the table, the call that made them, and the columns that were selected."""

    def __init__(self, event: Event) -> None:
        self.columns: list | None = None
        self.is_one = False
        while True:
            node = event.expression.node
            name = fact_tables.called_name(node)
            receiver = event.part("receiver")
            if name in ("groupby", "resample"):
                break
            if receiver is None and event.source is not None:
                event = event.source
                continue
            if event.kind == "name" and event.thing is None and event.source is None or receiver is None:
                raise Ends("what made the groups is not followed")
            if isinstance(node, ast.Subscript):
                key = event.operand_of(event.expression.parts[1][1], event.parts[1])
                self.is_one = fact_values.is_scalar(key)
                self.columns = [key] if self.is_one else list(key)
            elif isinstance(node, ast.Attribute):
                self.is_one, self.columns = True, [node.attr]
            else:
                raise Ends("what made the groups is not followed")
            event = receiver
        source = event.part("receiver")
        if source is None or not is_table(source.value) or is_array(source.value):
            raise Ends("what was grouped is not followed")
        self.source, self.maker, self.name = source, event, name
        self.table = source.value
        need_plain(self.table)
        positional, named = arguments_of(event)
        for each in (*positional, *named.values()):
            if callable(each) or is_dict(each):
                raise Ends(f"{name}: groups by a function are not followed")
        self.is_flat = named.get("as_index") is False
        self._arguments = positional, named

    def rows_of_groups(self):
        """Returns the rows of each group as a Series of lists, or a DataFrame with the lists in the last column."""
        twin = twin_of(self.table)
        return call_method(twin, self.name, self._arguments)[ROW].agg(list)

    def regroup(self, frame):
        """Groups some rows in the same way."""
        return call_method(frame, self.name, self._arguments)


def grouped(trace, event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    groups = _Groups(receiver)
    if name in ("apply", "pipe", "filter"):
        raise Ends(f"{name}: a function of the program computed it")
    if not isinstance(selector, Cells):
        if name == "ngroups":
            return None
        raise Ends(f"{name} of groups: not further")
    if name in _GROUP_EACH:
        return _group_each(event, name, value, selector, groups)
    if name not in REDUCE and name not in ("agg", "aggregate"):
        raise Ends(f"{name} of groups: not further")
    lists = groups.rows_of_groups()
    flat = isinstance(lists, pandas().DataFrame)
    if len(lists) != len(value) or not flat and not lists.index.equals(value.index):
        raise Ends(f"{name}: the groups are others when computed again")
    table = groups.table
    if (
        isinstance(selector.column, tuple)
        or flat
        and isinstance(selector.column, int)
        and (selector.column < lists.shape[1] - 1)
    ):
        return _group_label(event, groups, lists, selector, flat)
    if len(selector.rows) != 1:
        return _several_groups(trace, event, name, value, selector, receiver)
    row = selector.rows[0]
    rows = lists[ROW].iat[row] if flat else lists.iat[row]
    rows = rows if isinstance(rows, list) else []
    column, function = _aggregate(event, name, value, selector, groups, lists)
    result = at(value, row, selector.column)
    group = label(value, row) if not flat else ", ".join(text_of(each) for each in lists.iloc[row, :-1])
    if not rows:
        return Found(event, f"{name}: the group {group} has no rows")
    place = column
    if place is None:
        place = 0 if is_frame(table) else None
    values = table.iloc[:, place] if is_frame(table) else table
    found = of_rows(event, groups.source, values, rows, place, function or name, result, f" in the group {group}")
    found.of = len(table)
    if name == "size":
        found.cells = []
    if not function:
        found.what += "; not checked: a function of the program computed it"
        found.ends = f"{name}: what the function made of the rows is not followed"
        found.what = found.what.replace(f"{name} of", "a function got", 1)
        return found
    part = values.iloc[rows]
    again = (
        len(rows)
        if function == "size"
        else getattr(part, function)()
        if function not in ("first", "last")
        else (part.dropna().iloc[0 if function == "first" else -1] if part.notna().any() else None)
    )
    if not close(again, result) and not (fact_values.is_missing(result) and fact_values.is_missing(again)):
        if name in ("agg", "aggregate", *REDUCE) and arguments_of(event)[0][:1] + list(arguments_of(event)[1].values()):
            again = _regrouped(event, name, groups, rows, value, selector)
        if again is None or not close(again, result):
            raise Ends(f"{name}: the rows of the group alone give {text_of(again)}, and not the cell")
    return found


def _regrouped(event, name, groups: _Groups, rows: list, value, selector):
    """Computes one group again with the arguments of the call."""
    frame = groups.table.iloc[rows]
    made = groups.regroup(frame)
    if groups.columns is not None:
        made = made[groups.columns[0] if groups.is_one else groups.columns]
    again = call_method(made, name, arguments_of(event))
    if len(again) != 1:
        return None
    return at(again, 0, selector.column)


def _group_label(event, groups: _Groups, lists, cells: Cells, flat: bool) -> Found:
    """Follows a label of a group to the first row of the group."""
    level = cells.column[1] if isinstance(cells.column, tuple) else cells.column
    positional, named = groups._arguments
    keys = positional[0] if positional else named.get("by")
    keys = keys if isinstance(keys, list) else [keys]
    found = Found(event, "")
    key = keys[level] if level < len(keys) else None
    if not fact_values.is_scalar(key) or not is_frame(groups.table) or key not in groups.table.columns:
        raise Ends("the label of a group: not further")
    column = groups.table.columns.get_loc(key)
    for row in cells.rows:
        rows = lists[ROW].iat[row] if flat else lists.iat[row]
        if not isinstance(rows, list) or not rows:
            continue
        found.what = f"the label of a group of {fact_values.count(len(rows), 'row')}"
        show(found, groups.table, Cells(rows[:1], column))
        found.parts.append((groups.source, Cells(rows[:1], column)))
    return found


def _several_groups(trace, event, name, value, selector, receiver) -> Found:
    found = Found(event, "")
    for row in selector.rows[:200]:
        one = grouped(trace, event, name, value, Cells([row], selector.column), receiver)
        assert one is not None
        found.what = f"{name} of several groups"
        found.parts += one.parts
        found.rows += one.rows
        found.labels += one.labels
        found.cells += one.cells[:20]
        found.of, found.ends = one.of, found.ends or one.ends
    return found


def _aggregate(event, name: str, value, selector: Cells, groups: _Groups, lists) -> tuple:
    """Returns the position of the column that was aggregated, and the name of the function, or "" if it is unknown."""
    table = groups.table
    if name == "size":
        return None, "size"
    column: typing.Any = None
    function: typing.Any = name
    if is_frame(value):
        column = value.columns[selector.column]
    elif groups.is_one and groups.columns:
        column = groups.columns[0]
    if name in ("agg", "aggregate"):
        asked: typing.Any = None
        named = {}
        for n, (role, _) in enumerate(event.expression.parts):
            if role == "argument" and asked is None:
                asked = _function_names(event, n)
            elif role not in ("receiver", "argument"):
                named[role] = _function_names(event, n)
        if asked is None and named:
            asked = named.get(column if isinstance(column, str) else "")
            if isinstance(asked, tuple):
                column, function = asked
            else:
                function = asked
                column = groups.columns[0] if groups.is_one and groups.columns else None
        elif isinstance(asked, dict):
            top = column[0] if isinstance(column, tuple) else column
            chosen = asked.get(top)
            function = column[-1] if isinstance(chosen, list) and isinstance(column, tuple) else chosen
            column = top
        elif isinstance(asked, list):
            function = column[-1] if isinstance(column, tuple) else column
            column = column[0] if isinstance(column, tuple) else groups.columns[0] if groups.columns else None
        else:
            function = asked
    if is_series(table):
        return None, function if isinstance(function, str) and function in REDUCE else ""
    if isinstance(column, tuple) and table.columns.nlevels == 1:
        column = column[0]
    if column not in table.columns:
        raise Ends(f"{name}: the column of the groups is not known")
    return table.columns.get_loc(column), function if isinstance(function, str) and function in REDUCE else ""


def _function_names(event: Event, n: int):
    """Returns the names of functions of an argument of agg; an unknown one is ""."""
    each = event.expression.parts[n][1]
    part = event.parts[n]
    if part is not None and isinstance(part.expression.node, (ast.Dict, ast.List, ast.Tuple)):
        node = part.expression.node
        if isinstance(node, ast.Dict):
            keys = range(0, len(part.expression.parts), 2)
            return {_function_name(part, k): _function_names(part, k + 1) for k in keys}
        made = [_function_name(part, k) for k in range(len(part.expression.parts))]
        return tuple(made) if isinstance(node, ast.Tuple) else made
    if part is not None and type(part.value) in (dict, list, tuple):
        return part.value
    del each
    return _function_name(event, n)


def _function_name(event: Event, n: int):
    try:
        value = event.operand(n)
    except Ends:
        part = event.parts[n] if n < len(event.parts) else None
        code = part.expression.code if part is not None else ""
        return code if code in ("sum", "len", "min", "max", "any", "all") else ""
    if callable(value) and fact_values.package_of(value) == "":
        return getattr(value, "__name__", "") if type(value).__name__ == "builtin_function_or_method" else ""
    return value


def looped(turn: Event, source: Event, name: str, k: int, path: tuple, cells: Cells) -> Found:
    """Returns where a table came from that is the variable of a loop: a row of iterrows, or a group."""
    receiver = source.part("receiver")
    if name == "iterrows" and path == (1,) and receiver is not None and is_frame(receiver.value):
        found = Found(turn, "a row of the table")
        for row in cells.rows:
            show(found, receiver.value, Cells([k], row))
            found.parts.append((receiver, Cells([k], row)))
        return found
    if path == (1,) and "GroupBy" in type(source.value).__name__:
        groups = _Groups(source)
        lists = groups.rows_of_groups()
        lists = lists[ROW] if isinstance(lists, pandas().DataFrame) else lists
        rows = [each for each in lists if isinstance(each, list) and each][k]
        column = cells.column
        if is_frame(groups.table) and groups.columns is not None:
            if not groups.is_one:
                raise Ends("a loop over groups of some columns is not followed")
            column = groups.table.columns.get_loc(groups.columns[0])
        elif isinstance(column, tuple):
            raise Ends("the labels of a group are not followed")
        before = Cells([rows[row] for row in cells.rows], column)
        found = Found(turn, f"group {k} of {fact_values.count(len(rows), 'row')}")
        show(found, groups.table, before)
        found.parts.append((groups.source, before))
        return found
    raise Ends("a table in a loop is not followed")


def _group_each(event, name: str, value, cells: Cells, groups: _Groups) -> Found:
    """Follows a method of groups that gives one value for each row."""
    table = groups.table
    positional, named = arguments_of(event)
    if len(cells.rows) != 1 or len(value) != len(table):
        raise Ends(f"{name} of groups: ask for one cell")
    row = cells.rows[0]
    lists = groups.rows_of_groups()
    lists = lists[ROW] if isinstance(lists, pandas().DataFrame) else lists
    rows = next((each for each in lists if isinstance(each, list) and row in each), None)
    if rows is None:
        return Found(event, f"{name}: the row is in no group")
    column = None
    if is_frame(table):
        key = value.columns[cells.column] if is_frame(value) else groups.columns[0] if groups.columns else None
        if key is None and name != "cumcount":
            raise Ends(f"{name} of groups: the column is not known")
        column = table.columns.get_loc(key) if key is not None else 0
    made = groups.regroup(table.iloc[rows])
    if groups.columns is not None:
        made = made[groups.columns[0] if groups.is_one else groups.columns]
    again = at(call_method(made, name, (positional, named)), rows.index(row), cells.column)
    if not close(again, at(value, row, cells.column)):
        raise Ends(f"{name}: the rows of the group alone give {text_of(again)}, and not the cell")
    used = rows
    if name in ("cumsum", "cumprod", "cummax", "cummin", "cumcount"):
        used = rows[: rows.index(row) + 1]
    elif name == "shift" and not named:
        periods = positional[0] if positional else 1
        place = rows.index(row) - periods
        used = [rows[place]] if 0 <= place < len(rows) else []
    elif name == "diff" and not named:
        periods = positional[0] if positional else 1
        used = [rows[n] for n in (rows.index(row) - periods, rows.index(row)) if 0 <= n < len(rows)]
    function = f" {positional[0]}" if name == "transform" and positional and isinstance(positional[0], str) else ""
    found = Found(event, f"{name}{function} of {fact_values.count(len(used), 'row')} of the group of this row")
    show(found, table, Cells(used, column))
    if name != "cumcount" and used:
        found.parts.append((groups.source, Cells(used, column)))
    return found
