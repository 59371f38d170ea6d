"""Where the variables of loops came from: the element that a turn got of what the loop goes through.

It knows lists, dicts, generators and columns of tables, also behind enumerate, zip, items and iterrows.
"""

import ast

import cell_groups
import fact_tables
from cell_values import CONTAINERS, Cells, Ends, Event, Found, is_dict, is_frame, is_table, text_of


def element(trace, turn: Event, source: Event, k: int, path: tuple, selector) -> Found:
    """Returns where the variable of a loop came from, which is a part of element k of what the loop goes through."""
    node = source.expression.node
    name = fact_tables.called_name(node)
    found = Found(turn, "")
    if isinstance(selector, Cells):
        return cell_groups.looped(turn, source, name, k, path, selector)
    full = (*path, *selector)
    if name == "enumerate" and full:
        part = source.part("argument")
        if full[0] != 1:
            return found
        if part is None:
            raise Ends("enumerate: what it goes through is not followed")
        return element(trace, turn, part, k, full[1:], ())
    if name == "zip" and full:
        parts = [p for (role, _), p in zip(source.expression.parts, source.parts) if role == "argument"]
        part = parts[full[0]]
        if part is None:
            raise Ends("zip: what it goes through is not followed")
        return element(trace, turn, part, k, full[1:], ())
    if name == "range":
        return found
    if name in ("items", "values", "keys"):
        receiver = source.part("receiver")
        if receiver is not None and is_dict(receiver.value):
            key = list(receiver.value)[k]
            if name == "keys" or name == "items" and full[:1] == (0,):
                return found
            found.parts.append((receiver, (key, *(full[1:] if name == "items" else full))))
            return found
    receiver = source.part("receiver")
    if name in ("iterrows", "itertuples") and receiver is not None and is_frame(receiver.value):
        frame = receiver.value
        if name == "iterrows":
            if full[:1] != (1,) or len(full) < 2:
                return found
            column = full[1]
        else:
            if not full:
                raise Ends("itertuples: not further")
            column = full[0]
            if isinstance(column, int):
                column = frame.columns[column - 1]
        at = frame.columns.get_loc(column)
        found.parts.append((receiver, Cells([k], at)))
        found.what = name
        found.rows, found.labels, found.of = [k], [text_of(frame.index[k])], len(frame)
        return found
    return _element_of(found, source, k, full)


def _element_of(found: Found, source: "Event | None", k: int, full: tuple) -> Found:
    if source is None:
        raise Ends("what the loop goes through is not followed")
    value = source.value
    if is_table(value):
        if getattr(value, "ndim", 2) != 1:
            raise Ends("a loop over a table is not followed")
        found.parts.append((source, Cells([k])))
        return found
    if source.turns and isinstance(source.expression.node, ast.GeneratorExp):
        found.parts.append((source.turns[k], full))
        return found
    if is_dict(value):
        if full:
            raise Ends("a key of a dict is not followed")
        return found
    if type(value) in CONTAINERS:
        found.parts.append((source, (k, *full)))
        return found
    raise Ends("what the loop goes through is not followed")
