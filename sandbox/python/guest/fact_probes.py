"""Probes: they look at the values of expressions while code runs again, for the question why a value is wrong.

    probes = Probes(source, [(3, 3), (7, 9)])   # lines of statements
    tree = probes.instrument(tree)              # calls HOOK with the value of each expression in them
    ...                                         # run it
    probes.end()                                # what was seen, as a list of sandbox.Fact

A probe returns the value that it gets, so the code does what it does without it. It calls no code of the program:
values of classes that Python, numpy or pandas do not define are counted, and not looked at. It reads no clock, because
the clocks of a replay have the readings of the original.
"""

import ast
import builtins
import itertools
import re
import sys
import threading

import fact_effects
import fact_values

HOOK = "__glasshouse_probe__"
MAX_PROBES = 400  # of a run
MAX_CODE_CHARS = 80  # of the text of an expression
MAX_REPORTED = 60  # facts of a run

MAX_DEPTH = 40  # of expressions in each other

_SKIPPED_CALLS = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}  # give namespaces, or hide what they do
_SKIPPED_FIELDS = {"annotation", "returns", "args"}  # of statements
_LINE_END = re.compile("\r\n|\r|\n")  # as in Python: not a form feed
_KINDS = {"test": "truth", "iter": "iter"}  # of probes, by the field of the statement

_frame = sys._getframe
_numbers = itertools.count()  # of all probes: a function of an earlier run finds no probe of this one


class _Instrument:
    """Wraps the expressions of some statements in calls of the hook."""

    def __init__(self, probes: "Probes", ranges: "list[tuple[int, int]]"):
        self._probes, self._ranges = probes, ranges
        self._is_wanted = False
        self._depth = 0
        self._tests: list[str] = []  # of the if statements around

    def _statement(self, node: ast.stmt) -> ast.stmt:
        outer = self._is_wanted
        if type(node).__name__ == "TypeAlias":  # Python evaluates it later, if at all
            return node
        self._is_wanted = any(first <= node.lineno <= last for first, last in self._ranges)
        if isinstance(node, ast.If):
            self._tests.append(self._probes.text_of(node.test))
        if self._is_wanted:
            self._parts(node)
        for field, old in ast.iter_fields(node):
            if isinstance(old, list) and old and isinstance(old[0], (ast.stmt, ast.ExceptHandler, ast.match_case)):
                setattr(node, field, self.block(old))
        if isinstance(node, ast.If):
            self._tests.pop()
        self._is_wanted = outer
        return node

    def _parts(self, node: ast.stmt) -> None:
        """Wraps the expressions of a statement."""
        for field, old in ast.iter_fields(node):
            if field == "items":  # of a with statement
                for item in old:
                    item.context_expr = self._expression(item.context_expr)[0]
            if not isinstance(old, ast.expr) or field in _SKIPPED_FIELDS:
                continue
            if isinstance(node, ast.Assert) and field == "test":  # the exception would have another place
                continue
            if field == "target" or isinstance(getattr(old, "ctx", None), (ast.Store, ast.Del)):
                continue
            new, probe = self._expression(old, _KINDS.get(field, "value"))
            setattr(node, field, new)
            if probe is not None and isinstance(node, ast.Assign) and len(node.targets) == 1:
                if isinstance(node.targets[0], ast.Subscript):
                    self._store(node.targets[0], probe)

    def block(self, body: list) -> list:
        out: list = []
        for each in body:
            if isinstance(each, ast.stmt):
                out.append(self._statement(each))
            else:
                each.body = self.block(each.body)
                out.append(each)
        return out

    def _store(self, target: ast.Subscript, value: "fact_values.Probe") -> None:
        """Looks at an assignment to an element: Python evaluates the value, then the container, and the key last."""
        base = self._probes.text_of(target.value)
        store = self._probes.add(target, "store")
        if store is None:
            return
        target.value, container = self._wrap(target.value, "container", ())
        key = None
        if not isinstance(target.slice, (ast.Slice, ast.Tuple)):
            target.slice, key = self._wrap(target.slice, "key", ())
        last = container if key is None else key
        if container is None or last is None:
            return
        value.is_kept = container.is_kept = True
        store.children = [("value", value), ("container", container), *([("key", key)] if key is not None else [])]
        store.is_update = base in self._probes.text_of(value.node) or any(base in test for test in self._tests)
        last.stores = store

    def _wrap(self, node: ast.expr, kind: str, children) -> "tuple[ast.expr, fact_values.Probe | None]":
        probe = self._probes.add(node, kind)
        if probe is None:
            return node, None
        probe.children = [(role, child) for role, child in children if child is not None]
        for _, child in probe.children:
            child.has_parent = True
        hook, number = ast.Name(HOOK, ast.Load()), ast.Constant(probe.number)
        call = ast.Call(hook, [number, node], [])
        for new in (hook, number, call):
            ast.copy_location(new, node)
        return call, probe

    def _expression(self, node: ast.expr, kind: str = "value") -> "tuple[ast.expr, fact_values.Probe | None]":
        if self._depth > MAX_DEPTH:
            return node, None
        self._depth += 1
        try:
            return self._wrapped(node, kind)
        finally:
            self._depth -= 1

    def _wrapped(self, node: ast.expr, kind: str) -> "tuple[ast.expr, fact_values.Probe | None]":
        children: list = []

        def child(role: str, old: ast.expr, kind: str = "value") -> ast.expr:
            new, probe = self._expression(old, kind)
            children.append((role, probe))
            return new

        match node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda() | ast.Yield() | ast.YieldFrom() | ast.Starred():
                return node, None
            case ast.Name(ctx=ast.Load()):
                return self._wrap(node, "name" if kind == "value" else kind, ())
            case ast.NamedExpr():
                node.value = child("operand", node.value)
                return node, children[0][1]
            case ast.Await(value=ast.Call() as call):
                self._arguments(call, child)
            case ast.Attribute(ctx=ast.Load()):
                node.value = child("receiver", node.value)
            case ast.Call():
                if isinstance(node.func, ast.Name) and node.func.id in _SKIPPED_CALLS:
                    return node, None
                self._arguments(node, child)
            case ast.Subscript(ctx=ast.Load()):
                node.value = child("receiver", node.value)
                if not isinstance(node.slice, (ast.Slice, ast.Tuple)):
                    node.slice = child("index", node.slice)
            case ast.BinOp():
                node.left, node.right = child("left", node.left), child("right", node.right)
            case ast.UnaryOp(op=ast.Not()):
                node.operand = child("operand", node.operand, "truth")
            case ast.UnaryOp():
                node.operand = child("operand", node.operand)
            case ast.Compare():
                node.left = child("left", node.left)
                node.comparators = [child("right", each) for each in node.comparators]
            case ast.BoolOp():
                inner = "truth" if kind == "truth" else "choice"  # its value, too, is that of an operand
                node.values = [child("operand", each, inner) for each in node.values]
            case ast.IfExp():
                node.test = child("test", node.test, "truth")
                node.body, node.orelse = child("branch", node.body), child("branch", node.orelse)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                self._generators(node, child)
                node.elt = child("element", node.elt)
            case ast.DictComp():
                self._generators(node, child)
                node.key, node.value = child("key", node.key), child("element", node.value)
            case ast.List() | ast.Tuple() | ast.Set() if len(node.elts) <= 20:
                node.elts = [each if isinstance(each, ast.Starred) else child("item", each) for each in node.elts]
                return node, None
            case ast.Dict() if len(node.keys) <= 20:
                node.values = [child("item", each) for each in node.values]
                return node, None
            case _:
                return node, None
        return self._wrap(node, kind, children)

    def _arguments(self, node: ast.Call, child) -> None:
        if isinstance(node.func, ast.Attribute):
            node.func.value = child("receiver", node.func.value)
        node.args = [each if isinstance(each, ast.Starred) else child("argument", each) for each in node.args]
        for keyword in node.keywords:
            if keyword.arg is not None:
                keyword.value = child(keyword.arg, keyword.value)

    def _generators(self, node, child) -> None:
        for generator in node.generators:
            generator.iter = child("iter", generator.iter, "iter")
            generator.ifs = [child("condition", each, "truth") for each in generator.ifs]


