"""What an operation did to one column: values that are missing, were replaced, cut or wrapped around, and types."""

import ast
import itertools

from fact_values import MAX_ITEMS, Probe, Strips, class_name, is_missing, is_scalar, show
from fact_views import Column

# Methods that may leave all values as they are: it says nothing when they do.
_SAME_VALUES = {
    "copy", "astype", "reset_index", "set_index", "rename", "sort_values", "sort_index", "tolist", "to_list",
    "to_numpy", "to_frame", "head", "tail", "items", "values", "convert_dtypes", "infer_objects", "round", "reindex",
    "assign", "squeeze", "ravel", "reshape", "unique", "apply", "map", "transform", "get", "drop_duplicates", "dropna",
    "merge", "join", "query", "filter", "loc", "iloc", "to_dict", "asfreq", "cumsum", "cummax", "cummin", "strip",
}  # fmt: skip

# Texts that values which are missing become, for example by map(str).
_MISSING_TEXTS = ("'nan'", "'None'", "'NaT'", "'<NA>'")

# Methods of groups that compute without the missing values, methods that count, and methods that give 0 for no values.
_SKIPPING = ("sum", "mean", "median", "min", "max", "first", "last", "std", "var", "prod", "nunique", "agg")
_COUNTING = ("value_counts", "transform", "cumcount", "rank", "count", "size", "ngroup", "argsort", "argmax", "argmin")
_FILLING = ("sum", "count", "size", "reindex", "unstack", "pivot_table", "crosstab", "asfreq")

# Methods that leave the first values of a column without a result.
_EDGES = ("shift", "diff", "pct_change", "rolling", "mean")


