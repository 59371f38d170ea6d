"""What expressions did with values: a Watcher compares each value with the values that it was made from.

The comparison is the same for every operation: rows that are lost or multiplied, values that are missing or are no
longer, values that were replaced or cut, types, order and labels. It reads no clock, because the clocks of a replay
have the readings of the original.

Each fact has a score, by which facts are ranked. From 70 on, a fact says that something was lost, replaced or repeated,
in numbers.
"""

import ast
import contextlib
import datetime
import decimal
import itertools
import math
import types
import typing
import warnings

import fact_tables
from fact_values import (
    MAX_LOOKED_AT,
    MAX_TIMES,
    Pairs,
    Probe,
    Scalars,
    class_name,
    class_of,
    constant,
    count,
    family,
    has_plain_keys,
    is_container,
    is_dict,
    is_plain_key,
    is_scalar,
    known,
    module,
    numeric_text,
    package_of,
    show,
    span,
)
from fact_views import Table, table_of

MAX_WORK = 30_000_000  # values that all comparisons of a run look at
MAX_FACT_CHARS = 400  # of the text of a fact

_INNER_ROLES = ("element", "condition", "key")  # of the parts of comprehensions

# Methods and functions that change what they are given.
_CHANGING = (
    "append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear", "sort",
    "reverse", "update", "add", "setdefault", "heappush", "heappop", "heapify", "shuffle", "subtract", "fill", "resize",
)  # fmt: skip

Found = dict[str, tuple[int, str]]  # the score and the text of each kind of fact


