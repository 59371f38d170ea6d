"""What an operation did to tables: rows that are lost or multiplied, shapes, labels, order, groups and bounds."""

import ast
import datetime
import itertools
import math
import re

import fact_columns
from fact_values import (
    MAX_COLUMNS,
    MAX_EXAMPLES,
    MAX_ITEMS,
    NUMBERS,
    Probe,
    class_name,
    constant,
    count,
    is_missing,
    is_scalar,
    module,
    numeric_text,
    show,
    span,
)
from fact_views import Column, Table, is_plain

_DATE = re.compile(r"\d{4}[-/]?\d{2}[-/]?\d{2}")

# Operations that leave rows out. Others make fewer rows because they compute something from several.
_FILTERING = (
    "merge", "join", "drop", "dropna", "query", "head", "drop_duplicates", "filter", "between_time", "nlargest",
    "sample",
)  # fmt: skip

# Operations that compute a value from the values of the rows before.
_ACROSS_ROWS = (
    "diff", "pct_change", "shift", "rolling", "cumsum", "cumprod", "ffill", "bfill", "interpolate", "expanding", "ewm",
)  # fmt: skip


def examples(labels) -> str:
    """Returns the first labels of an index in parentheses; "" for none."""
    first = list(dict.fromkeys(map(show, labels[: MAX_EXAMPLES + 1])))
    more = ", ..." if len(labels) > MAX_EXAMPLES else ""
    return f" ({', '.join(first[:MAX_EXAMPLES])}{more})" if first else ""


