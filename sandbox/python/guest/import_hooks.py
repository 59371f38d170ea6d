"""Calls a function with a module as soon as any code has imported the module, and provides modules that are not
installed."""

import importlib.machinery
import sys
import types
from collections.abc import Callable

_pending: "dict[str, Callable[[types.ModuleType], None]]" = {}


def when_imported(name: str, callback: "Callable[[types.ModuleType], None]") -> None:
    """Calls callback with the module, now or once it has been imported."""
    module = sys.modules.get(name)
    if module is not None:
        callback(module)
    else:
        _pending[name] = callback
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)


def all_pending(names: "frozenset[str]") -> bool:
    """Tells whether each of these modules has a callback and is not imported yet."""
    return names <= _pending.keys() and _Finder in sys.meta_path


def provide(modules: "dict[str, types.ModuleType]") -> None:
    """Makes these modules importable where no others of their names are installed."""
    sys.meta_path.append(_Provider(modules))


class _Provider:
    """The last finder of modules. It is the loader of its modules as well, which are ready."""

    def __init__(self, modules):
        self._modules = modules

    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if name not in self._modules or name != package and sys.modules.get(package) is not self._modules[package]:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name == package)  # type: ignore[arg-type]

    def create_module(self, spec):
        return self._modules[spec.name]

    def exec_module(self, module):
        pass


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        callback = _pending.pop(name, None)
        if callback is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, callback)  # type: ignore[assignment]
        return spec


class _Loader:
    """The original loader of a module, and a callback that runs after it."""

    def __init__(self, loader, callback):
        self._loader, self._callback = loader, callback

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._callback(module)
