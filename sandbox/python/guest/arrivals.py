"""Modules that are to be met as soon as they are imported, by whoever that is."""

import importlib.machinery
import sys
import types
from collections.abc import Callable

_awaited: "dict[str, Callable[[types.ModuleType], None]]" = {}


def meet(name: str, greet: "Callable[[types.ModuleType], None]") -> None:
    """Calls greet with the module, now or when it has been imported."""
    module = sys.modules.get(name)
    if module is not None:
        greet(module)
    else:
        _awaited[name] = greet
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)


def awaited(names: "tuple[str, ...]") -> bool:
    """Whether all of these are still to come, and will be met."""
    for name in names:
        if name not in _awaited:
            return False
    return _Finder in sys.meta_path


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        greet = _awaited.pop(name, None)
        if greet is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, greet)  # type: ignore[assignment]  # it has all that one has
        return spec


class _Loader:
    """A module's own loader, with a greeting after it."""

    def __init__(self, loader, greet):
        self._loader, self._greet = loader, greet

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._greet(module)
