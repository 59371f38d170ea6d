"""The trace of a run: which values its expressions had, in which order, and what assigned or changed what.

    trace = Trace(source, path)     # path is the asked value, such as rows[3]["x"]
    tree = trace.instrument(tree)   # calls HOOK with the value of each expression
    ...                             # run it
    trace.end(names)                # where the value came from, as sandbox.Cell

It keeps a copy of each table, and holds no object of the program's own classes. It calls no code of the program, and
reads no clock.
"""

import ast
import builtins
import itertools
import re
import sys
import threading
import types
import typing
import weakref

import cell_paths
import cell_values
import cell_walk
import fact_probes
import fact_tables
import fact_values
import rows
from cell_values import CONTAINERS, HOOK, Event, Expression, is_array, is_dict, is_series, is_simple, is_table

MAX_EVENTS = 120_000  # of a run
MAX_EXPRESSIONS = 4_000
MAX_KEPT = 128 << 20  # bytes of copies of arrays and lists
MAX_CODE_CHARS = 80  # of the text of an expression
MAX_DEPTH = 40  # of expressions in each other

_CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem",
    "add", "discard", "appendleft", "popleft", "fill", "resize", "put", "itemset", "partition", "subtract",
}  # fmt: skip

# Functions that do not change their arguments. Methods of values change their receiver at most.
_PURE = set(
    "abs all any bool bytes dict divmod enumerate filter float format frozenset getattr hasattr hash "
    "hex id int isinstance "
    "issubclass iter len list map max min next oct ord pow print range repr reversed round set slice sorted str sum "
    "tuple type zip db_query db_frame display Counter OrderedDict defaultdict Decimal Fraction date datetime timedelta "
    "sqrt floor ceil mean median".split()
)
_IMPURE_ROOTS = {"random", "heapq", "bisect", "shuffle"}  # of names of modules and functions
_IMPURE_NAMES = {"shuffle", "copyto", "place", "putmask", "put", "put_along_axis", "fill_diagonal", "at", "insort"}

_SKIPPED = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}  # calls that depend on their frame
_INNER_CODE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_LINE_END = re.compile("\r\n|\r|\n")

_frame = sys._getframe
_numbers = itertools.count()


