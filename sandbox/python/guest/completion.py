"""Completes code at a cursor, from the values in a session.

No user code runs. Attributes are looked up in the dictionaries of objects and of their classes. The type of a call's
result is the return annotation of the function. If these do not determine the completions, "settled" is False in the
answer, and the service uses a slower tool.
"""

import ast
import builtins
import importlib.machinery
import keyword
import pkgutil
import re
import sys
import types
from typing import TypeGuard

import incomplete_code
import lookup
import notebook_code
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_MATCHES = 200
MAX_DEPTH = 30  # of an expression that is inferred

_IMPORT = re.compile(r"\s*import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*([\w.]*)$")
_FROM = re.compile(r"\s*from\s+([\w.]*)$")
_FROM_IMPORT = re.compile(r"\s*from\s+([\w.]+)\s+import\s+(?:\(?\s*)(?:\w+(?:\s+as\s+\w+)?\s*,\s*)*(\w*)$")
_WORD = re.compile(r"[^\W\d]?\w*$")
_LITERALS = {
    **dict.fromkeys((ast.List, ast.ListComp), list),
    **dict.fromkeys((ast.Dict, ast.DictComp), dict),
    **dict.fromkeys((ast.Set, ast.SetComp), set),
    ast.Tuple: tuple,
    ast.JoinedStr: str,
}
_STR_LISTS = ("split", "rsplit", "splitlines")
_STR_OTHER = "count find index rfind rindex encode startswith endswith partition rpartition".split()
_PATHS = (list, importlib._bootstrap_external._NamespacePath)  # type: ignore[attr-defined]  # of packages
_CALLABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType)
_CALLABLE += (types.WrapperDescriptorType, staticmethod, classmethod)  # type: ignore[assignment]
_mro = vars(type)["__mro__"].__get__


class Unknown:
    """An unknown value of a known class."""

    def __init__(self, kind: type):
        self.kind = kind


def complete(source: str, cursor: int, names: dict, allows) -> dict:
    """Returns {matches: [{text, type}], cursor_start, cursor_end, settled}. names has the names of the session;
    allows(module) tells whether code may import the module."""
    cursor = min(max(cursor, 0), len(source))
    text = source[:cursor]
    string = incomplete_code.open_string(text)
    word = _WORD.search(text).group() if string is None else text[string + 1 :]  # type: ignore[union-attr]
    found, settled = _candidates(source, text, string, word, names, allows)
    matches = _matching(found, word)
    return {"matches": matches, "cursor_start": cursor - len(word), "cursor_end": cursor, "settled": settled}


def _candidates(source: str, text: str, string: "int | None", word: str, names: dict, allows) -> "tuple[dict, bool]":
    line = text.rpartition("\n")[2]
    if string is not None:
        return _keys(text[:string], _Scope(source, text, names)) if string >= 0 else {}, True
    for pattern in (_IMPORT, _FROM):
        if (at := pattern.match(line)) is not None:
            return _modules(at.group(1).rpartition(".")[0], allows), True
    if (at := _FROM_IMPORT.match(line)) is not None:
        module = _module(at.group(1))
        below = _modules(at.group(1), allows)
        return {**below, **_members(module)} if module is not None else below, module is not None
    scope = _Scope(source, text, names)
    before = text[: len(text) - len(word)]
    if before.endswith("."):
        base = incomplete_code.primary(before[:-1])
        value = scope.infer(incomplete_code.parse(base)) if base else None
        return (_members(value), True) if value is not None else ({}, not base)
    found = dict.fromkeys([*keyword.kwlist, *keyword.softkwlist], "keyword")
    found.update((name, _kind(value)) for name, value in lookup.pairs(vars(builtins)))
    found.update((name, _kind(value)) for name, value in names.items())
    found.update(
        (name, _kind(scope.infer(node)) if node is not None else "instance") for name, node in scope.bound.items()
    )
    found.update(_parameters(before, scope))
    return found, any(name.startswith(word) for name in found)


def _matching(found: dict, word: str) -> list:
    out = []
    for name, kind in found.items():
        if name.startswith("_") and not word.startswith("_"):
            continue
        rank = 0 if name.startswith(word) else 1 if name.lower().startswith(word.lower()) else 2
        if rank < 2:
            out.append((rank, kind != "param", name.startswith("_"), name.lower(), name, kind))
    return [{"text": values.readable(name, 200), "type": kind} for *_, name, kind in sorted(out)[:MAX_MATCHES]]