class Watcher:
    """Looks at the values of the probes of one run."""

    def __init__(self) -> None:
        self._work = 0

    # -- while the code runs

    def see(self, probe: Probe, value, frame: int) -> None:
        """Looks at the value of an expression in a frame. The values of its parts came before. Errors of numpy and
        pandas pass, and cost a fact."""
        probe.frame = frame
        if probe.has_parent or probe.is_kept or probe.stores is not None:
            probe.last = known(value)
        try:
            if probe.kind in ("container", "key"):
                if probe.stores is not None:
                    self._store(probe.stores, frame)
                return
            self._look(probe, value)
        finally:
            for _, child in probe.children:
                if not child.is_kept:
                    child.last, child.frame = None, 0

    def _look(self, probe: Probe, value) -> None:
        node = probe.node
        if is_scalar(value):
            if probe.scalars is None:
                probe.scalars = Scalars()
            probe.scalars.add(value)
            if type(value) is str and value[:1] == "\ufeff" and not isinstance(node, ast.Name):
                text = f"begins with '\\ufeff', a byte order mark (BOM), which is not visible: {show(value)}"
                probe.note("bom", 72, text)
        elif probe.kind in ("truth", "choice"):
            name = class_name(value)
            probe.others[name] = probe.others.get(name, 0) + 1
            if probe.kind == "truth":
                _look_at_flags(probe, value)
        if probe.kind == "iter" and is_container(value) and not value:
            probe.missed += 1
        if isinstance(node, ast.Name):
            if not is_scalar(value) and _rarely(probe.n) and self._work < MAX_WORK:
                with Quiet():
                    self._summarise(probe, value)
            return
        self._pair(probe, value)
        if isinstance(node, ast.Compare):
            self._compare_types(probe, node)
        if isinstance(node, ast.Call):
            self._lookup(probe, node)
            argument = probe.child("argument")
            if isinstance(node.func, ast.Name) and node.func.id == "bool" and probe.has(argument):
                assert argument is not None
                _look_at_flags(probe, argument.last)
        if fact_tables.called_name(node) in _CHANGING:  # what it got is another now
            return
        if self._work < MAX_WORK and (_rarely(probe.n) or _is_slice(node) and probe.n < 200):
            with Quiet():
                self._compare_tables(probe, value)

    # -- assignments to elements

    def _store(self, probe: Probe, frame: int) -> None:
        """Looks at an assignment to an element, which comes next."""
        probe.frame = frame
        given, container, key_probe = probe.child("value"), probe.child("container"), probe.child("key")
        assert given is not None and container is not None
        are_of_now = probe.has(given) and probe.has(container) and (key_probe is None or probe.has(key_probe))
        value, target = given.last, container.last
        key = key_probe.last if key_probe is not None else None
        for _, child in probe.children:  # pandas counts the references to find chained assignments
            child.last = None
        probe.n += 1
        if probe.n > MAX_TIMES or not are_of_now:
            return
        if type(target) is dict and is_plain_key(key) and has_plain_keys(target):
            probe.keys.add(key)
            if key in target:
                probe.overwritten += 1
                probe.replace(target[key], key, value)
        elif package_of(target) == "numpy" and class_name(target) == "ndarray":
            with Quiet():
                self._store_in_array(probe, target, value)
        elif package_of(target) == "pandas" and _rarely(probe.n) and self._work < MAX_WORK:
            with Quiet():
                self._store_in_frame(probe, target, key, value)

    def _store_in_array(self, probe: Probe, target, value) -> None:
        numpy = module("numpy")
        if target.dtype.kind not in "iu" or not is_scalar(value) and table_of(value) is None:
            return
        given = numpy.asarray(value).ravel()
        if given.dtype.kind != "f":
            return
        self._work += given.size
        cut = given[numpy.isfinite(given) & (given != numpy.trunc(given))]
        if len(cut):
            probe.overwritten += len(cut)
            first = float(cut[0])
            probe.note("cut", 88, f"the array has the type {target.dtype} (integers), and {{cut}} lost the fraction: "
                                  f"{show(first)} was stored as {math.trunc(first)}")  # fmt: skip

    def _store_in_frame(self, probe: Probe, target, key, value) -> None:
        pandas = module("pandas")
        is_column = class_of(target) is pandas.DataFrame and type(value) is pandas.Series
        if not is_column or not isinstance(key, (str, int)):
            return
        self._work += len(target)
        if target.index.equals(value.index) or not value.index.is_unique:
            return
        lacking = target.index[~target.index.isin(value.index)]
        unused = value.index[~value.index.isin(target.index)]
        if len(lacking) or len(unused):
            probe.note(
                "align",
                82,
                f"rows were matched by label (index), not by position: {len(lacking)} of {len(target)} labels of the "
                f"table{fact_tables.examples(lacking)} are not in the index of the value, and are missing (NaN); "
                f"{len(unused)} of {len(value)} labels of the value{fact_tables.examples(unused)} are not in the table",
            )
        elif len(target.index) != len(value.index) or not (target.index == value.index).all():
            probe.note(
                "align",
                55,
                f"rows were matched by label (index), not by position: the {len(value)} labels of the value are in "
                f"another order",
            )

    # -- scalars

    def _pair(self, probe: Probe, value) -> None:
        """Counts what an operation made of the scalar that it got."""
        if value is None or type(value) is bool or not is_scalar(value):
            return
        source = _principal(probe)
        if source is None or not probe.has(source) or not is_scalar(source.last):
            return
        if probe.pairs is None:
            probe.pairs = Pairs()
        probe.pairs.add(source.last, value)
        probe.strips.add(source.last, value)

    def _compare_types(self, probe: Probe, node: ast.Compare) -> None:
        left, right = probe.child("left"), probe.child("right")
        if len(node.ops) != 1 or left is None or not probe.has(left) or right is not None and not probe.has(right):
            return
        operator, value = node.ops[0], left.last
        other = right.last if right is not None else constant(node.comparators[0])
        if isinstance(operator, (ast.Eq, ast.NotEq)):
            _note_types(probe, "compared", value, "with", other)
            _note_nearly_equal(probe, value, other)
        elif isinstance(operator, (ast.In, ast.NotIn)):
            items = list(itertools.islice(other, MAX_LOOKED_AT)) if is_container(other) else []
            if items and all(family(each) == family(items[0]) for each in items):
                _note_types(probe, "looked for", value, "among", items[0])
        elif numeric_text(value) and numeric_text(other) and (value < other) != (float(value) < float(other)):
            text = (
                f"compared strings (str, text) character by character, not as numbers: {show(value)} and {show(other)}"
            )
            probe.note("text order", 84, text)
        elif type(value) is str and type(other) is str and len(value) > 15 and len(other) > 15:
            at, other_at = _moment(value), _moment(other)
            if at is not None and other_at is not None and (value < other) != (at < other_at):
                text = f"compared strings (str, text) and not times: {show(value)} and {show(other)} have time zones "
                probe.note("text order", 84, text + "(UTC offsets), and their order as times is the other one")

    def _lookup(self, probe: Probe, node: ast.Call) -> None:
        """Looks at a call of dict.get."""
        receiver, key = probe.child("receiver"), probe.child("argument")
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "get":
            return
        if receiver is None or not probe.has(receiver) or key is not None and not probe.has(key):
            return
        table = receiver.last
        if not is_dict(table) or not has_plain_keys(table):
            return
        if probe.context is None:
            probe.context = len(table)
        probe.is_update |= len(table) != probe.context
        asked = key.last if key is not None else constant(node.args[0]) if node.args else None
        if not is_scalar(asked) or asked in table:
            return
        probe.missed += 1
        keys = [k for _, k in zip(range(3), table, strict=False)]
        if keys and family(asked) and all(family(k) not in (None, family(asked)) for k in keys):
            names = f"{type(keys[0]).__name__} ({', '.join(map(show, keys))})"
            text = f"looked for {type(asked).__name__} ({show(asked)}) among the keys, which are {names}"
            probe.note("types", 86, text + " and never equal to it")

    # -- tables

    def _summarise(self, probe: Probe, value) -> "Table | None":
        made = table_of(value)
        if made is None:
            probe.last_text = f"{count(len(value), 'item')}: {show(value)}" if is_container(value) else ""
            return None
        self._work += made.cost
        probe.last_text = made.text()
        return made

    def _compare_tables(self, probe: Probe, value) -> None:
        node = probe.node
        made = None if is_scalar(value) else self._summarise(probe, value)
        inputs = []
        for role, child in probe.children:
            if role in _INNER_ROLES or not probe.has(child) or is_scalar(child.last):
                continue
            table = table_of(child.last)
            if table is not None:
                self._work += table.cost
                inputs.append((role, child, table))
        if inputs and made is not None:
            if isinstance(node, ast.Subscript) and inputs[0][2].kind == "DataFrame":
                probe.context = inputs[0][1].last
            elif inputs[0][1].context is not None:
                probe.context = inputs[0][1].context
        if fact_tables.called_name(node) == "concat":
            _note_columns(probe)
        if isinstance(node, ast.DictComp):
            key = probe.child("key")
            if type(value) is dict and key is not None and key.n > len(value) and probe.n == 1:
                pairs = f"{key.n} pairs had only {count(len(value), 'different key')}"
                text = f"{pairs}: {key.n - len(value)} replaced (overwrote) a value that was there already"
                probe.note("overwritten", 72, text)
        elif inputs:
            comparison = fact_tables.Comparison(probe, value, made, inputs)
            try:
                comparison.note()
            finally:
                self._work += comparison.work