class Change:
    """A column before and after an operation, whose method or function has the given name.

    label is the beginning of the texts. is_grouped tells whether the operation reduces groups or windows, and
    are_series whether it makes a Series from a Series. are_same_rows tells whether each row has its place before and
    after.
    """

    def __init__(
        self,
        probe: Probe,
        name: str,
        label: str,
        before: Column,
        after: Column,
        *,
        is_grouped: bool,
        are_series: bool,
        are_same_rows: bool,
    ) -> None:
        self._probe, self._name, self._label = probe, name, label
        self._before, self._after = before, after
        self._is_grouped, self._are_series, self._are_same_rows = is_grouped, are_series, are_same_rows
        self._has_same_length = before.n == after.n
        self._selects = isinstance(probe.node, ast.Subscript)

    def note(self) -> None:
        """Notes the facts of the change."""
        self._missing()
        if not self._selects:
            self._unsigned()
        if not self._has_same_length:
            self._zeros()
            return
        if self._before.is_number and self._after.is_number:
            self._signed()
            self._cut()
        self._epoch()
        self._strips()
        self._no_effect()
        self._type()

    def _add(self, kind: str, score: int, text: str) -> None:
        self._probe.note(kind, score, self._label + text)

    def _missing(self) -> None:
        before, after = self._before, self._after
        if after.missing > before.missing and not self._selects:
            new = after.missing - before.missing
            is_edge = self._name in _EDGES and new < after.n / 4
            score = 50 if is_edge or self._is_grouped or not self._has_same_length else 68
            text = f"{after.missing} of {after.n} values were missing (NaN) after this and {before.missing} before"
            self._add("missing", score, text + self._lost_values())
        elif after.missing < before.missing and self._are_same_rows and not self._is_grouped:
            text = self._new_values()
            is_text = any(word in text for word in _MISSING_TEXTS)
            missing = f"{before.missing - after.missing} of {before.n} values were missing (NaN)"
            self._add("replaced", 74 if is_text else 64, missing + text)
        elif before.missing and self._name in _SKIPPING and self._is_grouped and after.missing < before.missing:
            self._add("skipped", 64, f"{before.missing} of {before.n} values were missing (NaN) and were skipped")

    def _are_pandas(self) -> bool:
        return hasattr(self._after.values, "isna") and hasattr(self._before.values, "isna")

    def _lost_values(self) -> str:
        """Returns some of the values that are missing after the operation, as the rest of a text."""
        if not self._are_same_rows or not self._are_pandas():
            return ""
        before, after = self._before.values, self._after.values
        turned = before[after.isna().to_numpy() & ~before.isna().to_numpy()]
        return ", such as " + ", ".join(sorted({show(v) for v in turned.iloc[:20]})[:3]) if len(turned) else ""

    def _new_values(self) -> str:
        """Returns some of the values that the missing ones became, as the rest of a text."""
        if self._are_pandas():
            turned = self._after.values[self._before.values.isna().to_numpy() & ~self._after.values.isna().to_numpy()]
            texts = {show(v) for v in turned.iloc[:50]}
        else:
            pairs = zip(itertools.islice(self._before.values, MAX_ITEMS), self._after.values, strict=False)
            texts = {show(after) for before, after in pairs if is_missing(before) and not is_missing(after)}
        return " and became " + ", ".join(sorted(texts)[:3]) if texts else ""

    def _strips(self) -> None:
        strips = Strips(self._probe.node)
        if strips.text:
            for given, made in zip(itertools.islice(self._before.values, MAX_ITEMS), self._after.values, strict=False):
                strips.add(given, made)
            strips.note(self._probe, self._label, self._before.n)

    def _unsigned(self) -> None:
        before, after = self._before, self._after
        if not after.kind.startswith("uint") or after.high is None or before.high is None:
            return
        if float(after.high) > 1e3 * max(1.0, abs(float(before.high))) or float(after.high) > 1e18:
            text = f"the type is unsigned ({after.kind}), and values below 0 wrapped around, up to {show(after.high)}"
            self._add("wrap", 90, text)

    def _signed(self) -> None:
        """Notes integers that are too large for their type, and values that are all the same now."""
        before, after, node = self._before, self._after, self._probe.node
        if after.high is None or before.high is None:
            return
        if (
            after.kind.startswith("int")
            and before.kind.startswith("int")
            and before.low >= 0
            and after.low < 0
            and float(before.high) * 2 > 2.0 ** (int(after.kind[3:] or 64) - 2)
        ):
            self._add(
                "wrap", 88, f"values were too large for {after.kind} and wrapped around, down to {show(after.low)}"
            )
        elif (
            isinstance(node, ast.Call)
            and self._are_same_rows
            and self._name not in _COUNTING
            and not self._name.endswith("_like")
            and before.n > 2
            and after.low == after.high
            and before.low != before.high
            and not after.missing
        ):
            text = f"{before.distinct()} different values ({show(before.low)} to {show(before.high)}) all became "
            self._add("constant", 72, text + show(after.low) + falling_inputs(self._probe))

    def _cut(self) -> None:
        before, after = self._before, self._after
        if self._name != "astype" or not after.kind.startswith("int") or not before.kind.startswith("float"):
            return
        if hasattr(before.values, "dropna") and after.high is not None:
            cut = int((before.values.dropna() % 1 != 0).sum())
            if cut:
                self._add("cut", 66, f"{cut} of {before.n} values lost their fraction")

    def _zeros(self) -> None:
        before, after = self._before, self._after
        if self._name not in _FILLING or not after.is_number or not before.is_number:
            return
        if after.zeros and not before.zeros:
            text = f"{after.zeros} of {after.n} values were 0 after this and none before (no values give 0)"
            self._add("zeros", 66, text)

    def _epoch(self) -> None:
        before, after = self._before, self._after
        if not after.is_time or after.high is None or not before.is_number:
            return
        if after.high.year <= 1971 and abs(before.high) > 1e6:
            text = f"all {after.n} times are between {show(after.low)} and {show(after.high)}: the numbers "
            numbers = f"({show(before.low)} to {show(before.high)})"
            self._add("epoch", 84, text + f"{numbers} were read as nanoseconds (the default unit)")

    def _no_effect(self) -> None:
        before, after, node = self._before.values, self._after.values, self._probe.node
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not is_method or self._name in _SAME_VALUES or not self._are_series or self._before.n < 2:
            return
        if hasattr(after, "equals") and self._are_same_rows and after.dtype == before.dtype and after.equals(before):
            self._add("no effect", 66, f"changed none of {self._before.n} values")

    def _type(self) -> None:
        before, after = self._before.kind, self._after.kind
        if not self._are_series or not self._are_same_rows or self._name.startswith("as"):
            return
        if before and after and before != after:
            self._add("type", 42, f"the type changed: {before} -> {after}")


def falling_inputs(probe: Probe) -> str:
    """Returns the first of the arrays that an expression got whose values fall, as the rest of a text."""
    for _, child in probe.children:
        if probe.has(child) and class_name(child.last) in ("ndarray", "list", "Series") and len(child.last) > 2:
            values = list(child.last)[:MAX_ITEMS]
            if any(not is_scalar(v) or is_missing(v) for v in values):
                continue
            if all(a > b for a, b in zip(values, values[1:], strict=False)):
                ends = f"{show(values[0])} to {show(values[-1])}"
                return f"; {child.code} is in decreasing order ({ends}), not increasing"
    return ""
