"""What the recorder knows of code objects before they run, which names they read and
set, where they return, and whether their frames can be read without changing the
program; and of the frames that run.
"""

import builtins
import dis
import inspect
import sys
import types

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

PROXY = sys.version_info >= (3, 13)  # f_locals is a view that writes nothing back
WRITTEN_BACK = sys.version_info < (3, 12)  # f_locals is a dict that is written back when a hook ends
_CLEARED = (3, 12) <= sys.version_info < (3, 13)  # f_locals is a dict that nothing writes back from
_NAMED = {"LOAD_NAME", "STORE_NAME", "DELETE_NAME", "LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"}
CLOSURE = "it shares variables with a closure"
LOCALS = "it may keep its own locals()"
_DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "__dict__", "setattr"}
_KEEPERS = {"locals", "vars", "dir", "exec", "eval", "_getframe", "currentframe", "f_locals"}
_BUILTINS = frozenset(vars(builtins))


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
        for op in dis.get_instructions(code):
            line = op.positions.lineno or line if op.positions else line
            if op.opname == "DELETE_FAST":
                self.deletes = True
            if self.module and op.opname in _NAMED:
                named.setdefault(line, set()).add(op.argval)
            if op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or self.module and op.opname in ("STORE_NAME", "DELETE_NAME"):
                self.stores.add(op.argval)
            elif op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                reads.add(op.argval)
            elif op.opname.startswith("RETURN_"):
                self.returns.add(op.offset)
            elif op.opname in ("YIELD_VALUE", "SEND"):
                self.yields.add(op.offset)
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
        for op in dis.get_instructions(code):
            if op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or module and op.opname in ("STORE_NAME", "DELETE_NAME"):
                names.add(op.argval)
    return names, anything


def has_room(frames: int) -> bool:
    """Whether so many calls would still be possible here."""
    try:
        return frames == 0 or has_room(frames - 1)
    except RecursionError:
        return False
