"""What the recorder knows of code objects before they run, which names they read and
set, where they return, and whether their frames can be read without changing the
program; and of the frames that run.
"""

import builtins
import inspect
import opcode
import sys
import types

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

PROXY = sys.version_info >= (3, 13)  # f_locals is a view that writes nothing back
WRITTEN_BACK = sys.version_info < (3, 12)  # f_locals is a dict that is written back when a hook ends
_CLEARED = (3, 12) <= sys.version_info < (3, 13)  # f_locals is a dict that nothing writes back from
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
    """Each unit of the code: where it is, the opcode, and the name where it has one. What dis tells takes ten times as long."""
    more, names, units = 0, code.co_names, code.co_code
    for offset in range(0, len(units), 2):
        op, arg = units[offset], units[offset + 1] | more
        more = arg << 8 if op == _EXTENDED else 0
        yield offset, op, names[arg >> 1 if op == _LOAD_GLOBAL else arg] if op in _NAMED else None


class Code:
    """What is known of one code object."""

    __slots__ = (
        *("number", "first", "module", "task", "unread", "plain", "more", "snapshot", "deletes"),
        *("reads", "stores", "named", "returns", "yields"),
    )

    def __init__(self, code, number: bytes, names: dict):
        self.number, self.first = number, code.co_firstlineno
        self.module = code.co_name == "<module>"
        self.unread = unreadable(code)
        self.task = bool(code.co_flags & inspect.CO_COROUTINE)
        self.stores, reads = set(), set()
        self.returns, self.yields = set(), set()
        self.snapshot = bool(_CLEARED and code.co_flags & inspect.CO_OPTIMIZED)
        self.deletes = not code.co_flags & inspect.CO_OPTIMIZED
        line = code.co_firstlineno
        named: dict = {}
        for (offset, op, name), position in zip(_instructions(code), code.co_positions()):
            line = position[0] or line
            if op in _NAMED:
                if self.module:
                    named.setdefault(line, set()).add(name)
                if op in _STORES or self.module and op in _MODULE_STORES:
                    self.stores.add(name)
                elif op in _LOADS:
                    reads.add(name)
            elif op == _DELETE_FAST:
                self.deletes = True
            elif op in _RETURNS:
                self.returns.add(offset)
            elif op in _YIELDS:
                self.yields.add(offset)
        self.plain = bool(code.co_flags & inspect.CO_OPTIMIZED) and not (self.unread or self.deletes)  # its variables are simply read
        self.named = {line: tuple(sorted(each)) for line, each in named.items()}  # names of the namespace in a line
        kinds = types.FunctionType, types.BuiltinFunctionType, types.ModuleType
        self.reads = tuple(
            name
            for name in sorted(reads | self.stores)
            if name in self.stores or (name in names and type(names[name]) not in kinds) or name not in names and name not in _BUILTINS
        )
        self.more = bool(self.reads or self.snapshot)  # than its own variables is looked at


def unreadable(code) -> str:
    """Why the frame's variables can't be read without changing the program, or ""."""
    if PROXY or code.co_name == "<module>":
        return ""
    inner = {"__class__", "__classdict__"}  # the cells that super() needs never change
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a class's body: its names are a dict of its own
        return "" if set(code.co_cellvars) <= inner else CLOSURE
    if code.co_cellvars or not set(code.co_freevars) <= inner:
        return CLOSURE
    return "" if _KEEPERS.isdisjoint(code.co_names) else LOCALS


class Frame:
    """A frame that runs or is suspended, as it was recorded last."""

    __slots__ = ("number", "code", "lane", "parent", "line", "seen", "suspended", "raised", "thrown", "failure", "depth")
    number: int
    code: Code
    lane: int
    parent: int
    line: int
    seen: dict
    suspended: bool
    raised: bool
    thrown: bool
    failure: bytes
    depth: int


def sets(codes: list) -> tuple[set, bool]:
    """The names of the namespace that these codes, and those within them, can set; and
    whether they could set any other."""
    names, anything, waiting = set(), False, list(codes)
    while waiting:
        code = waiting.pop()
        waiting.extend(c for c in code.co_consts if type(c) is types.CodeType)
        anything = anything or not _DYNAMIC.isdisjoint(code.co_names)
        module = code.co_name == "<module>"
        for _, op, name in _instructions(code):
            if op in _STORES or module and op in _MODULE_STORES:
                names.add(name)
    return names, anything


def has_room(frames: int) -> bool:
    """Whether so many calls would still be possible here."""
    try:
        return frames == 0 or has_room(frames - 1)
    except RecursionError:
        return False