class _Instrument:
    """Wraps the expressions of a program in calls of the hook."""

    def __init__(self, trace: "Trace"):
        self._trace = trace
        self._depth = 0
        self._functions: list[str] = []
        self._classes: list[str] = []  # "" for a function
        self._aliases: list[dict[str, str]] = []  # of the variables of the comprehensions around
        self.defined: set[str] = set()

    # -- statements

    def block(self, body: list) -> list:
        out: list = []
        for node in body:
            if isinstance(node, ast.stmt):
                out += self._statement(node)
            else:  # a handler, or a case
                self._patterns(node)
                node.body = self.block(node.body)
                out.append(node)
        return out

    def _patterns(self, node) -> None:
        for each in ast.walk(node.pattern) if isinstance(node, ast.match_case) else ():
            for name in (getattr(each, "name", None), getattr(each, "rest", None)):
                if isinstance(name, str):
                    self._trace.wild.add(name)
        if isinstance(node, ast.ExceptHandler) and node.name:
            self._trace.wild.add(node.name)

    def _statement(self, node: ast.stmt) -> list:
        before: list = []
        after: list = []
        match node:
            case ast.Assign():
                node.value, value = self._forced(node.value)
                for target in node.targets:
                    self._target(target, value)
            case ast.AnnAssign(value=ast.expr()):
                node.value, value = self._forced(typing.cast(ast.expr, node.value))
                self._target(node.target, value)
            case ast.AugAssign():
                self._augmented(node, before, after)
            case ast.Return(value=ast.expr()):
                node.value, value = self._forced(typing.cast(ast.expr, node.value))
                if value is not None and self._functions:
                    value.returns = self._functions[-1]
            case ast.For() | ast.AsyncFor():
                node.iter, source = self._forced(node.iter)
                hook = self._turn(node.target, source)
                body = self.block(node.body)
                node.body = [self._call_statement(hook, node.target), *body] if hook is not None else body
                node.orelse = self.block(node.orelse)
                return [node]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self._function(node)]
            case ast.ClassDef():
                self._classes.append(node.name)
                node.body = self.block(node.body)
                self._classes.pop()
                return [node]
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        self._store(target, None, "del")
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    item.context_expr = self._operand(item.context_expr)[0]
                    self._wild(item.optional_vars)
            case ast.Import() | ast.ImportFrom():
                pass
            case ast.Expr():
                node.value = self._operand(node.value)[0]
            case ast.If() | ast.While():
                node.test = self._operand(node.test)[0]
            case ast.Match():
                node.subject = self._operand(node.subject)[0]
            case ast.Global() | ast.Nonlocal():
                self._trace.shared.update(node.names)
        for field, old in ast.iter_fields(node):
            if isinstance(old, list) and old and isinstance(old[0], (ast.stmt, ast.ExceptHandler, ast.match_case)):
                setattr(node, field, self.block(old))
        return [*before, node, *after]

    def _wild(self, target) -> None:
        """Notes names whose values the trace does not see."""
        for each in ast.walk(target) if target is not None else ():
            if isinstance(each, ast.Name):
                self._trace.wild.add(each.id)

    def _target(self, target: ast.expr, value: "Expression | None", path: tuple = ()) -> None:
        match target:
            case ast.Name():
                if value is None:
                    self._trace.wild.add(target.id)
                else:
                    value.binds.append((target.id, path))
            case ast.Tuple() | ast.List():
                if any(isinstance(each, ast.Starred) for each in target.elts):
                    self._wild(target)
                    return
                for n, each in enumerate(target.elts):
                    self._target(each, value, (*path, n))
            case ast.Subscript():
                self._store(target, value, "store", path)
            case ast.Attribute():
                self._store(target, value, "store", path)

    def _store(self, target, value: "Expression | None", kind: str, path: tuple = ()) -> "Expression | None":
        store = self._trace.add(target, kind)
        if store is None:
            return None
        target.value, container = self._forced(target.value)
        if container is None:
            return None
        last = container
        if isinstance(target, ast.Subscript):
            target.slice, store.key = self._index(target.slice)
            if not isinstance(target.slice, (ast.Slice, ast.Tuple)) and isinstance(store.key, Expression):
                last = store.key
            elif isinstance(target.slice, ast.Tuple) and target.slice.elts:
                wrapped = list(_expressions_of(store.key))
                last = wrapped[-1] if wrapped else container
        else:
            store.key = ("const", target.attr)
        store.parts = [("container", container), ("value", value)]
        container.parent = store, "container"
        store.path = path
        if kind != "augmented":
            last.stores.append(store)
        return store

    def _augmented(self, node: ast.AugAssign, before: list, after: list) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            left, old = self._wrap(load, "name", [])
            before.append(ast.copy_location(ast.Expr(left), node))
            node.value, value = self._forced(node.value)
            load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            new, changed = self._wrap(load, "augmented name", [("left", old), ("right", value)])
            if changed is not None:
                changed.node = changed.statement = node
                changed.code = self._trace.text_of(node)
                changed.binds.append((target.id, ()))
            after.append(ast.copy_location(ast.Expr(new), node))
            return
        store = self._store(target, None, "augmented")
        node.value, value = self._forced(node.value)
        if store is not None and value is not None:
            store.parts[1] = ("value", value)
            store.statement = node
            store.code = self._trace.text_of(node)
            value.stores.append(store)

    def _turn(self, target: ast.expr, source: "Expression | None") -> "Expression | None":
        """Returns the expression that sees the variables of a loop at the begin of each turn."""
        turn = self._trace.add(target, "turn")
        if turn is None or source is None:
            self._wild(target)
            return None
        turn.parts = [("iter", source)]
        self._names(target, turn, ())
        return turn if turn.binds else None

    def _names(self, target: ast.expr, turn: Expression, path: tuple) -> None:
        if isinstance(target, ast.Name):
            turn.binds.append((target.id, path))
        elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in target.elts):
            for n, each in enumerate(target.elts):
                self._names(each, turn, (*path, n))
        else:
            self._wild(target)

    def _call(self, expression: Expression, value: ast.expr, place: ast.AST) -> ast.Call:
        call = ast.Call(ast.Name(HOOK, ast.Load()), [ast.Constant(expression.number), value], [])
        for new in (call, call.func, call.args[0]):
            ast.copy_location(new, place)
        return call

    def _variables(self, names: list, place: ast.AST) -> ast.Tuple:
        loads: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), place) for name, _ in names]
        return ast.copy_location(ast.Tuple(loads, ast.Load()), place)

    def _call_statement(self, hook: Expression, place: ast.AST) -> ast.Expr:
        return ast.copy_location(ast.Expr(self._call(hook, self._variables(hook.binds, place), place)), place)

    def _function(self, node):
        self.defined.add(node.name)
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        begin = self._trace.add(node, "begin")
        self._functions.append(node.name)
        owner = self._classes[-1] if self._classes else ""
        self._classes.append("")
        body = self.block(node.body)
        self._functions.pop()
        self._classes.pop()
        if begin is not None:
            begin.returns, begin.path = node.name, (owner,) if owner else ()
            begin.binds = [(name, (n,)) for n, name in enumerate(names)]
            at = 1 if ast.get_docstring(node, clean=False) is not None else 0
            place = node.body[at] if len(node.body) > at else node.body[-1]
            body = [*body[:at], self._call_statement(begin, place), *body[at:]]
        for each in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs):
            if each is not None:
                self._trace.wild.add(each.arg)
        node.body = body
        return node

    # -- expressions

    def _wrap(self, node: ast.expr, kind: str, parts: list) -> "tuple[ast.expr, Expression | None]":
        expression = self._trace.add(node, kind)
        if expression is None:
            return node, None
        expression.parts = parts
        return self._call(expression, node, node), expression

    def _forced(self, node: ast.expr) -> "tuple[ast.expr, Expression | None]":
        """Wraps an expression, also one that is a constant."""
        new, found = self._operand(node)
        if isinstance(found, Expression):
            return new, found
        if isinstance(node, ast.Starred):
            return new, None
        inner = node
        new, expression = self._wrap(new, "opaque", [])
        if expression is not None:
            expression.node = inner
            if isinstance(found, tuple) and found[0] == "const":
                expression.kind = "const"
        return new, expression

    def _operand(self, node: ast.expr):
        """Wraps an expression. Returns it with its Expression, or ("const", value), or ("unknown", text)."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == fact_probes.HOOK:
            node.args[1], found = self._operand(node.args[1])
            return node, found
        if self._depth > MAX_DEPTH:
            return node, ("unknown", "an expression")
        self._depth += 1
        try:
            return self._expression(node)
        finally:
            self._depth -= 1

    def _expression(self, node: ast.expr):
        parts: list = []

        def part(role: str, old: ast.expr) -> ast.expr:
            new, found = self._operand(old)
            parts.append((role, found))
            return new

        kind = "value"
        match node:
            case ast.Constant():
                return node, ("const", node.value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return node, ("const", -number)
            case ast.Lambda() | ast.Yield() | ast.YieldFrom() | ast.Starred() | ast.JoinedStr():
                return node, ("unknown", type(node).__name__.lower())
            case ast.Name(ctx=ast.Load()):
                wrapped, expression = self._wrap(node, "name", [])
                if expression is None:
                    return node, ("unknown", node.id)
                expression.alias = self._alias(node.id)
                return wrapped, expression
            case ast.NamedExpr():
                node.value, value = self._forced(node.value)
                self._target(node.target, value)
                return node, value if value is not None else ("unknown", "an assignment")
            case ast.Await(value=ast.Call() as call):
                self._arguments(call, part)
            case ast.Attribute(ctx=ast.Load()):
                node.value = part("receiver", node.value)
            case ast.Call():
                if isinstance(node.func, ast.Name) and node.func.id in _SKIPPED:
                    return node, ("unknown", node.func.id)
                self._arguments(node, part)
            case ast.Subscript(ctx=ast.Load()):
                node.value = part("receiver", node.value)
                node.slice, key = self._index(node.slice)
                parts.append(("index", key))
            case ast.BinOp():
                node.left, node.right = part("left", node.left), part("right", node.right)
            case ast.UnaryOp():
                node.operand = part("operand", node.operand)
            case ast.Compare():
                node.left = part("left", node.left)
                node.comparators = [part("right", each) for each in node.comparators]
            case ast.BoolOp():
                node.values = [part("operand", each) for each in node.values]
            case ast.IfExp():
                node.test = part("test", node.test)
                node.body, node.orelse = part("branch", node.body), part("branch", node.orelse)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self._generators(node, parts)
                node.elt, element = self._forced(node.elt)
                self._aliases.pop()
                parts.append(("element", element))
            case ast.DictComp():
                self._generators(node, parts)
                node.key, key = self._forced(node.key)
                node.value, element = self._forced(node.value)
                self._aliases.pop()
                parts += [("key", key), ("element", element)]
            case ast.List() | ast.Tuple() | ast.Set() if not any(isinstance(e, ast.Starred) for e in node.elts):
                if len(node.elts) > 200:
                    return node, ("unknown", "a long display")
                node.elts = [part("item", each) for each in node.elts]
            case ast.Dict() if None not in node.keys and len(node.keys) <= 200:
                for n, each in enumerate(node.keys):
                    assert each is not None
                    node.keys[n] = part("key", each)
                    node.values[n] = part("item", node.values[n])
            case _:
                return node, ("unknown", type(node).__name__.lower())
        wrapped, expression = self._wrap(node, kind, parts)
        for role, each in parts if expression is not None else ():
            if isinstance(each, Expression):
                each.parent = expression, role
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        for role, each in parts:
            if role == "receiver" and isinstance(each, Expression):
                each.is_receiver = isinstance(node, ast.Subscript) or name in _CHANGING - {"sort", "remove"}
                each.is_receiver |= name == "get"
        if expression is None:
            return node, ("unknown", "an expression beyond the first ones")
        for role, each in parts:
            if (
                role in ("element", "key")
                and isinstance(each, Expression)
                and "Comp" in type(node).__name__ + ("Comp" if isinstance(node, ast.GeneratorExp) else "")
            ):
                each.is_element = True
        return wrapped, expression

    def _arguments(self, node: ast.Call, part) -> None:
        if isinstance(node.func, ast.Attribute):
            node.func.value = part("receiver", node.func.value)
        node.args = [part("argument", each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = part(keyword.arg or "**", keyword.value)

    def _index(self, node: ast.expr):
        """Returns a subscript with what it is made of: an Expression, ("const", value), ("tuple", parts), ("slice",
        parts) or ("unknown", text)."""
        match node:
            case ast.Tuple():
                found = []
                for n, each in enumerate(node.elts):
                    node.elts[n], inner = self._index(each)
                    found.append(inner)
                return node, ("tuple", found)
            case ast.Slice():
                bounds: list = []
                for field in ("lower", "upper", "step"):
                    bound = getattr(node, field)
                    if bound is None:
                        bounds.append(("const", None))
                        continue
                    new, inner = self._operand(bound)
                    setattr(node, field, new)
                    bounds.append(inner)
                return node, ("slice", bounds)
        return self._operand(node)

    def _alias(self, name: str) -> str:
        """Returns the name under which a variable is bound: that of a comprehension has its own."""
        return next((each[name] for each in reversed(self._aliases) if name in each), name)

    def _generators(self, node, parts: list) -> None:
        aliases: dict[str, str] = {}
        for n, generator in enumerate(node.generators):
            generator.iter, source = self._forced(generator.iter)
            if n == 0:  # it is evaluated outside
                self._aliases.append(aliases)
            parts.append(("iter", source))
            hook = self._turn(generator.target, source)
            for name in ast.walk(generator.target):
                if isinstance(name, ast.Name):
                    aliases[name.id] = f"{name.id} of {hook.number if hook is not None else 0}"
            if hook is not None:
                hook.aliases = aliases
            tests = [self._operand(each)[0] for each in generator.ifs]
            if hook is not None:  # the tuple of the variables is true
                place = generator.target
                tests.insert(0, self._call(hook, self._variables(hook.binds, place), place))
            generator.ifs = tests


def unhooked(node: ast.expr) -> ast.expr:
    """Returns an expression without the calls of the hooks around it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (HOOK, fact_probes.HOOK):
        node = node.args[1]
    return node


