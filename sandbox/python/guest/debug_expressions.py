"""Compiles and runs what a person writes into the debugger: conditions, log messages, and code of the console.

It is the user's code. It sees the variables of a frame as a function that was written there would: also in a lambda, a
comprehension or a def, which Python would look up among the global names only.
"""

import ast
import builtins
import dis
import inspect
import re
import types

import lookup
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

FILE = "<execution expression>"  # starts like the file of user code, so an interrupt ends an expression
MAX_VALUE = 1000  # characters of a value
MAX_MESSAGE = 10_000  # characters of a log message
MAX_TURNS = 1000  # of code that awaits: it gives way to other tasks so often, which do not run meanwhile
MAX_FIELD_ENDS = 50  # braces that may end a field of a log message
MAX_WRONG_ENDS = 500  # braces of a log message that end no field: each is compiled in several ways

_compile, _eval = compile, eval
_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_FAILURES = SyntaxError, ValueError, RecursionError, MemoryError  # of compile
_MISSING = object()
_HIT = re.compile(r"\s*(==|>=|<=|>|<|%)?\s*(\d+)\s*")
_HITS = {
    "==": int.__eq__,
    ">=": int.__ge__,
    "<=": int.__le__,
    ">": int.__gt__,
    "<": int.__lt__,
    "%": lambda hits, n: n > 0 and hits % n == 0,
}


class Expression:
    """An expression that is evaluated in several frames: a private name depends on the class that the frame is in."""

    def __init__(self, text: str):
        self._text = text
        self._codes = {"": compile_expression(text)}

    def code_for(self, frame):
        owner = class_of(frame.f_code) if "__" in self._text else ""
        if owner not in self._codes:
            self._codes[owner] = compile_expression(self._text, owner)
        return self._codes[owner]


class LineBreakpoint:
    """A breakpoint made of {"id", "line", "condition", "hits", "log"}."""

    def __init__(self, given: dict, hits: int):
        self.id, self.line, self.hits = given["id"], given["line"], hits
        condition = (given.get("condition") or "").strip()
        self.error, self.condition = condition_error(condition), None
        if condition and not self.error:
            self.condition = Expression(condition)
        found = _HIT.fullmatch(given.get("hits") or "")
        self.hit_test = (_HITS[found[1] or "=="], int(found[2])) if found else None
        self.log = LogMessage(given["log"]) if given.get("log") else None

    def wants_hit(self) -> bool:
        """Counts a hit, and tells whether the program stops at it."""
        self.hits += 1
        return self.hit_test is None or self.hit_test[0](self.hits, self.hit_test[1])


def condition_error(condition: str) -> str:
    """Returns why a text is not a condition, or ""."""
    try:
        if condition.strip():
            _compile(condition.strip(), FILE, "eval")
    except _FAILURES as error:
        return f"the condition is not an expression: {_failure(error)}"
    return ""


def _failure(error: Exception) -> str:
    text = error.msg if isinstance(error, SyntaxError) and type(error.msg) is str else ""
    return values.name_of(type(error)) + (f": {text[:MAX_VALUE]}" if text else "")


class LogMessage:
    """The message of a log point, with fields in braces as in an f-string: {x}, {x!r}, {x:.2f}, {x = }, and {{}}."""

    def __init__(self, text: str):
        self._parts: list = []  # texts, expressions, and those of f-strings as a tuple
        text, literal = text[:MAX_MESSAGE], ""
        at, wrong_ends = 0, 0
        while at < len(text):
            pair, brace = text[at : at + 2], text[at]
            if pair in ("{{", "}}"):
                literal, at = literal + brace, at + 2
            elif brace == "{" and "}" in text[at:]:
                part, at, tried = _field(text, at, min(MAX_FIELD_ENDS, MAX_WRONG_ENDS - wrong_ends))
                wrong_ends += tried
                self._parts += [literal, part]
                literal = ""
            else:
                literal, at = literal + brace, at + 1
        self._parts.append(literal)

    def text(self, evaluate) -> str:
        """Returns the message. evaluate(expression) evaluates an Expression in the frame of the log point."""
        out = ""
        for part in self._parts:
            if type(part) is str:
                out += part
                continue
            try:
                value = evaluate(part[0] if type(part) is tuple else part)
                most = MAX_MESSAGE if type(part) is tuple else MAX_VALUE
                out += value[:most] if type(value) is str else values.preview(value, MAX_VALUE)
            except Exception as error:
                out += f"<{values.name_of(type(error))}>"
            if len(out) > MAX_MESSAGE:
                break
        return out[:MAX_MESSAGE]


def _field(text: str, start: int, most: int):
    """Returns the field that begins at a brace, as an Expression, where the text goes on, and how many braces do not
    end it. It ends at the first of at most so many with which it is an expression or a field of an f-string."""
    end, tried = start, 0
    while tried < most and (end := text.find("}", end + 1)) >= 0:
        field = text[start : end + 1]
        try:
            return Expression(field[1:-1].strip()), end + 1, tried
        except _FAILURES:
            pass
        for quote in ('"""', "'''", '"', "'"):
            try:
                tree = ast.parse(f"f{quote}{field}{quote}", FILE, "eval")
                if len(tree.body.values) <= 2 and isinstance(tree.body.values[-1], ast.FormattedValue):  # type: ignore
                    return (Expression(f"f{quote}{field}{quote}"),), end + 1, tried
            except (*_FAILURES, AttributeError, IndexError):
                pass
        tried += 1
    end = text.index("}", start)
    return "<SyntaxError>", end + 1, tried