def _replaced_text(probe: Probe) -> str:
    """Returns the values of the first keys whose values were replaced: "; 'a': 1, then 2"."""
    return "".join(f"; {key}: {', then '.join(texts)}" for key, texts in probe.replaced.items())


def facts_of(probe: Probe) -> "list[dict]":
    """Returns what was seen of an expression, once the code has run, as sandbox.Fact."""
    probe.strips.note(probe, "", probe.pairs.n if probe.pairs is not None else 0)
    node, found = probe.node, dict(probe.effects)
    if "nearly" in found and probe.n > 1:
        score, text = found["nearly"]
        found["nearly"] = (score, f"{text} ({probe.overwritten} of {probe.n} times)")
    if isinstance(node, ast.Call):
        found.update(_fact_of_one_result(probe))
    if "cut" in found and probe.kind == "store":
        score, text = found["cut"]
        found["cut"] = (score, text.replace("{cut}", count(probe.overwritten, "value")))
    if probe.kind == "store" and not probe.is_update and probe.overwritten and 0 < len(probe.keys) < probe.n:
        several = f"{probe.n} assignments" if probe.n < MAX_TIMES else f"the first {probe.n} assignments"
        found["overwritten"] = (72, f"{several} to {count(len(probe.keys), 'key')}: {probe.overwritten} "
                                    f"replaced (overwrote) a value that was there already"
                                    f"{_replaced_text(probe)}")  # fmt: skip
    if probe.pairs is not None:
        found.update(_facts_of_pairs(probe, probe.pairs))
    if "types" in found and probe.n > 1:
        score, text = found["types"]
        found["types"] = (score if probe.missed == probe.n else 50, f"{text} ({probe.missed} of {probe.n} times)")
    elif probe.missed == probe.n > 2 and isinstance(node, ast.Call) and "types" not in found:
        found["default"] = (
            45 if probe.is_update else 72,  # if the dict grows, it counts or sums
            f"the default was used {probe.missed} of {probe.n} times, because the key was not there",
        )
    if probe.kind in ("truth", "choice"):
        found.update(_facts_of_truth(probe))
    if type(probe.context) is str:
        text = f"{probe.missed} of {probe.n} times a dict without a true value counted as true, because it is not empty"
        found["truth"] = (82, f"{text}: {probe.context}")
    if isinstance(node, ast.Subscript):
        found.update(_fact_of_failed_lookup(probe))
    if probe.kind == "iter" and probe.n and probe.missed == probe.n:
        found["empty"] = (74, "was empty, so the loop did not run")
    if "reduced" in found and probe.n > 1:
        score, text = found["reduced"]
        found["reduced"] = (score, f"at one of {probe.n} times {text}")
    text = probe.scalars.text() if probe.scalars is not None else probe.last_text if probe.n == 1 else ""
    if text and not _is_silent(probe):
        found["value"] = (20 + 5 * (probe.n > 1) - 5 * (probe.kind == "name"), text)
    place = {"line": node.lineno, "column": node.col_offset, "code": probe.code, "times": probe.n}
    return [
        {**place, "kind": kind, "score": score, "text": text[:MAX_FACT_CHARS]} for kind, (score, text) in found.items()
    ]


