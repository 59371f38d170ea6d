"""The recorder's descriptions of code objects and of frames.

A code object is described before it runs: the names that it reads and sets, where it returns, and whether its frames
can be read without changing the program.
"""

import builtins
import dis
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
_FOR_ITERS = {opcode.opmap[name] for name in ("FOR_ITER", "GET_ANEXT") if name in opcode.opmap}
_NO_STEPS = {  # in a comprehension
    opcode.opmap[name]
    for name in (
        *(
            "LIST_APPEND",
            "SET_ADD",
            "MAP_ADD",
            "YIELD_VALUE",
            "SEND",
            "RETURN_VALUE",
            "RETURN_CONST",
            "RETURN_GENERATOR",
        ),
        *("POP_TOP", "RESUME", "GET_ITER", "GET_AITER", "JUMP_BACKWARD", "END_ASYNC_FOR", "BUILD_LIST", "BUILD_SET"),
        *(
            "BUILD_MAP",
            "SWAP",
            "END_FOR",
            "STORE_FAST_MAYBE_NULL",
            "COPY_FREE_VARS",
            "MAKE_CELL",
            "CALL_INTRINSIC_1",
            "RERAISE",
            "END_SEND",
        ),
    )
    if name in opcode.opmap
}
_CLEAR, _LOAD_CONST, _MAKE_FUNCTION, _GET_ITER, _GET_ANEXT, _SWAP, _RERAISE = (
    opcode.opmap.get(name, -1)
    for name in "LOAD_FAST_AND_CLEAR LOAD_CONST MAKE_FUNCTION GET_ITER GET_ANEXT SWAP RERAISE".split()
)
_MAKERS_DIFFER = _CLEAR < 0
_CLOSURES = {opcode.opmap[name] for name in ("LOAD_CLOSURE", "BUILD_TUPLE") if name in opcode.opmap}
_BEGINS = {opcode.opmap[name] for name in ("PRECALL", "CALL", "LOAD_FAST_AND_CLEAR") if name in opcode.opmap}
_RESTORES = {"END_FOR", "POP_TOP", "POP_ITER", "SWAP", "STORE_FAST", "STORE_FAST_MAYBE_NULL", "END_ASYNC_FOR"}
_CONDITIONAL_JUMPS = {number for name, number in opcode.opmap.items() if name.startswith("POP_JUMP")}
_instructions_of = dis.get_instructions
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_SKIPPED = {opcode.opmap[name] for name in ("CACHE", "EXTENDED_ARG") if name in opcode.opmap}
_LOADS_FAST = {number for name, number in opcode.opmap.items() if name.startswith("LOAD_FAST")}
_LOAD_GLOBAL, _DELETE_FAST, _EXTENDED = (opcode.opmap[name] for name in ("LOAD_GLOBAL", "DELETE_FAST", "EXTENDED_ARG"))
_SETS = {number for name, number in opcode.opmap.items() if name.startswith(("STORE_", "DELETE_"))}
_SETS -= {opcode.opmap[name] for name in ("STORE_SUBSCR", "STORE_ATTR", "DELETE_SUBSCR", "DELETE_ATTR")}
_CALLING = "CALL BINARY_ COMPARE_ CONTAINS_ FOR_ITER SEND LOAD_ATTR LOAD_METHOD BEFORE_ GET_ UNPACK_ FORMAT_".split()
_CALLS = {number for name, number in opcode.opmap.items() if name.startswith(tuple(_CALLING))}  # may run user code
_TELLING = _NAMED | _RETURNS | _YIELDS | {_DELETE_FAST, _CLEAR}  # instructions that a description needs
CLOSURE = "it shares variables with a closure"
LOCALS = "it may keep its own locals()"
_DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "__dict__", "setattr"}
_KEEPERS = {"locals", "vars", "dir", "exec", "eval", "_getframe", "currentframe", "f_locals"}
_BUILTINS = frozenset(vars(builtins))


