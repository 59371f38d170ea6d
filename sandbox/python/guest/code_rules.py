"""Import and call rules for the user's own code. They give an agent an early and helpful error, before the code runs.

They are not a protection: the isolation layers protect the machine.
"""

import ast
import difflib
import importlib.util
import os
import sys
from itertools import islice

import directories
import missing_modules

MAX_PROBLEMS = 100  # of one check

_walk, _children, _exists = ast.walk, ast.iter_child_nodes, os.path.exists


class PolicyError(Exception):
    """Raised if the policy of the sandbox does not allow the code. Nothing of the code has run."""

    __module__ = "builtins"

    def __init__(self, message: str, line: int, hint: str):
        super().__init__(message)
        self.lineno = line
        self.hint = hint


class Rules:
    """The rules of one sandbox, made from the JSON of policy.Rules in Go.

    rules has: enabled; allowed, a list of modules ("*" is any); blocked and calls, which map a name to its
    replacement; blocked_modules of the request; keys, which maps a name to the policy key that blocks it if that is
    not the profile. Modules in folder, by default the session's, may always be imported.
    """

    def __init__(self, rules: dict, folder: str = ""):
        self._enabled = bool(rules.get("enabled"))
        self._allowed = set(rules.get("allowed") or ())
        self._allowed_only = bool(rules.get("allowed_only"))
        self._blocked = dict(rules.get("blocked") or {})
        self._blocked_by_request = set(rules.get("blocked_modules") or ())
        self._calls = dict(rules.get("calls") or {})
        self._keys = dict(rules.get("keys") or {})
        self._folder = folder
        self._keywords = ("import", *self._calls)

    def check(self, source: str, tree: ast.AST, known=()) -> None:
        """Raises PolicyError for the first import or bare call, in the order of the lines, that the rules do not allow.
        known has the names that the user has bound earlier."""
        for error in self.problems(source, tree, known):
            raise error

    def problems(self, source: str, tree: ast.AST, known=()):
        """Yields each PolicyError, in the order of the lines."""
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
                self._check_node(node)
            except PolicyError as error:
                yield error

    def passes(self, source: str) -> bool:
        """Tells whether a fast check proves that the code follows the rules: it contains no word of the rules. Code
        with letters of other alphabets needs the slow check, because Python may read them as ASCII letters."""
        if not self._enabled:
            return True
        for word in self._keywords:
            if word in source:
                return False
        return source.isascii()

    def allows(self, module: str) -> bool:
        """Tells whether an import of the module would pass."""
        try:
            if self._enabled:
                self._check_module(ast.Import(names=[], lineno=0), module, module)
        except PolicyError:
            return False
        return True

    def findings(self, source: str, tree: ast.AST, known, environment: str) -> list:
        """Returns up to MAX_PROBLEMS sandbox.Finding, in the order of the lines: imports and calls that are not allowed
        or will fail."""
        found: list = []
        for refusal in islice(self.problems(source, tree, known), MAX_PROBLEMS):
            found.append({"kind": "policy", "line": refusal.lineno, "message": str(refusal), "hint": refusal.hint})
        for node, name in islice(self.missing(tree), MAX_PROBLEMS):
            message = {"message": f"No module named {name!r}", "hint": missing_modules.hint(name, environment)}
            found.append({"kind": "import", "line": node.lineno, "column": node.col_offset + 1, **message})
        return sorted(found, key=lambda each: each["line"])[:MAX_PROBLEMS]

    def missing(self, tree: ast.AST):
        """Yields the import statements of missing modules, each with the name of the module. It leaves out imports
        whose failure the code catches, and imports that problems reports."""
        for node, caught in _imports(tree):
            if caught or isinstance(node, ast.ImportFrom) and node.level:
                continue
            for name in (
                [str(node.module)] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            ):
                if not _installed(name.partition(".")[0]) and not self._is_own(name) and self.allows(name):
                    yield node, name

    def _check_node(self, node) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self._check_module(node, alias.name, alias.name)
        elif isinstance(node, ast.ImportFrom):
            self._check_from(node)
        else:
            name = node.func.id
            self._refuse(node, f"calling {name}()", self._calls[name], self._keys.get(name, "profile"))

    def _check_from(self, node: ast.ImportFrom) -> None:
        if node.level:
            self._refuse(
                node, "a relative import", "the full name of the module: this code is not in a package", "profile"
            )
        module = str(node.module)
        for alias in node.names:
            self._check_module(node, module, f"{module}.{alias.name}")

    def _check_module(self, node, name: str, full: str) -> None:
        """Checks an import. full is name, or name with the imported name, which may also be a module."""
        for part in _parents(full):
            if part in self._blocked_by_request:
                self._refuse(node, f"import of {part}", "", "blocked_modules")
        for part in _parents(full):
            if part in self._allowed:
                return
            if part in self._blocked:
                key = self._keys.get(part, "profile")
                self._refuse(node, f"import of {name}", self._blocked[part], key, _operators(part, key))
        if "*" in self._allowed or self._is_own(name):
            return
        top = name.partition(".")[0]
        if not _installed(top):
            return  # the import itself fails, which the code may catch
        near = difflib.get_close_matches(name, self._allowed, 1, 0.75)
        instead = f"{near[0]}, if you meant that" if near else "one of the allowed modules"
        if top[0] == "_" and top in sys.stdlib_module_names:
            instead = "the public module that it belongs to"
        key = "allowed_modules" if self._allowed_only else "profile"
        self._refuse(node, f"import of {name}", instead, key, _operators(top, key))

    def _is_own(self, name: str) -> bool:
        path = (self._folder or directories.session) + "/" + name.partition(".")[0]
        return _exists(path + ".py") or _exists(path)

    def _refuse(self, node, what: str, instead: str, key: str, more: str = ""):
        rule = {"profile": "by the sandbox's profile"}.get(key, f"by {key}")
        hint = (f"use {instead}" if instead else "this sandbox was created without it") + more
        raise PolicyError(
            f"line {node.lineno}: {what} is not allowed {rule}: {hint} (policy: {key})", node.lineno, hint
        )


_CATCHING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def _imports(tree: ast.AST) -> list:
    """Returns each import statement of a module, and whether the code catches its failure."""
    found = []
    todo: list = [(tree, False)]
    while todo:
        node, caught = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, caught))
        caught_body: list = []
        if isinstance(node, (ast.Try, ast.TryStar)):
            if any(handler.type is None or _CATCHING & _names_in(handler.type) for handler in node.handlers):
                caught_body = node.body
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            names: set = set().union(*(_names_in(item.context_expr) for item in node.items))
            caught_body = node.body if "suppress" in names and _CATCHING & names else []
        todo += [
            (each, caught or each in caught_body)
            for each in _children(node)
            if isinstance(each, (ast.stmt, ast.excepthandler, ast.match_case))
        ]
    return sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset))


def _names_in(node: ast.AST) -> set:
    return {getattr(each, "id", getattr(each, "attr", "")) for each in _walk(node)}


def _operators(module: str, key: str) -> str:
    """Says how the operator can allow a module that the profile refuses."""
    return f"; the operator can allow it with --allowed-modules {module}" if key == "profile" else ""


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
    """Returns the names that the code itself binds. For example, a function compile that the user defines, or imports
    with `from re import compile`, is not the built-in function."""
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