class Comparison:
    """What an expression made of tables.

    inputs has each input's role, probe and view, and made is the view of the value. work is how many values the
    comparison looked at, in addition to those of the views.
    """

    def __init__(self, probe: Probe, value, made: "Table | None", inputs: "list[tuple[str, Probe, Table]]") -> None:
        self.work = 0
        self._probe, self._node, self._value = probe, probe.node, value
        self._made, self._inputs, self._name = made, inputs, called_name(probe.node)
        self._main = inputs[0][2]

    def note(self) -> None:
        """Notes the facts of the operation."""
        self._positions()
        if self._made is None:
            self._order_of_texts()
            if is_scalar(self._value):
                self._reduced()
            return
        self._rows(self._made)
        if isinstance(self._node, ast.Attribute):
            return
        self._columns(self._made)
        self._alignment(self._made)
        self._blocks(self._made)
        if self._name == "groupby" or self._main.kind == "groups":
            self._groups()
        if self._main.kind == "groups":
            self._group_order(self._made)
        self._type_taken_over(self._made)
        if isinstance(self._node, ast.Compare) or self._name == "between":
            self._midnight()

    # -- rows

    def _rows(self, made: Table) -> None:
        if made.shape is not None:
            self._shapes(made, made.shape)
            return
        node, main = self._node, self._main
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and self._probe.n < 200:
            self._slice(made)
            return
        if main.kind in ("groups", "windows", "dict") or isinstance(node, ast.Attribute):
            return
        if made.n < main.n:
            if made.kind == main.kind:  # and not one row of a table
                self._lost(made)
            return
        repeats = self._repeats()
        if repeats and made.n > max(table.n for _, _, table in self._inputs):
            sizes = " and ".join(str(table.n) for _, _, table in self._inputs)
            text = f"{sizes} rows -> {made.n}: rows were multiplied (duplicated)"
            self._probe.note("multiplied", 69, text + repeats)
        elif repeats:
            self._probe.note("multiplied", 45, f"{main.n} rows -> {made.n}" + repeats)

    def _shapes(self, made: Table, shape: tuple) -> None:
        shapes = [t.shape if t.shape is not None else (t.n,) for _, _, t in self._inputs if t.kind != "dict"]
        is_product = isinstance(self._node, ast.BinOp) and isinstance(self._node.op, ast.MatMult)
        is_operator = isinstance(self._node, (ast.BinOp, ast.Compare)) and not is_product
        if is_operator and len(shapes) > 1 and math.prod(shape) > max(map(math.prod, shapes)):
            is_square = len({s[0] for s in shapes}) == 1 and len({len(s) for s in shapes}) > 1
            is_meant = any(word in self._probe.code for word in ("None", "newaxis", "reshape", "keepdims", ".T"))
            self._probe.note(
                "broadcast",
                86 if is_square and not is_meant else 54,
                f"the shapes {' and '.join(map(str, shapes))} gave {shape}: every row met every column (broadcasting)",
            )
        elif shape != shapes[0] and self._name not in ("reshape", "ravel", "flatten"):
            self._probe.note("shape", 57, f"shape {shapes[0]} -> {shape}")

    def _slice(self, made: Table) -> None:
        """Notes the labels of a slice, which has both ends, and whether the slice before has one of them, too."""
        if made.index is None or not made.n or not self._is_by_label(made):
            return  # the end of a slice by position is not in it
        first, last = made.index[0], made.index[-1]
        before, self._probe.context = self._probe.context, (first, last)
        score = 40
        text = f"has the labels {span(first, last)}, both included, and {made.n} of {self._main.n} rows"
        if type(before) is tuple and first == before[1] and before[0] != first:
            score = 84
            text += (
                f"; the slice before ended with {show(before[1])}, which is in both (they overlap: ends are inclusive)"
            )
        self._probe.note("slice", score, text)

    def _is_by_label(self, made: Table) -> bool:
        """Tells whether a slice has bounds that are labels, not positions."""
        receiver, node = self._probe.child("receiver"), self._node
        accessor = receiver.code.rpartition(".")[2] if receiver is not None else ""
        if accessor in ("loc", "iloc") or not isinstance(node, ast.Subscript):
            return accessor == "loc"
        has_numbers = any(type(constant(each)) is int for each in ast.walk(node.slice) if isinstance(each, ast.expr))
        return made.index.dtype.kind not in "iu" and not has_numbers

    def _lost(self, made: Table) -> None:
        main = self._main
        lost = main.n - made.n
        if isinstance(self._node, ast.Subscript) or self._name in _FILTERING:
            text = f"{main.n} rows -> {made.n}: {lost} were left out"
            self._probe.note("lost", 48, text + self._left_out(made))
        if self._name != "drop" or lost < 2 or main.index is None or main.index.is_unique:
            return
        labels = self._probe.values_of("index", "argument", "labels")
        if labels and is_scalar(labels[0]):
            text = f"{main.n} rows -> {made.n}: {lost} rows had the label {show(labels[0])} (duplicate labels)"
            self._probe.note("lost", 88, text + " and were left out")

    def _repeats(self) -> str:
        """Returns how often the right table of a merge repeats its key, as the rest of a text. "" if it repeats none,
        or has a key that is not known."""
        tables = [table for _, _, table in self._inputs if table.kind == "DataFrame"]
        if self._name != "merge" or len(tables) < 2 or not isinstance(self._node, ast.Call):
            return ""
        given = {keyword.arg: keyword.value for keyword in self._node.keywords}
        how = given.pop("how", None)
        if isinstance(how, ast.Constant) and how.value == "cross" or given.keys() & {"left_index", "right_index"}:
            return ""
        keys = [name for name in tables[0].names if name in tables[1].names]
        if given.keys() & {"on", "right_on"} or len(self._node.args) > 2:
            asked = self._probe.values_of("right_on") or self._probe.values_of("on")
            written = given.get("right_on", given.get("on"))
            if isinstance(written, ast.List):
                asked = [[constant(each) for each in written.elts]]
            elif written is not None and not asked:
                asked = [constant(written)]
            keys = asked[0] if asked and type(asked[0]) is list else asked[:1]
        if not keys or any(key not in tables[1].names for key in keys if type(key) is str):
            return ""
        if not all(type(key) is str for key in keys):
            return ""
        frame = module("pandas").DataFrame({key: tables[1].raw(key) for key in keys})
        times = frame.value_counts()
        times = times[times > 1]
        if not len(times):
            return ""
        values = f"{count(len(times), 'value')} of {', '.join(keys)}"
        return f"; the right table repeats {values}, up to {int(times.iloc[0])} times"

    def _unmatched(self, made: Table) -> set:
        """Notes the rows of a merge that matched nothing in the right table, and returns the columns that are missing
        in them for that reason."""
        frames = [(probe, table) for _, probe, table in self._inputs if table.kind == "DataFrame"]
        if self._name != "merge" or len(frames) < 2 or not isinstance(self._node, ast.Call) or made.kind != "DataFrame":
            return set()
        (_, left), (place, right) = frames[:2]
        given = {keyword.arg: keyword.value for keyword in self._node.keywords}
        how, only = given.get("how"), [name for name in made.names if name not in left.names]
        if not isinstance(how, ast.Constant) or how.value not in ("left", "outer") or not only:
            return set()
        if any(name not in right.names for name in only) or _all_missing(right, only):
            return set()
        missing = _all_missing(made, only)
        if not missing:
            return set()
        table = place.code if place.code.isidentifier() else "the right table"
        asked = {key: given[key] for key in ("on", "left_on", "right_on") if isinstance(given.get(key), ast.Constant)}
        keys = ", ".join(f"{key}={ast.unparse(value)}" for key, value in asked.items())
        text = f"{missing} of {count(made.n, 'row')} matched nothing in {table}" + (f" ({keys})" if keys else "")
        verb = "is" if len(only) == 1 else "are"
        self._probe.note("unmatched", 69, f"{text}: {', '.join(map(str, only[:4]))} {verb} missing (NaN) in them")
        return {name for name in only if not right.column(name).missing}

    def _left_out(self, made: Table) -> str:
        """Returns what the rows that are left out have in common, as the rest of a text."""
        main = self._main
        if made.index is None or main.index is None or not main.index.is_unique or main.n > MAX_ITEMS:
            return ""
        is_lost = ~main.index.isin(made.index)
        parts: list[str] = []
        for name in main.names[:MAX_COLUMNS]:
            lost, every = Column(main.raw(name)[is_lost]), main.column(name)
            if lost.n and lost.missing == lost.n:
                parts.insert(0, f"{name} is missing (NaN) in all of them")
            elif lost.is_time:
                ends = f"{span(lost.low, lost.high)}, of {span(every.low, every.high)}"
                parts.append(f"their {name}: {ends}")
        return "; " + "; ".join(parts[:2]) if parts else ""

    # -- columns

    def _columns(self, made: Table) -> None:
        main = self._main
        selects = isinstance(self._node, ast.Subscript) and main.kind in ("DataFrame", "records")
        if selects and made.kind in ("Series", "list"):
            return
        are_single = len(made.names) == 1 and len(main.names) == 1
        told = self._unmatched(made)
        for name in made.names:
            if name in told:
                continue
            before = self._most_missing() if are_single else self._column_before(name)
            if before is None:
                continue
            label = f"{name}: " if not are_single and name != "" else ""
            fact_columns.Change(
                self._probe,
                self._name,
                label,
                before,
                made.column(name),
                is_grouped=main.kind in ("groups", "windows"),
                are_series=made.kind == main.kind == "Series",
                are_same_rows=_have_same_labels(main, made) and self._name not in ("merge", "join"),
            ).note()

    def _most_missing(self) -> Column:
        """Returns the column of the first table, or of that operand of a computation which lacks the most values."""
        columns = [table.column(table.names[0]) for _, _, table in self._inputs if len(table.names) == 1]
        first = self._main.column(self._main.names[0])
        if not isinstance(self._node, ast.BinOp):
            return first
        return max((c for c in columns if c.n == first.n), key=lambda c: c.missing, default=first)

    def _column_before(self, name) -> "Column | None":
        """Returns the column of a name in the first table, or in the last other table that has it."""
        if name in self._main.names:
            return self._main.column(name)
        others = [table.column(name) for _, _, table in self._inputs[1:] if name in table.names]
        return others[-1] if others else None

    # -- labels and order

    def _alignment(self, made: Table) -> None:
        """Notes rows of two tables that do not go together, because only one of them has the label."""
        if not isinstance(self._node, (ast.BinOp, ast.Compare)) or len(self._inputs) < 2:
            return
        left, right = self._inputs[0][2].index, self._inputs[1][2].index
        if left is None or right is None or left.equals(right):
            return
        only_left, only_right = left[~left.isin(right)], right[~right.isin(left)]
        if len(only_left) or len(only_right):
            missing = made.column(made.names[0]).missing if made.names else 0
            self._probe.note(
                "align",
                82 if missing else 60,
                f"rows were matched by label (index), not by position: {count(len(only_left), 'label')} only on the "
                f"left{examples(only_left)}, {len(only_right)} only on the right{examples(only_right)}; "
                f"{missing} of {made.n} results were missing (NaN)",
            )

    def _blocks(self, made: Table) -> None:
        """Notes that the extremes of a result are where another column of the table begins another group."""
        frame, value, given = self._probe.context, self._value, self._inputs[0][1].last
        if self._name not in _ACROSS_ROWS or frame is None or not isinstance(self._node, ast.Call):
            return
        if made.kind != "Series" or class_name(given) != "Series" or made.n != self._main.n:
            return
        if len(frame) != len(value) or len(value) < 4 or not value.index.equals(frame.index):
            return
        self.work += frame.size
        for column in frame.columns[:MAX_COLUMNS] if is_plain(frame.columns) and frame.columns.is_unique else ():
            keys = frame[column]
            if not is_plain(keys) or keys.dtype.kind in "fMm" or not 1 < keys.nunique() <= len(keys) // 2:
                continue
            begins = (keys != keys.shift()).to_numpy().copy()
            begins[0] = False
            if 0 < begins.sum() <= keys.nunique() * 2 and value.dtype.kind in "iuf":
                self._note_blocks(column, keys, begins, given)
                return

    def _note_blocks(self, column, keys, begins, given) -> None:
        """Notes the rows where a block of equal keys begins: they use the last row of the block before."""
        value, numbers = self._value, self._value.astype(float)
        lowest = int(numbers.fillna(math.inf).to_numpy().argmin())
        highest = int(numbers.fillna(-math.inf).to_numpy().argmax())
        extremes = [
            f"{show(value.iloc[n])} (row {n}: {show(keys.iloc[n])} {show(given.iloc[n])}, the row before: "
            f"{show(keys.iloc[n - 1])} {show(given.iloc[n - 1])})"
            for n in sorted({lowest, highest})
            if begins[n]
        ]
        rows = int(begins.sum())
        if extremes:
            text = f"computed across the groups of {column}: {count(rows, 'row')} used the previous row of another "
            self._probe.note("blocks", 87, f"{text}{column}, with the lowest or highest result: {'; '.join(extremes)}")
            return
        first = int(begins.argmax())
        self._probe.note(
            "blocks",
            66,
            f"computed across the {keys.nunique()} groups of {column}: {count(rows, 'row')} used the previous row of "
            f"another {column}, such as {show(keys.iloc[first - 1])} before {show(keys.iloc[first])}",
        )

    # -- groups and bounds

    def _groups(self) -> None:
        main = self._main
        for keys in self._probe.values_of("argument", "by"):
            for name in keys if type(keys) is list else [keys]:
                if type(name) is str and name in main.names and main.column(name).missing:
                    text = f"{main.column(name).missing} of {main.n} rows had no {name} (missing, NaN)"
                    self._probe.note("groups", 76, text + " and were in no group")

    def _type_taken_over(self, made: Table) -> None:
        """Notes that a new array holds integers because the given one does."""
        kind = made.column("").kind if made.kind == self._main.kind == "array" else ""
        if self._name.endswith("_like") and kind.startswith(("int", "uint")):
            self._probe.note("type", 55, f"took over the type {kind} (integers, no fractions) of what it was given")

    def _group_order(self, made: Table) -> None:
        """Notes that groups of texts are in alphabetical order, and the rows are not."""
        if made.index is None or not 3 <= made.n <= MAX_COLUMNS or not made.index.is_unique:
            return
        groups, rows_of = list(made.index), getattr(self._inputs[0][1].last, "indices", None)
        if type(rows_of) is not dict or not all(type(each) is str and each in rows_of for each in groups):
            return
        by_row = sorted(groups, key=lambda each: rows_of[each][0])
        if groups == sorted(groups) and (by_row[0] != groups[0] or by_row[-1] != groups[-1]):
            self._probe.note(
                "order",
                52,
                f"the groups are in alphabetical order (sorted): {show(groups[0])} first, {show(groups[-1])} last; "
                f"in the rows, {show(by_row[0])} comes first and {show(by_row[-1])} last",
            )

    def _positions(self) -> None:
        """Notes that a position has another row than the label of the same number."""
        node, receiver = self._node, self._probe.child("receiver")
        if not isinstance(node, ast.Subscript) or receiver is None or not receiver.code.endswith(".iloc"):
            return
        index = self._main.index
        for place in self._probe.values_of("index"):
            if index is None or type(place) is bool or not isinstance(place, int) and not hasattr(place, "item"):
                continue
            if index.dtype.kind in "iu" and -len(index) <= place < len(index) and index[int(place)] != place:
                text = f"position {show(place)} has the label {show(index[int(place)])} (position, not label)"
                self._probe.note("position", 62, text)

    def _midnight(self) -> None:
        """Notes that a bound of a date leaves out the times of its day."""
        pandas, node, main = module("pandas"), self._node, self._main
        column = main.column(main.names[0])
        if not column.is_time or len(main.names) != 1:
            return
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.LtE, ast.Gt)):
            return
        bounds = self._probe.values_of("right", "argument", "left")
        written = node.comparators if isinstance(node, ast.Compare) else node.args if isinstance(node, ast.Call) else []
        bounds += [constant(each) for each in written]
        for bound in bounds:
            is_date = type(bound) is str and _DATE.match(bound) or isinstance(bound, datetime.date)
            if not is_date:  # for example "today", for which pandas would read the clock
                continue
            try:
                at = pandas.Timestamp(bound)
                if at != at.normalize():
                    continue
                if column.values.dt.tz is not None and at.tz is None:
                    at = at.tz_localize(column.values.dt.tz)
                late = int(((column.values > at) & (column.values < at + pandas.Timedelta(days=1))).sum())
            except Exception:  # the text is not a time, or cannot be compared
                continue
            if late and (isinstance(node, ast.Compare) or bound is bounds[-1]):
                self._probe.note(
                    "midnight",
                    84,
                    f"{show(str(bound))} means 00:00 (midnight), the start of the day: {count(late, 'value')} of that "
                    f"day came after this bound",
                )

    # -- values that were computed from a table

    def _only_column(self) -> "Column | None":
        if not isinstance(self._node, ast.Call) or self._main.kind in ("groups", "windows"):
            return None
        return self._main.column(self._main.names[0]) if len(self._main.names) == 1 else None

    def _order_of_texts(self) -> None:
        """Notes that the order of strings is not that of the numbers that they are."""
        column, name = self._only_column(), self._name
        if column is None or name not in ("min", "max", "sorted", "sort") or column.kind != "str":
            return
        texts = list(itertools.islice(column.present, 200))
        if not texts or not all(map(numeric_text, texts)):
            return
        numbers = [float(v) for v in texts]
        if name == "min":
            is_same = min(numbers) == float(min(texts))
        elif name == "max":
            is_same = max(numbers) == float(max(texts))
        else:
            is_same = sorted(texts) == sorted(texts, key=float)
        if not is_same:
            self._probe.note(
                "text order",
                86,
                f"compared strings (str, text) character by character, not as numbers: {show(column.low)} is the "
                f"smallest, {show(column.high)} the largest; as numbers, {min(numbers):g} and {max(numbers):g} are",
            )

    def _reduced(self) -> None:
        """Notes the values that a scalar was computed from."""
        column, value, near = self._only_column(), self._value, ""
        if column is None or value is None or self._main.kind == "dict":
            return
        if self._name in ("argmax", "idxmax") and column.low is not None and not column.high and column.kind == "bool":
            text = f"none of {count(column.n, 'value')} was True (never true), and {self._name} gave {show(value)}"
            self._probe.note("never", 84, text)
        if self._name == "len":  # the values themselves do not matter
            missing = f", and {column.missing} of them are missing (NaN)" if column.missing else ""
            self._probe.note("reduced", 56 if missing else 41, show(value) + missing)
            return
        used = f"{column.n - column.missing} of " if column.missing and not is_missing(value) else ""
        text = f"{show(value)}, computed from {used}{count(column.n, 'value')}"
        if column.low is not None:
            text += f" ({span(column.low, column.high)})"
        if column.is_number and column.n > 2:
            ordered = sorted(itertools.islice(column.present, MAX_ITEMS))
            if ordered:
                middle = len(ordered) // 2
                median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
                text += f", the median {show(median)}"
            is_number = isinstance(value, NUMBERS) or hasattr(value, "item")
            if "ntile" in self._name and len(ordered) >= 20 and is_number:
                below = sum(1 for v in ordered if v < value)
                if below <= len(ordered) // 50 and value >= ordered[0]:
                    near = f"; near the minimum: {below} of {len(ordered)} values are below it"
        if column.missing:
            text += f", {column.missing} missing (NaN)"
        if column.zeros:
            text += ", " + count(column.zeros, "zero")
        falling = fact_columns.falling_inputs(self._probe) if len(self._inputs) > 1 else ""
        score = 73 if near else 56 if column.missing or column.zeros or falling else 41
        self._probe.note("reduced", score, text + near + falling)


def _have_same_labels(before: Table, after: Table) -> bool:
    """Tells whether row by row of two tables belongs together."""
    if before.index is None or after.index is None:
        return before.index is after.index and before.n == after.n
    return bool(before.index.equals(after.index))


def called_name(node: ast.expr) -> str:
    """Returns the name of the function or method that an expression calls, and "" if it calls none."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _all_missing(table: Table, names: list) -> int:
    """Returns in how many rows of a table all of some columns are missing."""
    missing = None
    for name in names:
        here = module("pandas").isna(table.raw(name))
        missing = here if missing is None else missing & here
    return 0 if missing is None else int(missing.sum())
