"""The values that a trace looks at, and what it notes of them."""

import ast
import math
import operator
import typing

import fact_values
import library_values
import rows
from fact_values import module, package_of

HOOK = "__glasshouse_cell__"  # the name of the function that the trace calls
CONTAINERS = (list, tuple, rows.Rows, *fact_values.DICTS)
MAX_TEXT_CHARS = 80  # of a value in an answer

_TABLES = {"DataFrame", "Series", "ndarray"}
_kinds: dict[int, tuple[type, bool]] = {}  # whether the values of a class are tables, by its ID


OPERATORS: dict = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip


class Ends(Exception):
    """The origin of a value cannot be followed further. The text says why."""


class Split(Exception):
    """Cells have several origins: they are to be followed in the given parts."""

    def __init__(self, parts: list) -> None:
        super().__init__()
        self.parts = parts


class Expression:
    """One expression or assignment of the code."""

    __slots__ = ("number", "node", "kind", "code", "parts", "binds", "stores", "key", "path", "returns", "latest",
                 "is_receiver", "is_element", "calls", "statement", "alias",
                 "aliases", "parent", "times", "is_pure", "is_idle")  # fmt: skip

    def __init__(self, number: int, node, kind: str, code: str) -> None:
        self.number, self.node, self.kind, self.code = number, node, kind, code
        self.parts: list = []  # its parts with their roles: an Expression, or a tuple as _operand returns it
        self.binds: list[tuple[str, tuple]] = []  # variables that get its value, or a part of its value
        self.stores: list[Expression] = []  # assignments that follow
        self.key: typing.Any = None  # of an assignment to an element
        self.path: tuple = ()  # of an assignment of a part of the value
        self.returns = ""  # the function whose result it is, or whose parameters
        self.latest: typing.Any = None  # the last event
        self.is_receiver = self.is_element = False
        self.calls: list[Expression] | None = None  # of the function
        self.statement: typing.Any = None
        self.parent: tuple = (None, "")  # the expression or assignment that it is a part of, with its role
        self.times = 0
        self.is_idle = False  # it was evaluated too often, and its values change nothing
        self.is_pure: bool | None = None  # of a call: it changes no argument
        self.alias = ""  # of a name: that under which the variable is bound
        self.aliases: dict[str, str] = {}  # of the variables of a comprehension

    @property
    def line(self) -> int:
        """Returns the line of the code."""
        return (self.statement or self.node).lineno


def expressions_of(found) -> typing.Iterator[Expression]:
    """Returns the expressions in a part of an expression."""
    if isinstance(found, Expression):
        yield found
    elif isinstance(found, tuple) and found[0] in ("tuple", "slice"):
        for each in found[1]:
            yield from expressions_of(each)


class Event:
    """One evaluation of an expression, or one change."""

    __slots__ = ("n", "expression", "kind", "value", "parts", "key", "thing", "turns", "keys", "turn", "source", "path",
                 "size", "is_change", "is_first", "before", "after", "container")  # fmt: skip

    def __init__(self, n: int, expression: Expression) -> None:
        self.n, self.expression, self.kind = n, expression, expression.kind
        self.value: typing.Any = None  # or a copy
        self.parts: list[Event | None] = []
        self.key: dict | None = None  # the events of the expressions in a subscript
        self.thing: typing.Any = None
        self.turns: list[Event] = []  # of a comprehension: the events of its elements
        self.keys: list[Event] = []
        self.turn = 0  # of a loop; of what is looped over: the number of turns
        self.source: Event | None = None  # what the value is
        self.path: tuple = ()
        self.size = 0  # of a list; of another object, its ID
        self.is_change = self.is_first = self.container = False
        self.before: typing.Any = 0
        self.after: typing.Any = None
        expression.latest = self

    def part(self, *roles: str) -> "Event | None":
        """Returns the event of the first part with one of some roles."""
        for (role, _), event in zip(self.expression.parts, self.parts):
            if role in roles:
                return event
        return None

    def operand(self, n: int):
        """Returns the value of a part. It raises Ends if that is not known."""
        return self.operand_of(self.expression.parts[n][1], self.parts[n] if n < len(self.parts) else None)

    def operand_of(self, each, event: "Event | None" = None):
        """Returns the value of a part of the expression. It raises Ends if that is not known."""
        if isinstance(each, Expression):
            event = event if event is not None else (self.key or {}).get(each.number)
            if event is None:
                raise Ends(f"{each.code} is not known")
            value = event.value
            if value is fact_values.OPAQUE:
                raise Ends(f"{each.code} is an object of the program")
            if value is None and event.thing is not None:
                raise Ends(f"{each.code} was too large to keep")
            return value
        if each is None:
            raise Ends("a part of it is not known")
        what, found = each
        if what == "const":
            return found
        if what == "tuple":
            return tuple(self.operand_of(part) for part in found)
        if what == "slice":
            return slice(*(self.operand_of(part) for part in found))
        raise Ends(f"{found} is not followed")