# -- values of names


class _Scope:
    """The names that the text itself binds, and then the names of the session. bound maps each name of the text to an
    expression, or to None if the expression is unknown."""

    def __init__(self, source: str, text: str, names: dict):
        self.names = names
        self.bound: dict = {}
        tree = incomplete_code.parse_lenient(notebook_code.without_commands(source), text.count("\n"))
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.bound[node.targets[0].id] = node.value
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.bound.setdefault(node.id, None)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    self.bound[alias.asname or alias.name.partition(".")[0]] = (node, alias)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.bound.setdefault(node.name, None)
            elif isinstance(node, ast.arg):
                self.bound.setdefault(node.arg, None)

    def infer(self, node, depth: int = 0):
        """Returns the value of an expression, an Unknown of its class, or None."""
        if depth > MAX_DEPTH or node is None:
            return None
        if isinstance(node, tuple):
            return _imported(*node)
        if isinstance(node, ast.Constant):
            return Unknown(type(node.value))
        if type(node) in _LITERALS:
            return Unknown(_LITERALS[type(node)])
        if isinstance(node, ast.Name):
            if node.id in self.bound:
                return self.infer(self.bound[node.id], depth + 1)
            return self.names.get(node.id, lookup.find(vars(builtins), node.id))
        if isinstance(node, ast.Await):
            return self.infer(node.value, depth + 1)
        if isinstance(node, ast.Attribute):
            return _attribute(self.infer(node.value, depth + 1), node.attr)
        if isinstance(node, ast.Call):
            return self._infer_call(node, depth)
        if isinstance(node, ast.Subscript):
            return _item(self.infer(node.value, depth + 1), node.slice)
        return None

    def _infer_call(self, node: ast.Call, depth: int):
        func = self.infer(node.func, depth + 1)
        if _is_class(func):
            return Unknown(func)
        if type(func) is types.MethodDescriptorType and func.__objclass__ is str:
            name = func.__name__
            return Unknown(
                list if name in _STR_LISTS else object if name in _STR_OTHER or name.startswith("is") else str
            )
        if type(func) is types.MethodType:
            func = func.__func__
        if type(func) is types.FunctionType:
            owner = self.infer(node.func.value, depth + 1) if isinstance(node.func, ast.Attribute) else None
            return _annotated_result(func, owner)
        return None


def _imported(node, alias):
    if isinstance(node, ast.Import):
        return _module(alias.name if alias.asname else alias.name.partition(".")[0])
    module = _module(node.module or "")
    if module is None:
        return None
    found = lookup.find(lookup.own_attributes(module), alias.name)
    return _module(f"{node.module}.{alias.name}") if found is None else found


def _module(name: str):
    return lookup.find(sys.modules, name)


def _is_class(value) -> "TypeGuard[type]":
    return issubclass(type(value), type)  # isinstance would call a __class__ property of user code


def _class_of(value) -> type:
    return value.kind if type(value) is Unknown else type(value)


def _own_attributes(value) -> dict:
    """Returns the attributes of the value itself."""
    return {} if type(value) is Unknown else lookup.own_attributes(value)


def _columns(value) -> list:
    if type(value) is Unknown or values.name_of(type(value)) != "DataFrame" or values.shape(value) is None:
        return []
    return [name for name in value.columns[:1000].tolist() if type(name) is str]


def _series() -> type:
    return lookup.find(lookup.own_attributes(_module("pandas")), "Series", object)


def _attribute(value, name: str):
    if value is None:
        return None
    if _is_class(value):
        found = lookup.in_class(value, name)
    else:
        found = lookup.find(_own_attributes(value), name)
        if found is None:
            found = lookup.in_class(_class_of(value), name)
        if found is None and name in _columns(value):
            found = Unknown(_series())
    if type(found) in (staticmethod, classmethod):
        return found.__func__
    if type(found) is property:
        return _annotated_result(found.fget, value) if type(found.fget) is types.FunctionType else None
    if type(found) in (types.GetSetDescriptorType, types.MemberDescriptorType):
        return None
    accessor = (
        lookup.find(_own_attributes(found), "_accessor")
        if values.name_of(type(found)) in ("Accessor", "CachedAccessor")
        else None
    )
    return Unknown(accessor) if accessor is not None and _is_class(accessor) else found