def _expressions_of(found) -> typing.Iterator[Expression]:
    if isinstance(found, Expression):
        yield found
    elif isinstance(found, tuple) and found[0] in ("tuple", "slice"):
        for each in found[1]:
            yield from _expressions_of(each)


class Thing:
    """A list, dict, array or table, with the events that made and changed it."""

    __slots__ = ("ref", "history", "kept", "kept_at", "kind")

    def __init__(self, value, *, is_weak: bool = False) -> None:
        self.kind = type(value)
        if is_table(value) and (not is_array(value) or is_weak):  # its copies are kept
            self.ref: typing.Any = weakref.ref(value)
        else:
            self.ref = (lambda held: lambda: held)(value)
        self.history: list[Event] = []
        self.kept: typing.Any = None
        self.kept_at = -1


class Trace:
    """The trace of one run."""

    def __init__(self, source: str, path: str):
        self.path = path
        self._lines = [line.encode() for line in _LINE_END.split(source)]
        self._expressions: dict[int, Expression] = {}
        self.wild: set[str] = set()  # names that the trace does not see all assignments of
        self.shared: set[str] = set()  # names of global and nonlocal statements
        self.defined: set[str] = set()
        self.things: dict[int, Thing] = {}
        self.attributes: dict[tuple[int, str], list[Event]] = {}  # assignments to attributes, by the object's ID
        self.bound: dict[int, dict[str, Event]] = {}  # variables by frame; frame 0 is the module
        self._last: dict[int, dict[int, Event]] = {}  # the last event of each expression, by frame
        self._elements: dict[int, list[Event]] = {}  # of comprehensions that run
        self._returned: dict[str, Event] = {}
        self._pending: Event | None = None  # an augmented assignment whose effect comes next
        self._n = self._events = self._kept_bytes = self._changed_at = 0
        self.full = ""  # why the trace has ended
        self._lock = threading.Lock()

    def instrument(self, tree: ast.Module) -> ast.Module:
        """Returns the tree with calls of the hook, which begins to work."""
        setattr(builtins, HOOK, self._hook)
        transform = _Instrument(self)
        try:
            tree.body = transform.block(tree.body)
        except RecursionError:
            self.full = "the code is nested too deeply"
        self.defined = transform.defined
        if self.shared:
            self.wild |= self.shared
        return tree

    def end(self, names: dict) -> dict:
        """Ends the work of the hook. Returns the asked value of a namespace, and what it was made from."""
        setattr(builtins, HOOK, _no_hook)
        with self._lock:
            self._finish()
            try:
                return cell_walk.answer(self, names)
            except cell_paths.NoValue as error:
                return {"value": "", "from": [], "ends": str(error)}
            except Exception as error:  # of numpy or pandas
                return {"value": "", "from": [], "ends": f"not followed: {type(error).__name__}"}
            finally:
                self.things, self._last, self.bound, self._expressions = {}, {}, {}, {}

    def add(self, node, kind: str) -> "Expression | None":
        """Returns a new expression, or None if there are too many."""
        if len(self._expressions) >= MAX_EXPRESSIONS:
            self.full = f"the code has more than {MAX_EXPRESSIONS} expressions"
            return None
        code = self.text_of(node)
        if len(code) > MAX_CODE_CHARS:
            code = code[: MAX_CODE_CHARS - 3] + "..."
        expression = Expression(next(_numbers), node, kind, code)
        self._expressions[expression.number] = expression
        return expression

    def text_of(self, node) -> str:
        """Returns the code of a node in one line."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return f"def {node.name}"
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = self._lines[first : last + 1]
        if not lines or len(lines) <= last - first:
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b" ".join(lines).decode(errors="replace").split())

    # -- while the code runs

    def _hook(self, number: int, value):
        expression = self._expressions.get(number)
        if expression is None or expression.is_idle or self.full or not self._lock.acquire(False):
            return value
        try:
            self._see(expression, value, _frame(1))
        except Exception as error:  # of numpy or pandas, or at the limit of the recursion
            self.full = f"a value could not be read ({type(error).__name__})"
        finally:
            self._lock.release()
        return value

    def _see(self, expression: Expression, value, frame: types.FrameType) -> None:
        self._finish()
        self._n += 1
        expression.times += 1
        if expression.times > cell_walk.MAX_TIMES:
            self._skip(expression, value, _place(frame))
            return
        self._events += 1
        if self._events > MAX_EVENTS:
            self.full = f"the run evaluated more than {MAX_EVENTS} expressions"
            return
        place = _place(frame)
        if expression.kind in ("turn", "begin"):
            self._begin(expression, value, place, frame)
            return
        event = Event(self._n, expression)
        last = self._last.setdefault(place, {})
        event.parts = [last.pop(each.number, None) if isinstance(each, Expression) else None
                       for _, each in expression.parts]  # fmt: skip
        event.key = self._operands(place, expression.parts)
        self._keep(event, value)
        node = expression.node
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for n, (role, each) in enumerate(expression.parts):
                if role in ("element", "key") and isinstance(each, Expression):
                    event.parts[n] = None
                    if isinstance(node, ast.GeneratorExp):  # its elements come later
                        event.turns = self._elements[each.number] = []
                    elif role == "element":
                        event.turns = self._elements.pop(each.number, [])
                    else:
                        event.keys = self._elements.pop(each.number, [])
        if expression.is_element:
            self._elements.setdefault(expression.number, []).append(event)
        if expression.kind == "name":
            self._load(event, value, place, frame, expression.alias or node.id)
        elif expression.kind == "augmented name":
            thing = self.thing_of(value)
            left = event.parts[0]
            if thing is not None and left is not None and left.thing is thing:
                event.is_change = True
                self._change(thing, event)
            else:
                self._made(event, value)
        else:
            if isinstance(node, ast.Call) or isinstance(node, ast.Await):
                self._called(event, value, node if isinstance(node, ast.Call) else node.value)
            self._made(event, value)
        if expression.returns:
            self._returned[expression.returns] = event
        for name, path in expression.binds:
            bound = event if not path else self._unpacked(event, value, path)
            self.bound.setdefault(place, {})[name] = bound
        last[expression.number] = event
        for store in expression.stores:
            self._stored(store, place)

    def assigned(self, number: int, name: str, n: int) -> "Event | None":
        """Returns the last assignment to an attribute of the object with an ID, before an event."""
        return next((e for e in reversed(self.attributes.get((number, name), [])) if e.n < n), None)

    def _part(self, place: int, each) -> "Event | None":
        return self._last.get(place, {}).get(each.number) if isinstance(each, Expression) else None

    def _operands(self, place: int, parts: list) -> "dict | None":
        """Returns the events of the expressions in subscripts."""
        found = {}
        for role, each in parts:
            if role == "index":
                for expression in _expressions_of(each):
                    found[expression.number] = self._last.get(place, {}).pop(expression.number, None)
        return found or None

    def _finish(self) -> None:
        """Reads what the augmented assignment to an element has stored."""
        event, self._pending = self._pending, None
        if event is not None:
            container: typing.Any = event.thing.ref() if event.thing is not None else None
            if type(container) in CONTAINERS:
                try:
                    event.value = fact_values.known(container[cell_walk.key_of(event)])
                except Exception:
                    pass

    def thing_of(self, value) -> "Thing | None":
        """Returns the known thing that a value is."""
        thing = self.things.get(id(value))
        return thing if thing is not None and thing.ref() is value else None

    def _made(self, event: Event, value) -> None:
        """Notes the event that made a list, dict, array or table, unless it was there before."""
        if is_simple(value):
            return
        thing = self.thing_of(value)
        if thing is None and (type(value) in CONTAINERS or is_table(value)):
            if type(value) not in CONTAINERS or self._may_hold(value):
                thing = self.things[id(value)] = Thing(value, is_weak=event.value is None)
                thing.history.append(event)
        event.thing = thing

    def _may_hold(self, value) -> bool:
        return type(value) is rows.Rows or fact_values.known(value) is not fact_values.OPAQUE

    def _keep(self, event: Event, value) -> None:
        """Keeps the value of an event: scalars as they are, tables as copies, lists as copies if they are short."""
        if is_simple(value):
            event.value = value
        elif is_table(value):
            thing = self.thing_of(value)
            if thing is not None and thing.kept_at >= self._changed_at and is_array(value):
                event.value = thing.kept
                return
            event.value = self._copy(value, event.expression.node)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, self._n
        elif type(value) in CONTAINERS:
            event.container = True
            thing = self.thing_of(value)
            if event.expression.is_receiver:
                event.size = len(value)
                return
            if thing is not None and thing.kept is not None:
                event.value, event.size = thing.kept, len(value)
                return
            event.size = len(value)
            if self._kept_bytes + 16 * len(value) > MAX_KEPT or not self._may_hold(value):
                return
            self._kept_bytes += 16 * len(value)
            event.value = dict(value) if is_dict(value) else tuple(value) if type(value) is tuple else list(value)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, self._n
        else:
            event.value = fact_values.known(value)
            if event.value is fact_values.OPAQUE:
                event.size = id(value)

    def _copy(self, value, node):
        if not is_array(value):  # a view of a table needs no space of its own
            is_new = not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not is_series(value)
            return cell_walk.copy_of(value, self, is_new=is_new and self.thing_of(value) is None)
        return value.copy() if self.count_bytes(value.nbytes) else None

    def count_bytes(self, size: int) -> bool:
        """Counts the bytes of a copy. It returns False if there is no space for it."""
        if self._kept_bytes + size > MAX_KEPT:
            return False
        self._kept_bytes += size
        return True

    def _load(self, event: Event, value, place: int, frame, name: str) -> None:
        event.thing = None if is_simple(value) else self.thing_of(value)
        if event.thing is None and not is_simple(value) and (type(value) in CONTAINERS or is_table(value)):
            self._made(event, value)
            event.is_first = True
        if name in self.wild:
            return
        known = self.bound.get(place, {}).get(name)
        at: typing.Any = frame
        while known is None and at is not None and at.f_code.co_name in _INNER_CODE:
            at = at.f_back
            if at is not None:
                known = self.bound.get(_place(at), {}).get(name)
        if known is None:
            known = self.bound.get(0, {}).get(name)
        if known is not None and (
            known.value is value or known.thing is not None and known.thing is event.thing or known.size == id(value)
        ):
            event.source = known

    def _unpacked(self, event: Event, value, path: tuple) -> Event:
        """Returns an event for a part of a value that is assigned to several variables."""
        part = Event(event.n, event.expression)
        part.kind, part.path, part.source = "part", path, event
        try:
            for n in path:
                if type(value) not in (tuple, list) and not is_array(value):
                    part.value = fact_values.OPAQUE
                    return part
                value = value[n]
        except Exception:
            return part
        self._keep(part, value)
        self._made(part, value)
        return part

    def _begin(self, expression: Expression, value, place: int, frame) -> None:
        """Notes the variables of a loop at the begin of a turn, or the parameters at the begin of a call."""
        source, turn = None, 0
        call: list = []
        if expression.kind == "turn":
            each = expression.parts[0][1]
            source = each.latest if isinstance(each, Expression) else None
            if source is not None:
                turn = source.turn
                source.turn += 1
        else:
            call = self._caller(expression, frame)
            self.bound.pop(place, None)  # of a frame that has ended, and had the same ID
            self._last.pop(place, None)
        for n, (name, path) in enumerate(expression.binds):
            event = Event(self._n, expression)
            event.kind, event.path, event.turn = expression.kind, path, turn
            event.source = source if expression.kind == "turn" else call[n] if n < len(call) else None
            self._keep(event, value[n])
            event.thing = self.thing_of(value[n])
            if event.thing is None:
                self._made(event, value[n])
            name = expression.aliases.get(name, name)
            self.bound.setdefault(place, {})[name] = event

    def _caller(self, expression: Expression, frame) -> list:
        """Returns the events of the arguments with which a function was called, if only one call can be the one."""
        back = frame.f_back
        while back is not None and HOOK not in back.f_builtins:
            back = back.f_back
        if back is None:
            return []
        place = _place(back)
        found = []
        for each in expression.calls if expression.calls is not None else self._calls_of(expression):
            if each.node.lineno <= back.f_lineno <= (each.node.end_lineno or each.node.lineno):
                given = [self._given(place, each, part) for role, part in each.parts if role == "argument"]
                by_name = {role: self._given(place, each, part) for role, part in each.parts}
                names = [name for name, _ in expression.binds]
                given = [*([None] if expression.path else []), *given]
                found.append([*given, *(by_name.get(name) for name in names[len(given) :])])
        return found[0] if len(found) == 1 else []

    def _given(self, place: int, call: Expression, part) -> "Event | None":
        """Returns the event of an argument. That of a constant is the call's."""
        if not isinstance(part, tuple) or part[0] != "const":
            return self._part(place, part)
        latest, event = call.latest, Event(self._n, call)
        call.latest = latest
        event.kind, event.value = "literal", part[1]
        return event

    def _calls_of(self, expression: Expression) -> list:
        expression.calls = [
            each for each in self._expressions.values()
            if isinstance(each.node, ast.Call) and (
                each.node.func.id == (expression.path[0] if expression.path else expression.returns)
                if isinstance(each.node.func, ast.Name)
                else expression.path and getattr(each.node.func, "attr", "") == expression.returns
            ) and (expression.returns == "__init__" or not (expression.path and isinstance(each.node.func, ast.Name)))
        ]  # fmt: skip
        return expression.calls

    # -- changes

    def _change(self, thing: Thing, event: Event) -> None:
        thing.history.append(event)
        event.thing = thing
        self._changed_at = self._n + 1
        thing.kept = None

    def _called(self, event: Event, value, node) -> None:
        """Notes what a call may have changed."""
        receiver = event.part("receiver")
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_own = isinstance(node.func, ast.Name) or receiver is not None and receiver.value is fact_values.OPAQUE
        if is_own and name in self.defined:
            returned = self._returned.pop(name, None)
            if (
                returned is not None
                and returned.n > max([part.n for part in event.parts if part], default=0)
                and (
                    returned.value is value
                    or returned.thing is not None
                    and returned.thing is self.thing_of(value)
                    or returned.size == id(value)
                )
            ):
                event.source = returned
        if receiver is not None and receiver.thing is not None:
            target = receiver.thing.ref()
            in_place = any(role == "inplace" and each != ("const", False) for role, each in event.expression.parts)
            is_frame_method = is_table(target) and not is_array(target) and name in ("insert", "pop", "update")
            if (
                in_place
                or is_frame_method
                or not is_table(target)
                and name in _CHANGING
                or is_array(target)
                and (name in ("sort", "fill", "resize", "put", "itemset", "partition"))
            ):
                event.is_change = True
                event.before = receiver.size
                change = event
                if value is not None:  # the call has a value of its own
                    change = Event(self._n, event.expression)
                    change.parts, change.key, change.is_change, change.before = event.parts, None, True, receiver.size
                    change.value = None
                    event.is_change = False
                self._change(receiver.thing, change)
                if type(target) in CONTAINERS:
                    change.size = len(target)
                elif is_table(target):
                    change.after = self._copy(target, node)
        is_pure = event.expression.is_pure
        if is_pure is None:
            is_pure = event.expression.is_pure = self._is_pure(node, name)
        for (role, _), part in zip(event.expression.parts, event.parts):
            if part is None or part.thing is None or role == "receiver" or is_pure and role != "out":
                continue
            barrier = Event(self._n, event.expression)
            barrier.kind = "barrier"
            self._change(part.thing, barrier)

    def _is_pure(self, node: ast.Call, name: str) -> bool:
        """Tells whether a call changes none of its arguments, as far as its name tells."""
        if isinstance(node.func, ast.Name):
            return name in _PURE or name in self.defined or name[:1].isupper()  # a class
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = unhooked(root.value)
        rooted = root.id if isinstance(root, ast.Name) else ""
        return rooted not in _IMPURE_ROOTS and name not in _IMPURE_NAMES

    def _skip(self, expression: Expression, value, place: int) -> None:
        """Notes that an expression was evaluated too often to keep its values: what it set or may have changed is not
        followed any more."""
        bound = self.bound.get(place, {})
        for name, _ in expression.binds:
            bound.pop(expression.aliases.get(name, name), None)
        self._returned.pop(expression.returns, None)
        self._last.get(place, {}).pop(expression.number, None)
        parent, role = expression.parent
        if parent is None:
            expression.is_idle = not expression.binds and not expression.returns and not expression.stores
            return
        node = parent.node.value if isinstance(parent.node, ast.Await) else parent.node
        if isinstance(node, ast.Call):
            name = fact_tables.called_name(node)
            may_change = role == "receiver" and name in _CHANGING or role in ("out", "inplace")
            if not may_change and role != "receiver":
                may_change = not self._is_pure(node, name)
        else:
            may_change = role == "container"
        thing = self.thing_of(value) if may_change else None
        expression.is_idle = not (may_change or expression.binds or expression.returns or expression.stores)
        if thing is None:
            if may_change and role == "container":
                self.attributes.pop((id(value), getattr(parent.node, "attr", "")), None)
            return
        if thing.history[-1].kind != "barrier" or thing.history[-1].expression is not parent:
            barrier = Event(self._n, parent)
            barrier.kind = "barrier"
            thing.history.append(barrier)
        thing.history[-1].n = self._n
        thing.kept, self._changed_at = None, self._n + 1

    def _stored(self, store: Expression, place: int) -> None:
        """Notes an assignment to an element, which comes next."""
        container, value = self._part(place, store.parts[0][1]), self._part(place, store.parts[1][1])
        if container is None:
            return
        self._n += 1
        event = Event(self._n, store)
        event.parts = [container, value]
        event.key = {e.number: self._part(place, e) for e in _expressions_of(store.key)}
        event.is_change = True
        if value is not None:
            event.value = value.value
        if isinstance(store.node, ast.Attribute) and (container.thing is None or container.size):
            if container.size and container.thing is None:
                if store.kind == "augmented":
                    self._augment(event, container.size, store)
                self.attributes.setdefault((container.size, store.node.attr), []).append(event)
                return
        behind = container.part("receiver")
        if (
            container.thing is None
            and behind is not None
            and getattr(container.expression.node, "attr", "") in ("loc", "iloc", "at", "iat")
        ):
            thing = behind.thing
        else:
            thing = container.thing
        if thing is None:
            return
        event.before = container.size
        if store.kind == "augmented":
            event.value = None
            self._pending = event
        self._change(thing, event)

    def _augment(self, event: Event, number: int, store: Expression) -> None:
        """Computes what an augmented assignment to an attribute gives, from the last value of the attribute."""
        before, value = self.assigned(number, store.node.attr, event.n), event.value
        operation = cell_values.OPERATORS.get(type(store.statement.op))
        event.value = fact_values.OPAQUE
        event.source = before
        if before is None or operation is None or not fact_values.is_scalar(value):
            return
        if fact_values.is_scalar(before.value) and type(before.value) in (int, float, str):
            event.value = operation(before.value, value)


def _place(frame: types.FrameType) -> int:
    """Returns the number of the variables of a frame: 0 for the module."""
    return 0 if frame.f_code.co_name == "<module>" else id(frame)


def _no_hook(number: int, value):
    """Serves functions that run after the end, for example at exit."""
    return value
