"""Adds bounded previews of the variables in the frames of a failed run. It runs no code of their classes."""

import builtins
import types

import lookup
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_FRAMES = 8  # the innermost frames
MAX_NAMES = 20  # variables of one frame
MAX_TEXT = 8000  # characters of all variables
MAX_PREVIEW = 280

_HIDDEN = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def fill(frames: list, steps: list, initial: dict) -> None:
    """Adds "variables" to the innermost of frames, from steps. Variables that the function of the failing line uses
    come first. initial has the helpers, which are left out."""
    left = MAX_TEXT
    for frame, (code, _, frame_object) in list(zip(reversed(frames), reversed(steps)))[:MAX_FRAMES]:
        shown: dict = {}
        source = frame_object.f_locals if code.co_name != "<module>" else frame_object.f_globals
        found = [(name, value) for name, value in _pairs(source) if not _hidden(name, value, initial)]
        named = set(code.co_names).union(code.co_varnames, code.co_cellvars, code.co_freevars)
        for name, value in sorted(found, key=lambda pair: pair[0] not in named)[:MAX_NAMES]:
            text = values.preview(value, MAX_PREVIEW)
            left -= len(name) + len(text)
            if left < 0:
                return
            shown[values.readable(name, 100)] = text
        if shown:
            frame["variables"] = shown


def _pairs(source) -> list:
    """Returns the variables in f_locals or f_globals, which may be a dict, a view of a frame, or any mapping that a
    metaclass has prepared."""
    if isinstance(source, dict):
        return lookup.pairs(source)
    return [(name, value) for name, value in list(source.items()) if type(name) is str]


def _hidden(name: str, value, initial: dict) -> bool:
    if name[:2] == "__" or name[:1] == "." or issubclass(type(value), _HIDDEN):
        return True
    return name == "context" or name in initial and initial[name] is value
