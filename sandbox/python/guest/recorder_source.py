"""Describes the statements of a program for its recording: what each one reads and sets, and operations in it that
often explain a wrong result. The service has no parser of Python, so it asks a recording why a value is so.

statements() returns a list of dicts. Type Statement of package debugger/program has their keys.
"""

import ast
import builtins
import dis
import json
import types

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_STATEMENTS = 20_000
MAX_NAMES = 40  # of one statement
MAX_CHECKS = 12
MAX_RANGES = 800  # of lines, in one description
MAX_TEXT = 120  # characters of a piece of source
MAX_DESCRIPTION = 16_000  # bytes of one statement's description; a longer one is left out
MAX_DESCRIPTIONS = 6 << 20  # bytes of all; more are left out, because the service refuses more than 8 MiB

_CONSUMERS = frozenset(
    "sum list tuple set frozenset sorted max min any all dict enumerate zip map filter next reversed iter "
    "Counter deque join DataFrame Series array fromiter reduce chain islice compress extend update writerows "
    "mean fmean stdev pstdev median islice accumulate".split()
)
_NEW = frozenset(  # methods that return a new object and leave their own as it is
    "dropna fillna sort_values sort_index reset_index set_index rename drop drop_duplicates replace astype "
    "merge assign query strip upper lower title removeprefix removesuffix union intersection difference round "
    "clip shift".split()
)
_MUTATORS = frozenset(
    "append extend insert remove pop clear sort reverse add discard update setdefault popitem appendleft "
    "popleft fill put resize difference_update intersection_update".split()
)
_LIBRARIES = frozenset(("np", "numpy", "pd", "pandas", "statistics", "itertools", "math", "stats"))
_BODIES = "body", "orelse", "finalbody", "handlers", "cases"
_BRANCHES = {"orelse": "else", "finalbody": "finally"}  # parts of a statement that run under another condition


_dumps = json.JSONEncoder(separators=(",", ":")).encode


def describe(tree) -> list:
    """Returns the descriptions of statements() as JSON; nothing for a program that is nested too deeply or too long."""
    try:
        texts = [_dumps(each) for each in statements(tree)]
    except RecursionError:
        return []
    texts = [each if len(each) <= MAX_DESCRIPTION else "{}" for each in texts]
    return texts if sum(map(len, texts)) <= MAX_DESCRIPTIONS else []


def executable_lines(codes: list) -> list:
    """Returns the lines that have code of their own, in order: a program can stop there. A function begins with
    instructions of the line of its def, which belongs to the code around it."""
    found: set = set()
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        begin = next((op.offset for op in dis.get_instructions(code) if op.opname == "RESUME"), -1)
        found.update(line for at, line in dis.findlinestarts(code) if line and at > begin)
        if code.co_name == "<module>":
            found.update(line for at, line in dis.findlinestarts(code) if line)
        waiting += [const for const in code.co_consts if type(const) is types.CodeType]
    return sorted(found)


def describe_lines(executable: list) -> list:
    """Returns these lines as JSON in the place of statements: {"kind": "lines", "ranges": [[first, last], ...]}."""
    ranges: list = []
    for line in executable:
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1][1] = line
        else:
            ranges.append([line, line])
    parts = [ranges[at : at + MAX_RANGES] for at in range(0, len(ranges), MAX_RANGES)]
    return [_dumps({"kind": "lines", "ranges": part}) for part in parts] if len(parts) <= MAX_NAMES else []


def statements(tree) -> list:
    """Returns the descriptions of the statements of a module, each after the statement that it is in."""
    found: list = []
    waiting = [(tree.body, 0, "<module>", "")]
    while waiting and len(found) < MAX_STATEMENTS:
        body, parent, function, branch = waiting.pop()
        for node in body[: MAX_STATEMENTS - len(found)]:
            found.append(_describe(node, parent, function))
            if branch:
                found[-1]["branch"] = branch
            number, inner = len(found), function
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                outer = "" if function == "<module>" else function + ("." if _is_class(found, parent) else ".<locals>.")
                inner = outer + node.name
            for field in _BODIES:
                nested = getattr(node, field, None)
                if type(nested) is list and nested:
                    waiting.append((nested, number, inner, _BRANCHES.get(field, "")))
    return found


def _is_class(found: list, parent: int) -> bool:
    return bool(parent) and found[parent - 1]["kind"] == "class"


def _describe(node, parent: int, function: str) -> dict:
    finder = _Finder(getattr(node, "value", None))
    kind = _kind(node)
    for name, value in ast.iter_fields(node):
        if name not in _BODIES:
            for each in value if type(value) is list else [value]:
                if isinstance(each, ast.AST):
                    finder.visit(each)
    finder.statement(node)
    line, end = node_lines(node)
    out = {"line": line, "end": end, "kind": kind}
    if parent:
        out["in"] = parent
    if function != "<module>":
        out["function"] = function
    for key, names in (
        ("reads", finder.reads),
        ("sets", finder.sets),
        ("mutates", finder.mutates),
        ("calls", finder.calls),
    ):
        if names:
            out[key] = [name[:MAX_TEXT] for name in list(names)[:MAX_NAMES]]
    if finder.comprehensions:
        out["comprehensions"] = finder.comprehensions[:MAX_NAMES]
    if finder.checks:
        out["checks"] = finder.checks[:MAX_CHECKS]
    return out