def _item(value, key):
    constant = key.value if isinstance(key, ast.Constant) else None
    if type(value) is dict:
        if type(constant) is str:
            return lookup.find(value, constant)
        return next((v for k, v in list(value.items()) if type(k) is int and k == constant), None)
    if type(value) in (list, tuple) and type(constant) is int and -len(value) <= constant < len(value):
        return value[constant]
    if value is None or values.name_of(_class_of(value)) != "DataFrame":
        return None
    return Unknown(_series() if type(constant) is str else _class_of(value))


def _annotated_result(func: types.FunctionType, owner):
    """Returns the type in the return annotation of a function."""
    annotation = lookup.find(func.__annotations__, "return")
    if type(annotation) is not str:
        return Unknown(annotation) if _is_class(annotation) else None
    name = annotation.partition("[")[0].partition("|")[0].strip().rpartition(".")[2]
    if name in ("Self", "FrameOrSeries", "NDFrameT"):
        return owner if type(owner) is Unknown else Unknown(owner if _is_class(owner) else type(owner))
    found = lookup.find(func.__globals__, name, lookup.find(vars(builtins), name))
    if not _is_class(found):  # the module imports it only for annotations
        package = func.__module__.partition(".")[0] if type(func.__module__) is str else ""
        modules = [
            m
            for key, m in lookup.pairs(sys.modules)
            if key.partition(".")[0] == package and type(m) is types.ModuleType
        ]
        members = (lookup.find(vars(m), name) for m in modules)
        found = next((member for member in members if _is_class(member)), None)
    return Unknown(found) if found is not None and _is_class(found) else None


# -- candidates


def _kind(value) -> str:
    if _is_class(value):
        return "class"
    if type(value) is types.ModuleType:
        return "module"
    kind = type(value)
    return "property" if kind is property else "function" if kind in _CALLABLE else "instance"


def _members(value) -> dict:
    found: dict = {}
    if type(value) is not types.ModuleType:
        for base in reversed(_mro(value if _is_class(value) else _class_of(value))):
            found.update((name, _kind(members)) for name, members in lookup.of_class(base))
    found.update((name, _kind(members)) for name, members in lookup.pairs(_own_attributes(value)))
    found.update((name, "instance") for name in _columns(value) if name.isidentifier())
    return found


def _keys(before: str, scope: _Scope) -> dict:
    """Returns the keys of the object that is subscripted before an open string."""
    if not before.endswith("["):
        return {}
    value = scope.infer(incomplete_code.parse(incomplete_code.primary(before[:-1].rstrip("["))))
    if type(value) is dict:
        return {key: "key" for key in list(value)[:10_000] if type(key) is str}
    return dict.fromkeys(_columns(value), "key") if value is not None else {}


def _parameters(before: str, scope: _Scope) -> dict:
    """Returns name= for each parameter of the function whose call is open."""
    at = incomplete_code.opening(before)
    if at < 0 or before[at] != "(" or not re.search(r"[(,]\s*$", before):
        return {}
    func = scope.infer(incomplete_code.parse(incomplete_code.primary(before[:at])))
    if _is_class(func):
        func = lookup.in_class(func, "__init__")
    if type(func) is types.MethodType:
        func = func.__func__
    if type(func) is not types.FunctionType:
        return {}
    code = func.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {f"{name}=": "param" for name in names[code.co_posonlyargcount :] if name not in ("self", "cls")}


def _modules(package: str, allows) -> dict:
    """Returns the modules of a package, or the top-level ones, that may be imported."""
    if not package:
        names = {*sys.stdlib_module_names, *(m.name for m in pkgutil.iter_modules()), "processor_pipeline"}
        return {name: "module" for name in names if allows(name)}
    parent = _module(package)
    paths = lookup.find(vars(parent), "__path__") if type(parent) is types.ModuleType else None
    if paths is None and "." not in package and parent is None:
        spec = importlib.machinery.PathFinder.find_spec(package)
        paths = spec.submodule_search_locations if spec is not None else None
    folders = [path for path in list(paths) if type(path) is str] if isinstance(paths, _PATHS) else []
    found = {m.name for m in pkgutil.iter_modules(folders)}
    return {name: "module" for name in found if allows(f"{package}.{name}")}