def compile_expression(text: str, owner: str = ""):
    """Compiles an expression for the frames of a class, or with "" for those outside of classes."""
    return _compile(_in_class(text, "eval", owner, 0), FILE, "eval")


def compile_code(text: str, statements: bool, owner: str = ""):
    """Compiles an expression, or also statements. Returns the code, and whether it is an expression."""
    try:
        return _compile(_in_class(text, "eval", owner, _FLAGS), FILE, "eval", _FLAGS, True), True
    except SyntaxError:
        if not statements:
            raise
    return _compile(_in_class(text, "exec", owner, _FLAGS), FILE, "exec", _FLAGS, True), False


def class_of(code) -> str:
    """Returns the innermost class around the text of a code object, or "". Python tells it in the qualified name."""
    names = code.co_qualname.split(".")
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return "" if code.co_name == "<module>" else names[-1]  # the body of a class
    while len(names) > 2 and names[-2] == "<locals>":
        del names[-2:]  # a function in a function
    return names[-2] if len(names) > 1 else ""


def is_generated(frame) -> bool:
    """Tells whether the program has made the code of a frame while it ran, as with exec. Code of a module that was
    imported has the module's __spec__ among its globals."""
    return lookup.find(frame.f_globals, "__spec__") is None


def mangled(name: str, owner: str) -> str:
    """Returns the name that Python gives to a private name in a class."""
    owner = owner.lstrip("_")
    is_private = owner and name.startswith("__") and not name.endswith("__")
    return f"_{owner}{name}" if is_private else name


def _in_class(text: str, mode: str, owner: str, flags: int):
    """Returns text as compile takes it, with private names as in a class."""
    if not owner or "__" not in text:
        return text
    tree = _compile(text, FILE, mode, flags | ast.PyCF_ONLY_AST, True)
    return _Mangler(owner).visit(tree)


class _Mangler(ast.NodeTransformer):
    """Replaces the private names of a tree as the compiler does in a class."""

    _FIELDS = "id", "attr", "arg", "name", "asname", "rest"

    def __init__(self, owner: str):
        self._owner = owner

    def generic_visit(self, node):
        is_keyword = isinstance(node, ast.keyword)
        for field in () if is_keyword or isinstance(node, ast.alias) else self._FIELDS:
            name = getattr(node, field, None)
            if type(name) is str:
                setattr(node, field, mangled(name, self._owner))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [mangled(name, self._owner) for name in node.names]
        return super().generic_visit(node)

    def visit_ClassDef(self, node):
        node.name = mangled(node.name, self._owner)
        for field in ("decorator_list", "bases", "keywords"):
            setattr(node, field, [self.visit(each) for each in getattr(node, field)])
        return node  # its body is in a class of its own


def is_unbound(error: NameError, code, bound: set) -> bool:
    """Tells whether an expression failed because a name of the function with this code, or one of the global names in
    bound, has no value yet or no longer."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_code.co_filename != FILE:
        return False  # raised by a function that the expression called
    name = error.name
    if type(name) is not str:
        return False
    return name in bound or name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars


def bound_names(codes: list) -> set:
    """Returns the global names that the code of a program binds."""
    found: set = set()
    waiting = [(code, True) for code in codes]
    while waiting:
        code, is_module = waiting.pop()
        stores = ("STORE_NAME", "STORE_GLOBAL") if is_module else ("STORE_GLOBAL",)
        found.update(op.argval for op in dis.get_instructions(code) if op.opname in stores)
        waiting += [(const, False) for const in code.co_consts if type(const) is types.CodeType]
    return found


def value(code, names: dict, local: dict):
    """Returns the value of an expression, which sets no variable of the frame."""
    return _eval(code, names) if local is names else _eval(code, {**names, **local})


def run(code, names: dict, local: dict, is_module: bool, assign):
    """Runs code with the global and the local names of a frame, and returns its value.

    The names that it sets are global ones if the code says so, or if the frame is a module's; otherwise they are set in
    local, and assign(name, value) is called for them.
    """
    if local is names:
        return _result(code, names)
    scope = {**names, **local}
    before = dict(scope)
    try:
        return _result(code, scope)
    finally:
        declared = _global_names(code)
        for name, new in list(scope.items()):
            if before.get(name, _MISSING) is new or name == "__builtins__":
                continue
            if name not in local and (is_module or name in declared):
                names[name] = new
            else:
                local[name] = new
                assign(name, new)
        for name in before.keys() - scope.keys():
            (local if name in local else names if is_module or name in declared else {}).pop(name, None)


def _result(code, scope: dict):
    """Runs code. If it awaits, it is driven to its end here, because the event loop stands still with the program."""
    found = _eval(code, scope)
    if not code.co_flags & inspect.CO_COROUTINE:
        return found
    for _ in range(MAX_TURNS):
        try:
            waits_for = found.send(None)
        except StopIteration as end:
            return end.value
        if waits_for is not None:
            break
    found.close()
    raise RuntimeError("this await waits for the event loop, which stands still while the program is stopped")


def _global_names(code) -> set:
    """Returns the names that code, or a function in it, declares as global and sets."""
    found: set = set()
    waiting = [code]
    while waiting:
        each = waiting.pop()
        found.update(op.argval for op in dis.get_instructions(each) if op.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"))
        waiting += [const for const in each.co_consts if type(const) is types.CodeType]
    return found
