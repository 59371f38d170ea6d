"""Import and call rules for the user's own code: an early, helpful error for an
agent, before anything runs. They are a courtesy and no wall: the wall is the kernel."""

import ast
import difflib
import importlib.util
import os
import sys
from itertools import islice

import absent
import place

MAX_PROBLEMS = 100  # that a check lists

_walk, _children, _exists = ast.walk, ast.iter_child_nodes, os.path.exists


class PolicyError(Exception):
    """The code does what the sandbox's policy rules out; nothing of it has run."""

    __module__ = "builtins"

    def __init__(self, message: str, line: int, hint: str):
        super().__init__(message)
        self.lineno = line
        self.hint = hint


class Rules:
    """The rules of one sandbox, made from what policy.Rules sends: enabled; allowed, a
    list of modules ("*" is any); blocked and calls, which map a name to what to use
    instead; blocked_modules, the request's; keys, the policy key behind a name where
    it is not the profile; folder, whose modules may always be imported: where it is
    "", the session's."""

    def __init__(self, rules: dict, folder: str = ""):
        self._enabled = bool(rules.get("enabled"))
        self._allowed = set(rules.get("allowed") or ())
        self._only = bool(rules.get("allowed_only"))
        self._blocked = dict(rules.get("blocked") or {})
        self._refused = set(rules.get("blocked_modules") or ())
        self._calls = dict(rules.get("calls") or {})
        self._keys = dict(rules.get("keys") or {})
        self._folder = folder
        self._words = ("import", *self._calls)

    def check(self, source: str, tree: ast.AST, known=()) -> None:
        """Raises PolicyError for the first import or bare call, in the order of the
        lines, that the rules don't allow. known are names that the user has bound before."""
        for error in self.problems(source, tree, known):
            raise error

    def problems(self, source: str, tree: ast.AST, known=()):
        """Each PolicyError that there is, in that order."""
        if self.passes(source):
            return
        found = []
        calls = []
        for node in _walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                found.append(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._calls:
                calls.append(node)
        if calls:
            bound = _bound(tree)
            found += [call for call in calls if call.func.id not in bound and call.func.id not in known]  # type: ignore[misc,attr-defined]
        for node in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
            try:
                self._node(node)
            except PolicyError as error:
                yield error

    def passes(self, source: str) -> bool:
        """Whether it needs no walk: it has none of the words, as most code; other alphabets
        have letters that Python takes for these."""
        if not self._enabled:
            return True
        for word in self._words:
            if word in source:
                return False
        return source.isascii()

    def allows(self, module: str) -> bool:
        """Whether an import of the module would pass."""
        try:
            if self._enabled:
                self._module(ast.Import(names=[], lineno=0), module, module)
        except PolicyError:
            return False
        return True

    def findings(self, source: str, tree: ast.AST, known, environment: str) -> list:
        """What is wrong with code as far as its imports and calls tell: as sandbox.Finding
        has it, in the order of the lines, MAX_PROBLEMS at the most."""
        found: list = []
        for refusal in islice(self.problems(source, tree, known), MAX_PROBLEMS):
            found.append({"kind": "policy", "line": refusal.lineno, "message": str(refusal), "hint": refusal.hint})
        for node, name in islice(self.missing(tree), MAX_PROBLEMS):
            told = {"message": f"No module named {name!r}", "hint": absent.hint(name, environment)}
            found.append({"kind": "import", "line": node.lineno, "column": node.col_offset + 1, **told})
        return sorted(found, key=lambda each: each["line"])[:MAX_PROBLEMS]

    def missing(self, tree: ast.AST):
        """The import statements of modules that are not there, each with the module's
        name, but those that the code is ready for and those that problems tells."""
        for node, ready in _imports(tree):
            if ready or isinstance(node, ast.ImportFrom) and node.level:
                continue
            for name in [str(node.module)] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]:
                if not _installed(name.partition(".")[0]) and not self._own(name) and self.allows(name):
                    yield node, name

    def _node(self, node) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._module(node, alias.name, alias.name)
        elif isinstance(node, ast.ImportFrom):
            self._from(node)
        else:
            name = node.func.id
            self._refuse(node, f"calling {name}()", self._calls[name], self._keys.get(name, "profile"))

    def _from(self, node: ast.ImportFrom) -> None:
        if node.level:
            self._refuse(node, "a relative import", "an import by the module's full name: this code is in no package", "profile")
        module = str(node.module)
        for alias in node.names:
            self._module(node, module, f"{module}.{alias.name}")

    def _module(self, node, name: str, full: str) -> None:
        """full is name, or name and what is imported from it, which may be a module too."""
        for part in _parents(full):
            if part in self._refused:
                self._refuse(node, f"import of {part}", "", "blocked_modules")
        for part in _parents(full):
            if part in self._allowed:
                return
            if part in self._blocked:
                self._refuse(node, f"import of {name}", self._blocked[part], self._keys.get(part, "profile"))
        if "*" in self._allowed or self._own(name):
            return
        top = name.partition(".")[0]
        if not _installed(top):
            return  # nothing to refuse: importing it says that it is not there, and try may catch that
        near = difflib.get_close_matches(name, self._allowed, 1, 0.75)
        instead = f"{near[0]}, if that was meant" if near else "one of the allowed modules"
        self._refuse(node, f"import of {name}", instead, "allowed_modules" if self._only else "profile")

    def _own(self, name: str) -> bool:
        path = (self._folder or place.session) + "/" + name.partition(".")[0]
        return _exists(path + ".py") or _exists(path)

    def _refuse(self, node, what: str, instead: str, key: str):
        rule = {"profile": "by the sandbox's profile"}.get(key, f"by {key}")
        hint = f"use {instead}" if instead else "this sandbox was created without it"
        raise PolicyError(f"line {node.lineno}: {what} is not allowed {rule}: {hint} (policy: {key})", node.lineno, hint)


_CATCHES = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def _imports(tree: ast.AST) -> list:
    """Each import statement of a module, and whether a failure of it is caught."""
    found = []
    todo: list = [(tree, False)]
    while todo:
        node, ready = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, ready))
        caught: list = []
        if isinstance(node, (ast.Try, ast.TryStar)):
            caught = node.body if any(handler.type is None or _CATCHES & _named(handler.type) for handler in node.handlers) else []
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            names: set = set().union(*(_named(item.context_expr) for item in node.items))
            caught = node.body if "suppress" in names and _CATCHES & names else []
        todo += [(each, ready or each in caught) for each in _children(node) if isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case))]
    return sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset))


def _named(node: ast.AST) -> set:
    return {getattr(each, "id", getattr(each, "attr", "")) for each in _walk(node)}


def _parents(name: str):
    while name:
        yield name
        name = name.rpartition(".")[0]


def _installed(top: str) -> bool:
    if top in sys.modules or top in sys.stdlib_module_names:
        return True
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _bound(tree: ast.AST) -> set:
    """Names that the code itself gives a meaning: a function of the user's own named
    compile, or `from re import compile`, is not the built-in one."""
    names = set()
    for node in _walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return names