def _is_silent(probe: Probe) -> bool:
    """Tells whether an expression is a call that changes what it is given, and has only returned None."""
    scalars = probe.scalars
    has_only_none = scalars is not None and scalars.kinds.keys() == {"NoneType"}
    return has_only_none and fact_tables.called_name(probe.node) in (*_CHANGING, "print", "display", "sleep", "seed")


def _look_at_flags(probe: Probe, value) -> None:
    """Looks at a dict of truth values that is used as one: it counts as true even if all of them are false."""
    if type(value) is dict and value and all(type(each) is bool or each is None for each in value.values()):
        if not any(value.values()):
            probe.missed += 1
            probe.context = show(value)


def _fact_of_failed_lookup(probe: Probe) -> Found:
    """Returns what a dict had in place of the key that was looked for last, if that raised an exception."""
    table, index = probe.child("receiver"), probe.child("index")
    if table is None or table.n <= probe.n or not is_dict(table.last) or not has_plain_keys(table.last):
        return {}
    assert isinstance(probe.node, ast.Subscript)
    key = index.last if index is not None else constant(probe.node.slice)
    if not is_plain_key(key) or key in table.last:
        return {}
    keys = list(itertools.islice(table.last, MAX_LOOKED_AT))
    text = f"{show(key)} is not a key; the keys are {', '.join(map(show, keys[:6]))}{', ...' if len(keys) > 6 else ''}"
    for each in keys:
        if isinstance(each, str) and isinstance(key, str) and each != key and _visible(each) == _visible(key):
            text += f"; {show(each)} differs only in characters that are not visible, such as a byte order mark (BOM)"
            break
    return {"key": (78, text)}


def _visible(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and not c.isspace()).casefold()


def _fact_of_one_result(probe: Probe) -> Found:
    """Returns that different numbers all gave the same one."""
    argument, gave = probe.child("argument"), probe.scalars
    given = argument.scalars if argument is not None else None
    if given is None or gave is None or given.n != gave.n or given.distinct is None or gave.distinct is None:
        return {}
    if len(gave.distinct) != 1 or len(given.distinct) < 3 or type(gave.low) not in (int, float):
        return {}
    text = f"{len(given.distinct)} different values ({span(given.low, given.high)}) all gave {show(gave.low)}"
    return {"constant": (66, text)}


def _facts_of_truth(probe: Probe) -> Found:
    found: Found = {}
    scalars, node = probe.scalars, probe.node
    has_one_value = isinstance(node, (ast.NamedExpr, ast.BinOp, ast.IfExp))
    if probe.n > 2 and scalars is not None and scalars.n == probe.n and not has_one_value:
        if scalars.true in (0, scalars.n):
            found["always"] = (58, f"was {'true' if scalars.true else 'false'} {scalars.n} of {scalars.n} times")
        else:
            found["always"] = (35, f"was true {scalars.true} of {scalars.n} times")
    return found


def _facts_of_pairs(probe: Probe, pairs: Pairs) -> Found:
    found: Found = {}
    node, n = probe.node, pairs.n
    if pairs.replaced:
        values = ", ".join(list(pairs.replaced)[:3])
        missing = sum(pairs.replaced.values())
        found["replaced"] = (72, f"{missing} of {n} values were missing (None or NaN) and became {values}")
    if pairs.falsy and isinstance(node, ast.BoolOp):
        first = next(iter(pairs.falsy))
        found["falsy"] = (70, f"{sum(pairs.falsy.values())} of {n} values counted as false and were replaced: {first}")
    if pairs.cut and pairs.cut_pair:
        given, made = pairs.cut_pair
        text = (
            f"{pairs.cut} of {n} values lost their fraction as integers (int), the most: {show(given)} -> {show(made)}"
        )
        found["cut"] = (84 if pairs.most_cut > 0.99 else 62, text)
    elif pairs.first is not None and isinstance(node, (ast.Call, ast.Attribute)) and _differ(pairs):
        found["pairs"] = _fact_of_change(node, pairs.first, pairs.largest or pairs.first)
    elif n == probe.n > 1 and pairs.equal == n and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        found["no effect"] = (66, f"changed none of {n} values")
    return found