class Cells:
    """Some cells of a table: positions of rows, and one column by its position. Of a Series, an index or an array the
    column is None; the rows of an array count in the order of C. INDEX and a level stand for labels of an index."""

    __slots__ = ("rows", "column")

    def __init__(self, positions, column=None) -> None:
        self.rows: tuple = tuple(map(int, positions))
        self.column = column

    def key(self) -> tuple:
        """Returns what distinguishes the cells."""
        return self.rows, self.column


INDEX = "index"


class Found:
    """What made some cells: a step of an answer."""

    __slots__ = ("event", "what", "parts", "rows", "labels", "cells", "of", "ends", "side", "code")

    def __init__(self, event: Event, what: str = "") -> None:
        self.event, self.what = event, what
        self.code = event.expression.code
        self.parts: list[tuple[Event | None, typing.Any]] = []  # the cells before
        self.rows: list[int] = []
        self.labels: list[str] = []  # of the rows
        self.cells: list[dict] = []
        self.of: int | None = None  # the rows of the table
        self.ends = ""
        self.side: typing.Any = None  # the table, of several, that the rows are of


def is_simple(value) -> bool:
    """Tells whether a value is a scalar of Python that needs no copy."""
    kind = type(value)
    return kind is int or kind is float or kind is str or kind is bool or value is None


def is_table(value) -> bool:
    """Tells whether a value is a DataFrame, a Series or an array, and not of a class of the program."""
    kind = type(value)
    known = _kinds.get(id(kind))
    if known is None or known[0] is not kind:
        found = package_of(value) in ("numpy", "pandas") and kind.__name__ in _TABLES or is_frame_of_query(value)
        known = _kinds[id(kind)] = kind, found
    return known[1]


def is_frame_of_query(value) -> bool:
    """Tells whether a value is the result of db_frame."""
    return any(type(value) is each for each in library_values.OWN_FRAMES)


def is_array(value) -> bool:
    """Tells whether a value is an array of numpy."""
    return type(value).__name__ == "ndarray" and package_of(value) == "numpy"


def is_frame(value) -> bool:
    """Tells whether a value is a DataFrame."""
    return type(value).__name__ == "DataFrame" and package_of(value) == "pandas" or is_frame_of_query(value)


def is_series(value) -> bool:
    """Tells whether a value is a Series."""
    return type(value).__name__ == "Series" and package_of(value) == "pandas"


def is_dict(value) -> bool:
    """Tells whether a value is a dict, and not of a class of the program."""
    return fact_values.is_dict(value)


def text_of(value) -> str:
    """Returns the text of a value in an answer, without code of the program."""
    text = fact_values.show(value)
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 3] + "..."


def same(left, right) -> bool:
    """Tells whether two scalars are equal. Values that are missing are equal."""
    if left is right:
        return True
    if not fact_values.is_scalar(left) or not fact_values.is_scalar(right):
        return False
    if fact_values.is_missing(left) or fact_values.is_missing(right):
        return fact_values.is_missing(left) and fact_values.is_missing(right)
    try:
        return bool(left == right)
    except Exception:
        return False


def close(left, right) -> bool:
    """Tells whether two results are equal up to rounding."""
    if same(left, right):
        return True
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-9, abs_tol=1e-12)
    except (TypeError, ValueError, OverflowError):
        return False


def pandas() -> typing.Any:
    """Returns the module pandas."""
    return module("pandas")


def numpy() -> typing.Any:
    """Returns the module numpy."""
    return module("numpy")


def short(value) -> str:
    """Returns a value for the text of a step."""
    text = text_of(value)
    return text if len(text) <= 40 else text[:37] + "..."


def cell(value, row="", column="") -> dict:
    """Returns a cell of an answer."""
    return {"row": str(row), "column": str(column), "value": text_of(value)}
