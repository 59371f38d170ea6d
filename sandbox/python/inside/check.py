"""Import and call rules for the user's own code: an early, helpful error for an
agent, before anything runs. They are a courtesy and no wall."""

import ast
import os


class PolicyError(Exception):
    """The code does what the sandbox's policy rules out; nothing of it has run."""


def check(tree: ast.AST, rules: dict) -> None:
    """Raises PolicyError for the first import or bare call that rules do not allow."""
    if not rules.get("enabled"):
        return
    allowed = set(rules.get("allowed") or ())
    blocked = rules.get("blocked") or {}
    refused = set(rules.get("blocked_modules") or ())
    calls = rules.get("calls") or {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _module(alias.name, node, allowed, blocked, refused)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                _refuse(node, "a relative import", "there is no package around this code; import by full name", "")
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                _module(full if full in allowed else str(node.module), node, allowed, blocked, refused)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
            _refuse(node, f"a call of {node.func.id}()", "use " + calls[node.func.id] + " instead", "profile")


def _parents(name: str):
    while name:
        yield name
        name = name.rpartition(".")[0]


def _module(name: str, node, allowed: set, blocked: dict, refused: set) -> None:
    for part in _parents(name):
        if part in refused:
            _refuse(node, f"import of {name}", "this sandbox was created with it in blocked_modules", "blocked_modules")
        if part in allowed and part not in blocked:
            return
        if part in blocked:
            _refuse(node, f"import of {name}", "use " + blocked[part] + " instead", "profile")
    top = name.partition(".")[0]
    if os.path.exists(f"/session/{top}.py") or os.path.isdir(f"/session/{top}"):
        return
    _refuse(node, f"import of {name}", "it is not among the allowed modules; GET help/functions lists them", "allowed_modules")


def _refuse(node, what: str, instead: str, key: str) -> None:
    error = PolicyError(f"line {node.lineno}: {what} is not allowed: {instead}" + (f" (policy: {key})" if key else ""))
    error.lineno = node.lineno  # type: ignore[attr-defined]
    raise error