class Probes:
    """The probes of one run."""

    def __init__(self, source: str, ranges: "list[tuple[int, int]]"):
        self._ranges = ranges
        self._lines = [line.encode() for line in _LINE_END.split(source)]  # columns are in bytes
        self._probes: dict[int, fact_values.Probe] = {}
        self._watcher = fact_effects.Watcher()
        self._lock = threading.Lock()  # also against signal handlers and finalizers, which may run code during a look

    def instrument(self, tree: ast.Module) -> ast.Module:
        """Returns the tree with calls of the hook, which begins to work."""
        setattr(builtins, HOOK, self._hook)
        transform = _Instrument(self, self._ranges)
        try:
            tree.body = transform.block(tree.body)
        except RecursionError:  # the tree has fewer calls, and works
            pass
        return tree

    def end(self) -> "list[dict]":
        """Ends the work of the hook. Returns the facts, those with the highest score first: of each the line, the code
        of the expression, the kind, the text, and how often the expression was evaluated."""
        setattr(builtins, HOOK, _no_hook)
        found: list = []
        for probe in self._probes.values():
            try:
                found += fact_effects.facts_of(probe)
            except Exception:  # user code has changed what the facts need
                pass
        self._probes = {}
        found.sort(key=lambda fact: -fact["score"])
        return found[:MAX_REPORTED]

    def add(self, node: ast.expr, kind: str) -> "fact_values.Probe | None":
        """Returns a new probe for an expression, or None if there are too many."""
        if len(self._probes) >= MAX_PROBES:
            return None
        code = self.text_of(node)
        if len(code) > MAX_CODE_CHARS:
            code = code[: MAX_CODE_CHARS - 3] + "..."
        probe = fact_values.Probe(next(_numbers), node, kind, code)
        self._probes[probe.number] = probe
        return probe

    def text_of(self, node: ast.expr) -> str:
        """Returns the code of an expression in one line."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        lines = self._lines[first : last + 1]
        if not lines or len(lines) <= last - first:  # the tree is not that of the source
            return ""
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return " ".join(b" ".join(lines).decode(errors="replace").split())

    def _hook(self, number: int, value):
        probe = self._probes.get(number)
        if probe is None:
            return value
        probe.n += 1
        if probe.n > fact_values.MAX_TIMES or not self._lock.acquire(False):
            return value
        try:
            self._watcher.see(probe, value, id(_frame(1)))
        except Exception:  # of numpy or pandas, or at the limit of the recursion: a fact less
            pass
        finally:
            self._lock.release()
        return value


def _no_hook(number: int, value):
    """Serves functions that run after the end, for example at exit."""
    return value