def _lines_of(code) -> list:
    """Returns the line of each unit of the code, or 0. co_positions takes four times as long."""
    lines: list = []
    for start, end, line in code.co_lines():
        lines += [line or 0] * ((end - start) // 2)
    return lines


def _name_at(code, units: bytes, offset: int) -> str:
    """Returns the name that an instruction has. dis takes ten times as long."""
    arg, shift, at = units[offset + 1], 8, offset - 2
    while at >= 0 and units[at] == _EXTENDED:
        arg |= units[at + 1] << shift
        at, shift = at - 2, shift + 8
    return code.co_names[arg >> 1 if units[offset] == _LOAD_GLOBAL else arg]


class Code:
    """The description of a code object."""

    __slots__ = (
        *("number", "first_line", "module", "task", "unread", "is_simple", "reads_more", "clear_snapshot", "deletes"),
        *("reads", "names_by_line", "names_of_turn", "returns", "yields", "dynamic", "comprehensions"),
        *("is_comprehension", "hidden", "sets_before_calls"),
    )

    def __init__(self, code, number: bytes, names: dict):
        optimized = code.co_flags & inspect.CO_OPTIMIZED
        self.number, self.first_line = number, code.co_firstlineno
        self.module = str.__str__(code.co_name) == "<module>"
        self.dynamic = not _DYNAMIC.isdisjoint(code.co_names)  # it can set names that are not in it
        self.unread = unreadable(code)
        self.task = bool(code.co_flags & inspect.CO_COROUTINE)
        self.returns, self.yields = set(), set()
        self.comprehensions = _steps_of_comprehensions(code)
        self.is_comprehension = str.__str__(code.co_name) in _COMPREHENSIONS
        self.hidden = code.co_varnames if self.module else ()
        self.clear_snapshot = bool(_SNAPSHOT and optimized)
        self.deletes = not optimized
        stores: set = set()
        reads: set = set()
        names_by_line: dict = {}
        set_lines: set = set()
        self.sets_before_calls = set()  # lines that set a variable, and then may call a function
        line, units = code.co_firstlineno, code.co_code
        for at, (op, own_line) in enumerate(zip(units[::2], _lines_of(code))):
            line = own_line or line
            if op in _SETS:
                set_lines.add(line)
            elif op in _CALLS and line in set_lines:
                self.sets_before_calls.add(line)
            if op not in _TELLING:
                continue
            offset = 2 * at
            if op in _NAMED:
                name = _name_at(code, units, offset)
                if self.module:
                    names_by_line.setdefault(line, {})[name] = offset  # of its last use
                if op in _STORES or self.module and op in _MODULE_STORES:
                    stores.add(name)
                elif op in _LOADS:
                    reads.add(name)
            elif op in (_DELETE_FAST, _CLEAR):  # _CLEAR: at its end an inlined comprehension deletes its variables
                self.deletes = True
            elif op in _RETURNS:
                self.returns.add(offset)
            elif op in _YIELDS:
                self.yields.add(offset)
        # Its variables need no special care.
        self.is_simple = bool(optimized) and not (self.unread or self.deletes or self.dynamic)
        self.names_by_line = {line: tuple(sorted(each)) for line, each in names_by_line.items()}
        self.names_of_turn = _names_of_turns(code, names_by_line) if self.module else {}
        kinds = types.FunctionType, types.BuiltinFunctionType, types.ModuleType
        self.reads = tuple(  # names of the namespace that are compared with each of its lines
            name
            for name in sorted(reads | stores)
            if name in stores
            or (name in names and not any(type(names[name]) is kind for kind in kinds))
            or (name not in names and name not in _BUILTINS)
        )
        self.reads_more = bool(self.reads or self.clear_snapshot)  # more than its own variables


def _names_of_turns(code, names_by_line: dict) -> dict:
    """Returns the names in the line of each loop that its next turns use, by the offset at which they begin.

    A turn does not evaluate the iterable again. names_by_line has the offset of the last use of each name, by line.
    """
    units, found = code.co_code, {}
    lines = _lines_of(code)
    for loop in range(2, len(units), 2):
        if units[loop] not in _FOR_ITERS:
            continue
        begin = loop
        while units[begin - 2] == _EXTENDED:
            begin -= 2
        if units[begin - 2] == _GET_ITER:  # not of a comprehension
            names = names_by_line.get(lines[loop // 2], {})
            found[begin] = tuple(sorted(name for name, last in names.items() if last > loop))
    return found


def _steps_of_comprehensions(code) -> "dict | None":
    """Returns where the steps of comprehensions in this code differ from its line events: the line by the offset, 0 for
    none, and a tuple for two steps. It returns None if the code has no comprehension.

    Versions of Python have other line events for instructions that are not in the program, such as the one that appends
    an item. Here the steps of a comprehension are the lines of its variables, at each item and at the end, of its
    conditions and of its items. A step in the same line as the one before is left out, so a comprehension in one line
    has no steps of its own, and a generator expression in one line has one.
    """
    is_own = str.__str__(code.co_name) in _COMPREHENSIONS
    units = code.co_code
    found: dict = {}
    ops = units[::2]
    if _MAKERS_DIFFER and any(_is_comprehension(c) for c in code.co_consts):
        for at, op in enumerate(ops[:-1]):
            if op == _LOAD_CONST:
                _leave_out_maker(code, at, ops, found)
    if not is_own and (_MAKERS_DIFFER or _CLEAR not in ops):
        return found or None
    lines = _lines_of(code)
    if is_own and len({line for line in lines if line}) < 2:
        return found if code.co_name == "<genexpr>" else dict.fromkeys(range(0, len(units), 2), 0)
    last = len(ops) if is_own else -1  # of the comprehension
    first_loop = is_own
    for at, op in enumerate(ops):
        if op == _CLEAR and not (at and ops[at - 1] == _CLEAR):
            if at < last:
                found[2 * at] = lines[at]
            loop = next((i for i in range(at, len(ops)) if ops[i] in _FOR_ITERS), at)
            begins = ops[at - 1] == _GET_ITER and lines[at - 2] != lines[at - 1] == lines[loop]
            if begins and lines[_next_real(ops, loop)] != lines[loop]:  # the loop begins without an event of its own
                found[2 * at - 2] = lines[loop], lines[_next_real(ops, loop)]
            loop_end, end, behind = _end_of_inlined(code, 2 * at)
            found.update(dict.fromkeys((*range(2 * loop_end, 2 * end, 2), *behind), 0))
            found.update(dict.fromkeys(_clean_up(code, ops, at, end), 0))
            last = max(last, end)
        elif at >= last or op in _SKIPPED:
            continue
        elif op in _FOR_ITERS:
            after = _next_real(ops, at)
            found[2 * at] = found[2 * after] = lines[after]
            first_loop = False
        elif op == _GET_ITER and ops[_next_real(ops, at)] in _BEGINS:
            continue
        elif (
            op in _NO_STEPS
            or first_loop
            and op in _LOADS_FAST
            or op in _CONDITIONAL_JUMPS
            and lines[_next_real(ops, at)] != lines[at]
        ):
            found.setdefault(2 * at, 0)
    if is_own:  # it begins with its first loop, which has no event of its own in some versions
        loop = next((at for at, op in enumerate(ops) if op in _FOR_ITERS), 0)
        first = found[2 * loop] if ops[loop] != _GET_ANEXT else 0
        found.update((2 * at, first) for at in range(loop) if first == 0 or not found.get(2 * at, 1))
    return found


def _is_comprehension(value) -> bool:
    return type(value) is types.CodeType and value.co_name in _COMPREHENSIONS


def _leave_out_maker(code, at: int, ops: bytes, found: dict) -> None:
    """Leaves out that Python 3.11 makes a comprehension's function before it evaluates an iterable in another line."""
    if ops[at + 1] != _MAKE_FUNCTION and ops[at + 1] != _LOAD_CONST:
        return
    constant = code.co_consts[code.co_code[2 * at + 1]]
    if not _is_comprehension(constant) or constant.co_name == "<genexpr>":
        return
    lines = _lines_of(code)
    after = next((i for i in range(at + 1, len(ops)) if ops[i] not in _SKIPPED and lines[i] != lines[at]), 0)
    if after and ops.find(_GET_ITER, at) > after:
        found[2 * at] = 0
        while at and ops[at - 1] in _CLOSURES and lines[at - 1] == lines[at]:
            at -= 1
            found[2 * at] = 0


def _next_real(ops: bytes, at: int) -> int:
    return next(i for i in range(at + 1, len(ops)) if ops[i] not in _SKIPPED)


def _clean_up(code, ops: bytes, at: int, end: int):
    """Yields the offsets that run after an exception in a comprehension that Python has inlined."""
    for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
        if 2 * at <= entry.start < 2 * end and ops[entry.target // 2] == _SWAP:
            yield from range(entry.target, 2 * ops.find(_RERAISE, entry.target // 2) + 2, 2)


def _end_of_inlined(code, offset: int) -> tuple[int, int, list]:
    """Returns where a comprehension that Python has inlined, and that begins at an offset, ends: the numbers of the
    first units behind the loop and behind the end. If the end jumps, the offsets of what follows the jump come last."""
    cleared, until, end, behind = 0, 0, 0, []
    loop_end = 0
    for i in _instructions_of(code):
        if i.offset < offset:
            continue
        if not until:
            cleared += i.opcode == _CLEAR
            if i.opcode in _FOR_ITERS:
                until = i.argval if i.opname == "FOR_ITER" else i.offset + 2
                loop_end = until // 2
        elif i.offset >= until:
            if i.opname == "JUMP_FORWARD" and not end:  # Python 3.13 may have the clean-up here
                end, until = i.offset // 2 + 1, i.argval
                continue
            cleared -= i.opname.startswith("STORE_FAST")
            if end:
                behind.append(i.offset)
            if cleared <= 0 or i.opname not in _RESTORES:
                return loop_end, end or i.offset // 2 + (cleared <= 0), behind
    size = len(code.co_code) // 2
    return loop_end or size, end or size, behind


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
        "has_steps",
        "turn",
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
    has_steps: bool
    turn: int  # the offset at which the line began, if a further turn of a loop of the module begins there, or -1


def stored_names(codes: list) -> tuple[set, bool]:
    """Returns the names of the namespace that these code objects and the nested ones can set, and whether they can also
    set unknown names."""
    names: set = set()
    anything, waiting = False, list(codes)
    while waiting:
        code = waiting.pop()
        waiting.extend(c for c in code.co_consts if type(c) is types.CodeType)
        anything = anything or not _DYNAMIC.isdisjoint(code.co_names)
        module = str.__str__(code.co_name) == "<module>"
        wanted = _STORES | _MODULE_STORES if module else _STORES
        units = code.co_code
        names.update(_name_at(code, units, 2 * at) for at, op in enumerate(units[::2]) if op in wanted)
    return names, anything


def has_space(calls: int) -> bool:
    """Tells whether this number of nested calls is still possible here."""
    try:
        return calls == 0 or has_space(calls - 1)
    except RecursionError:
        return False
