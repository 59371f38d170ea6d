"""The code of a program, with calls of a hook around its expressions.

    program = Program(source)
    program.instrument(tree)        # the tree now calls HOOK(number, value) with the value of each expression
    program.expressions[number]     # what the number stands for: its code, its parts, and what is assigned from it

The value of the program is not changed by it: the hook returns the value that it gets.
"""

import ast
import itertools
import re
import typing

import fact_probes
from cell_values import HOOK, Expression, expressions_of

MAX_EXPRESSIONS = 4_000
MAX_CODE_CHARS = 80  # of the text of an expression
MAX_DEPTH = 40  # of expressions in each other

# Methods that change their receiver.
CHANGING = {
    "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault", "popitem",
    "add", "discard", "appendleft", "popleft", "fill", "resize", "put", "itemset", "partition", "subtract",
}  # fmt: skip

_SKIPPED = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}  # calls that depend on their frame
_LINE_END = re.compile("\r\n|\r|\n")
_numbers = itertools.count()


class Program:
    """The expressions and assignments of a program."""

    def __init__(self, source: str):
        self.expressions: dict[int, Expression] = {}
        self.wild: set[str] = set()  # names that the trace does not see all assignments of
        self.defined: set[str] = set()  # functions
        self.full = ""  # why not all of the program is wrapped
        self._lines = [line.encode() for line in _LINE_END.split(source)]
        self._depth = 0
        self._functions: list[str] = []
        self._classes: list[str] = []  # "" for a function
        self._aliases: list[dict[str, str]] = []  # of the variables of the comprehensions around

    def instrument(self, tree: ast.Module) -> None:
        """Wraps the expressions of a tree of the source in calls of the hook."""
        try:
            tree.body = self._block(tree.body)
        except RecursionError:
            self.full = "the code is nested too deeply"

    def _add(self, node, kind: str) -> "Expression | None":
        """Returns a new expression, or None if there are too many."""
        if len(self.expressions) >= MAX_EXPRESSIONS:
            self.full = f"the code has more than {MAX_EXPRESSIONS} expressions"
            return None
        code = self._text_of(node)
        if len(code) > MAX_CODE_CHARS:
            code = code[: MAX_CODE_CHARS - 3] + "..."
        expression = Expression(next(_numbers), node, kind, code)
        self.expressions[expression.number] = expression
        return expression

    def _text_of(self, node) -> str:
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

    # -- statements

    def _block(self, body: list) -> list:
        out: list = []
        for node in body:
            if isinstance(node, ast.stmt):
                out += self._statement(node)
            else:  # a handler, or a case
                self._patterns(node)
                node.body = self._block(node.body)
                out.append(node)
        return out

    def _patterns(self, node) -> None:
        for each in ast.walk(node.pattern) if isinstance(node, ast.match_case) else ():
            for name in (getattr(each, "name", None), getattr(each, "rest", None)):
                if isinstance(name, str):
                    self.wild.add(name)
        if isinstance(node, ast.ExceptHandler) and node.name:
            self.wild.add(node.name)

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
                body = self._block(node.body)
                node.body = [self._call_statement(hook, node.target), *body] if hook is not None else body
                node.orelse = self._block(node.orelse)
                return [node]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self._function(node)]
            case ast.ClassDef():
                self._classes.append(node.name)
                node.body = self._block(node.body)
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
                self.wild.update(node.names)
        for field, old in ast.iter_fields(node):
            if isinstance(old, list) and old and isinstance(old[0], (ast.stmt, ast.ExceptHandler, ast.match_case)):
                setattr(node, field, self._block(old))
        return [*before, node, *after]

    def _wild(self, target) -> None:
        """Notes names whose values the trace does not see."""
        for each in ast.walk(target) if target is not None else ():
            if isinstance(each, ast.Name):
                self.wild.add(each.id)

    def _target(self, target: ast.expr, value: "Expression | None", path: tuple = ()) -> None:
        match target:
            case ast.Name():
                if value is None:
                    self.wild.add(target.id)
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
        store = self._add(target, kind)
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
                wrapped = list(expressions_of(store.key))
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
                changed.code = self._text_of(node)
                changed.binds.append((target.id, ()))
            after.append(ast.copy_location(ast.Expr(new), node))
            return
        store = self._store(target, None, "augmented")
        node.value, value = self._forced(node.value)
        if store is not None and value is not None:
            store.parts[1] = ("value", value)
            store.statement = node
            store.code = self._text_of(node)
            value.stores.append(store)

    def _turn(self, target: ast.expr, source: "Expression | None") -> "Expression | None":
        """Returns the expression that sees the variables of a loop at the begin of each turn."""
        turn = self._add(target, "turn")
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
        begin = self._add(node, "begin")
        self._functions.append(node.name)
        owner = self._classes[-1] if self._classes else ""
        self._classes.append("")
        body = self._block(node.body)
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
                self.wild.add(each.arg)
        node.body = body
        return node

    # -- expressions

    def _wrap(self, node: ast.expr, kind: str, parts: list) -> "tuple[ast.expr, Expression | None]":
        expression = self._add(node, kind)
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
                each.is_receiver = isinstance(node, ast.Subscript) or name in CHANGING - {"sort", "remove"}
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