def _differ(pairs: Pairs) -> bool:
    """Tells whether a reader sees a difference between what an operation got and made: float(d) may show none."""
    return any(pair is not None and show(pair[0]) != show(pair[1]) for pair in (pairs.first, pairs.largest))


def _fact_of_change(node: ast.expr, first: tuple, largest: tuple) -> "tuple[int, str]":
    """Returns the fact that an operation made one scalar of another. The pairs have what it got and what it made."""
    text = f"{show(first[0])} -> {show(first[1])}"
    if largest != first:
        text += f"; the largest: {show(largest[0])} -> {show(largest[1])}"
    given = largest[0]
    if isinstance(node, ast.Attribute) and node.attr == "seconds" and isinstance(given, datetime.timedelta):
        if given.days > 0:
            return 84, text + " (the whole days are left out)"
    return 44, text


def _principal(probe: Probe) -> "Probe | None":
    """Returns the part of an expression whose value the operation changes."""
    match probe.node:
        case ast.Call(func=func):
            receiver = probe.child("receiver") if isinstance(func, ast.Attribute) else None
            is_module = receiver is None or probe.has(receiver) and type(receiver.last) is types.ModuleType
            return probe.child("argument") if is_module else receiver
        case ast.Attribute() | ast.Subscript():
            return probe.child("receiver")
        case ast.BoolOp() | ast.UnaryOp():
            return probe.child("operand")
    return None


def _note_columns(probe: Probe) -> None:
    """Notes the columns that only some of the tables have which a concatenation got."""
    pandas = module("pandas")
    for parts in probe.values_of("argument", "objs"):
        if class_of(parts) is not list or pandas is None or len(parts) > MAX_LOOKED_AT:
            return
        if any(type(part) is not pandas.DataFrame or not all(type(c) is str for c in part.columns) for part in parts):
            return
        every = set(itertools.chain.from_iterable(part.columns for part in parts))
        for number, part in enumerate(parts, 1):
            lacking, other = sorted(every - set(part.columns)), set(part.columns)
            alone = sorted(c for c in other if any(c not in p.columns for p in parts))
            if lacking:
                text = f"part {number} ({len(part)} rows) has no column {', '.join(map(show, lacking[:3]))}"
                text += f", and has {', '.join(map(show, alone[:3]))}" if alone else ""
                probe.note("columns", 74, text + ": these values are missing (NaN)")
                return


def _note_nearly_equal(probe: Probe, left: typing.Any, right: typing.Any) -> None:
    """Notes numbers that differ only in their last digits."""
    are_numbers = family(left) == family(right) == "number" and float in (type(left), type(right))
    if not are_numbers or left == right or not math.isfinite(left) or not math.isfinite(right):
        return
    if abs(float(left) - float(right)) <= 1e-9 * max(abs(float(left)), abs(float(right))):
        probe.overwritten += 1
        kinds = f"{type(left).__name__} {left!r} and {type(right).__name__} {right!r}"
        text = f"{kinds} differ only in digits that floats do not keep (precision), so they are not equal"
        probe.note("nearly", 82, text)


def _moment(text: str) -> "datetime.datetime | None":
    """Returns the time with a time zone that a text is."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _note_types(probe: Probe, verb: str, left: typing.Any, joint: str, right: typing.Any) -> None:
    kinds = (family(left), family(right))
    if None in kinds or kinds[0] == kinds[1]:
        return
    probe.missed += 1
    probe.note("types", 86, f"{verb} {type(left).__name__} ({show(left)}) {joint} {type(right).__name__} "
                            f"({show(right)}), which are never equal")  # fmt: skip


class Quiet:
    """Hides the warnings of numpy and pandas, and the flags of decimals. It leaves the registries of warnings as they
    are: with catch_warnings, the program would show warnings again that it has shown already."""

    _ALL: list = [("ignore", None, Warning, None, 0)]

    def __enter__(self) -> None:
        numpy = module("numpy")
        self._contexts = contextlib.ExitStack()
        self._contexts.enter_context(decimal.localcontext())  # it gets the flags of comparisons
        if numpy is not None:
            self._contexts.enter_context(numpy.errstate(all="ignore"))
        self._filters, warnings.filters = warnings.filters, self._ALL

    def __exit__(self, *_) -> None:
        warnings.filters = self._filters
        self._contexts.close()


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _rarely(n: int) -> bool:
    """Tells whether an evaluation is looked at closely: the first ones, and fewer and fewer later."""
    return n <= 8 or n & (n - 1) == 0
