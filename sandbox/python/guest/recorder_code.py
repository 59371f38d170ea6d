"""The recorder's descriptions of code objects and of frames.

A code object is described before it runs: the names that it reads and sets, where it returns, and whether its frames
can be read without changing the program.
"""

import builtins
import inspect
import opcode
import sys
import types

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

PROXY = sys.version_info >= (3, 13)  # f_locals is a view that writes nothing back
WRITTEN_BACK = sys.version_info < (3, 12)  # f_locals is a dict that is written back when a hook ends
_SNAPSHOT = (3, 12) <= sys.version_info < (3, 13)  # f_locals is a dict that nothing is written back from
_STORES, _MODULE_STORES, _LOADS, _YIELDS = (
    {opcode.opmap[name] for name in names.split()}
    for names in ("STORE_GLOBAL DELETE_GLOBAL", "STORE_NAME DELETE_NAME", "LOAD_GLOBAL LOAD_NAME", "YIELD_VALUE SEND")
)
_NAMED = _STORES | _MODULE_STORES | _LOADS
_RETURNS = {number for name, number in opcode.opmap.items() if name.startswith("RETURN_")}
_LOAD_GLOBAL, _DELETE_FAST, _EXTENDED = (opcode.opmap[name] for name in ("LOAD_GLOBAL", "DELETE_FAST", "EXTENDED_ARG"))
CLOSURE = "it shares variables with a closure"
LOCALS = "it may keep its own locals()"
_DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "__dict__", "setattr"}
_KEEPERS = {"locals", "vars", "dir", "exec", "eval", "_getframe", "currentframe", "f_locals"}
_BUILTINS = frozenset(vars(builtins))


def _instructions(code):
    """Yields each unit of the code: its offset, the opcode, and the name if it has one. dis takes ten times as long."""
    extended, names, units = 0, code.co_names, code.co_code
    for offset in range(0, len(units), 2):
        op, arg = units[offset], units[offset + 1] | extended
        extended = arg << 8 if op == _EXTENDED else 0
        yield offset, op, names[arg >> 1 if op == _LOAD_GLOBAL else arg] if op in _NAMED else None


class Code:
    """The description of a code object."""

    __slots__ = (
        *("number", "first_line", "module", "task", "unread", "is_simple", "reads_more", "clear_snapshot", "deletes"),
        *("reads", "names_by_line", "returns", "yields", "dynamic"),
    )

    def __init__(self, code, number: bytes, names: dict):
        optimized = code.co_flags & inspect.CO_OPTIMIZED
        self.number, self.first_line = number, code.co_firstlineno
        self.module = str.__str__(code.co_name) == "<module>"
        self.dynamic = not _DYNAMIC.isdisjoint(code.co_names)  # it can set names that are not in it
        self.unread = unreadable(code)
        self.task = bool(code.co_flags & inspect.CO_COROUTINE)
        self.returns, self.yields = set(), set()
        self.clear_snapshot = bool(_SNAPSHOT and optimized)
        self.deletes = not optimized
        stores: set = set()
        reads: set = set()
        names_by_line: dict = {}
        line = code.co_firstlineno
        for (offset, op, name), position in zip(_instructions(code), code.co_positions()):
            line = position[0] or line
            if op in _NAMED:
                if self.module:
                    names_by_line.setdefault(line, set()).add(name)
                if op in _STORES or self.module and op in _MODULE_STORES:
                    stores.add(name)
                elif op in _LOADS:
                    reads.add(name)
            elif op == _DELETE_FAST:
                self.deletes = True
            elif op in _RETURNS:
                self.returns.add(offset)
            elif op in _YIELDS:
                self.yields.add(offset)
        # Its variables need no special care.
        self.is_simple = bool(optimized) and not (self.unread or self.deletes or self.dynamic)
        self.names_by_line = {line: tuple(sorted(each)) for line, each in names_by_line.items()}
        kinds = types.FunctionType, types.BuiltinFunctionType, types.ModuleType
        self.reads = tuple(  # names of the namespace that are compared with each of its lines
            name
            for name in sorted(reads | stores)
            if name in stores
            or (name in names and not any(type(names[name]) is kind for kind in kinds))
            or (name not in names and name not in _BUILTINS)
        )
        self.reads_more = bool(self.reads or self.clear_snapshot)  # more than its own variables


def unreadable(code) -> str:
    """Returns why the variables of a frame can't be read without a change of the program, or ""."""
    if PROXY or str.__str__(code.co_name) == "<module>":
        return ""
    inner = {"__class__", "__classdict__"}  # the cells that super() needs never change
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a class body: its names are a dict of its own
        return "" if set(code.co_cellvars) <= inner else CLOSURE
    if code.co_cellvars or not set(code.co_freevars) <= inner:
        return CLOSURE
    return "" if _KEEPERS.isdisjoint(code.co_names) else LOCALS


class Frame:
    """A frame that runs or is suspended, as it was recorded last."""

    __slots__ = (
        "number",
        "code",
        "thread",
        "parent",
        "line",
        "recorded",
        "suspended",
        "raised",
        "thrown",
        "failure",
        "depth",
    )
    number: int
    code: Code
    thread: int
    parent: int
    line: int
    recorded: dict  # variables by name: a scalar or an Entry
    suspended: bool
    raised: bool  # an exception is recorded and not handled yet
    thrown: bool  # an exception is on its way through the frame
    failure: bytes
    depth: int


def stored_names(codes: list) -> tuple[set, bool]:
    """Returns the names of the namespace that these code objects and the nested ones can set, and whether they can also
    set unknown names."""
    names, anything, waiting = set(), False, list(codes)
    while waiting:
        code = waiting.pop()
        waiting.extend(c for c in code.co_consts if type(c) is types.CodeType)
        anything = anything or not _DYNAMIC.isdisjoint(code.co_names)
        module = str.__str__(code.co_name) == "<module>"
        for _, op, name in _instructions(code):
            if op in _STORES or module and op in _MODULE_STORES:
                names.add(name)
    return names, anything


def has_space(calls: int) -> bool:
    """Tells whether this number of nested calls is still possible here."""
    try:
        return calls == 0 or has_space(calls - 1)
    except RecursionError:
        return False