def node_lines(node) -> tuple:
    """Returns the first and the last line of a statement, and for a compound statement those of its head."""
    first: int = getattr(node, "lineno", 0)
    if isinstance(node, ast.match_case):
        return node.pattern.lineno, node.pattern.end_lineno
    if isinstance(node, (ast.Try, ast.TryStar)):
        return first, max(first, node.body[-1].end_lineno or 0)  # what it guards
    heads: list[int] = [
        int(getattr(each, "end_lineno", 0) or 0)
        for name in ("test", "iter", "target", "items", "subject", "type", "args", "bases", "returns")
        for each in _listed(getattr(node, name, None))
    ]
    heads += [int(getattr(each.context_expr, "end_lineno", 0)) for each in getattr(node, "items", ())]
    if any(getattr(node, field, None) for field in _BODIES):
        return first, max(first, *heads, 0)
    return first, getattr(node, "end_lineno", first) or first


def _listed(value) -> list:
    return value if type(value) is list else [] if value is None else [value]


def _kind(node) -> str:
    names = {
        "FunctionDef": "def",
        "AsyncFunctionDef": "def",
        "ClassDef": "class",
        "AsyncFor": "for",
        "AsyncWith": "with",
        "TryStar": "try",
        "ExceptHandler": "except",
        "ImportFrom": "import",
        "match_case": "case",
    }
    name = type(node).__name__
    return names.get(name, name.lower())


def _text(node) -> str:
    try:
        text = _simple_text(node)
        return (ast.unparse(node) if text is None else text)[:MAX_TEXT]
    except (RecursionError, ValueError):
        return ""


def _simple_text(node) -> "str | None":
    """Returns what ast.unparse returns for most expressions, in a tenth of the time; None for others."""
    kind = type(node)
    if kind is ast.Name:
        return node.id
    if kind is ast.Constant and node.kind is None:
        value = node.value
        if type(value) is str:
            return repr(value) if value.isascii() and value.isprintable() and "'" not in value else None
        return repr(value) if value is None or type(value) is bool or type(value) is int else None
    if kind is ast.Attribute:
        if type(node.value) is ast.Constant:
            return None  # 1 .real
        text = _simple_text(node.value)
        return None if text is None else f"{text}.{node.attr}"
    if kind is ast.Call:
        function = _simple_text(node.func)
        arguments = [("", _simple_text(each)) for each in node.args]
        arguments += [(f"{each.arg}=", _simple_text(each.value) if each.arg else None) for each in node.keywords]
        if function is None or any(text is None for _, text in arguments):
            return None
        return f"{function}({', '.join(f'{name}{text}' for name, text in arguments)})"
    if kind is ast.Subscript and type(node.slice) in (ast.Name, ast.Constant, ast.Attribute, ast.Call):
        text, index = _simple_text(node.value), _simple_text(node.slice)
        return None if text is None or index is None else f"{text}[{index}]"
    return None


def _root(node) -> str:
    """Returns the variable that an expression such as df["a"].dropna() begins with, or ""."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Await)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""


def _column(node) -> str:
    """Returns the column that an expression such as df["a"].str.strip() is about, or ""."""
    found = ""
    while True:
        if isinstance(node, ast.Subscript):
            index = node.slice
            if isinstance(index, ast.Tuple) and index.elts:
                index = index.elts[-1]
            if isinstance(index, ast.Constant) and isinstance(index.value, str):
                return index.value[:MAX_TEXT]
            node = node.value
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                return found or node.attr
            found, node = "", node.value
        elif isinstance(node, ast.Call):
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        else:
            return found


def _texts(node) -> list:
    """Returns the texts of a constant, or of a list of constants."""
    nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [each.value[:MAX_TEXT] for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]


class _Finder(ast.NodeVisitor):
    """Finds the names and operations of one statement, without those of the statements in it."""

    def __init__(self, value):
        self.value = value  # of the statement, or None
        self.reads, self.sets, self.mutates, self.calls = {}, {}, {}, {}  # by name, in order
        self.checks: list = []
        self.comprehensions: list = []  # first and last lines of those over several lines, without nested ones
        self._own: list = []  # names that only a comprehension or lambda has

    def check(self, kind: str, node, **facts) -> None:
        if len(self.checks) < MAX_CHECKS:
            shown = {key: value for key, value in facts.items() if value not in ("", [], None, False)}
            self.checks.append({"kind": kind, "text": _text(node), **shown})

    def visit_Name(self, node):
        if any(node.id in names for names in self._own):
            return
        (self.reads if isinstance(node.ctx, ast.Load) else self.sets)[node.id] = True

    def _scope(self, node, names: set, parts: list) -> None:
        self._own.append(names)
        for part in parts:
            self.visit(part)
        self._own.pop()

    def _comprehension(self, node) -> None:
        lines = [node.lineno, node.end_lineno]
        outer = self.comprehensions[-1] if self.comprehensions else [0, 0]
        if lines[0] < lines[1] and lines[1] > outer[1]:
            self.comprehensions.append(lines)
        self.visit(node.generators[0].iter)
        names = {each.id for g in node.generators for each in ast.walk(g.target) if isinstance(each, ast.Name)}
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        call = "generator" if isinstance(node, ast.GeneratorExp) else "comprehension"
        for g in node.generators:
            self._iterates(g.iter, call)
        conditions = [each for g in node.generators for each in g.ifs]
        self._scope(node, names, [*(g.iter for g in node.generators[1:]), *conditions, *values])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Lambda(self, node):
        for each in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(each)
        self._scope(node, _parameters(node.args), [node.body])

    def visit_FunctionDef(self, node):
        pass

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_arguments(self, node):
        for each in [*node.defaults, *(d for d in node.kw_defaults if d is not None)]:
            self.visit(each)

    def visit_Attribute(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._mutate(node)
        self.visit(node.value)

    def visit_Subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            self._mutate(node)
            base = node.value
            if isinstance(base, ast.Attribute) and base.attr in ("loc", "iloc", "at", "iat"):
                base = base.value
            if isinstance(base, (ast.Subscript, ast.Call)):
                self.check("chained", node, of=_root(node))
        self.visit(node.value)
        self.visit(node.slice)

    def _mutate(self, node) -> None:
        name = _root(node)
        if name:
            self.mutates[name] = True

    def visit_BinOp(self, node):
        if isinstance(node.op, ast.FloorDiv):
            self.check("floor_division", node)
        self.generic_visit(node)

    def visit_Call(self, node):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        receiver = function.value if isinstance(function, ast.Attribute) else None
        library = _root(receiver) if isinstance(receiver, ast.Name) and receiver.id in _LIBRARIES else ""
        if name:
            self.calls[name] = True
        keywords = {each.arg: each.value for each in node.keywords if each.arg}
        subject = node.args[0] if (library or receiver is None) and node.args else receiver
        of, column = (_root(subject), _column(subject)) if subject is not None else ("", "")
        if name == "drop_duplicates" and receiver is not None and "keep" not in keywords:
            by = keywords.get("subset") or (node.args[-1] if node.args else None)
            self.check("drop_duplicates", node, of=of, keys=_texts(by) if by is not None else [])
        elif name == "astype" or name == "int" and node.args and isinstance(node.args[0], ast.BinOp):
            self.check("convert", node, of=of, column=column, call=name, to=_text(node.args[0]) if node.args else "")
        elif name == "get" and isinstance(receiver, ast.Name) and len(node.args) == 2:
            self.check("default_item", node, of=of, args=[_text(each) for each in node.args])
        if name in _CONSUMERS:
            for each in node.args:
                self._iterates(each, name)
        if receiver is not None and not library:
            if "inplace" in keywords and _text(keywords["inplace"]) == "True":
                self._mutate(receiver)
                if isinstance(receiver, (ast.Subscript, ast.Call)):
                    self.check("chained", node, of=_root(receiver))
            elif name in _MUTATORS:
                self._mutate(receiver)
        self.visit(function)
        for each in [*node.args, *keywords.values(), *(k.value for k in node.keywords if not k.arg)]:
            self.visit(each)

    def _iterates(self, node, call: str) -> None:
        """Tells that a call, a loop or a comprehension takes items from an iterable."""
        if isinstance(node, ast.Starred):
            node = node.value
        if isinstance(node, ast.Name):
            self.check("iterate", node, of=node.id, call=call)

    def statement(self, node) -> None:
        """Adds what only the statement itself tells."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._iterates(node.iter, "for")
        elif isinstance(node, ast.AnnAssign):
            if node.value is None and isinstance(node.target, ast.Name):
                self.sets.pop(node.target.id, None)  # an annotation alone sets nothing
        elif isinstance(node, ast.AugAssign):
            name = _root(node.target)
            if name:
                self.reads[name] = True
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            self.check("alias", node, of=node.value.id)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute) and call.func.attr in _NEW:
                if not any(each.arg == "inplace" for each in call.keywords):
                    self.check("discarded", call, of=_root(call))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.sets[node.name] = True
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args]
            pairs = [*zip(named[len(named) - len(arguments.defaults) :], arguments.defaults)]
            pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None]
            for argument, default in pairs:
                if isinstance(default, (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp)):
                    self.check("default", default, of=argument.arg, call=node.name)
        elif isinstance(node, ast.ClassDef):
            self.sets[node.name] = True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for each in node.names:
                self.sets[(each.asname or each.name).partition(".")[0]] = True
        elif isinstance(node, ast.ExceptHandler):
            if node.name:
                self.sets[node.name] = True
            passes = all(isinstance(each, (ast.Pass, ast.Continue)) for each in node.body)
            self.checks.append({"kind": "except", "text": _text(node.type) if node.type else "", "passes": passes})


def _parameters(arguments) -> set:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {each.arg for each in every if each is not None}
