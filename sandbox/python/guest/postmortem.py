"""The variables of a failed run's frames, bounded, told without running code of theirs."""

import builtins
import types

import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

FRAMES = 8  # the innermost
NAMES = 20  # of one frame
ROOM = 8000  # characters of all
PREVIEW = 200

_HIDDEN = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def fill(frames: list, steps: list, given: dict) -> None:
    """Adds "variables" to the innermost of frames, told by steps; those that the failing
    line's function names come first. given are the helpers."""
    room = ROOM
    for frame, (code, _, live) in list(zip(reversed(frames), reversed(steps)))[:FRAMES]:
        shown: dict = {}
        source = live.f_locals if code.co_name != "<module>" else live.f_globals
        names = [name for name, value in list(source.items()) if not _hidden(name, value, given)]
        used = set(code.co_names).union(code.co_varnames, code.co_cellvars, code.co_freevars)
        for name in sorted(names, key=lambda name: name not in used)[:NAMES]:
            text = describe(source[name])
            room -= len(name) + len(text)
            if room < 0:
                return
            shown[values.readable(name, 100)] = text
        if shown:
            frame["variables"] = shown


def describe(value) -> str:
    """A preview; of a DataFrame or array what it is like."""
    shape = values.shape(value)
    if shape is None:
        return values.preview(value, PREVIEW)
    text = f"<{values.type_name(value).rpartition('.')[2]} {'x'.join(map(str, shape))}"
    if len(shape) == 2 and hasattr(value, "dtypes"):
        pairs = list(zip(value.columns[:NAMES].tolist(), value.dtypes[:NAMES].tolist()))
        text += ": " + ", ".join(f"{values.preview(name, 60)} {kind}" for name, kind in pairs)
    else:
        text += f" {value.dtype}"
    return values.readable(text, PREVIEW * 3) + ">"


def _hidden(name: str, value, given: dict) -> bool:
    if type(name) is not str or name[:2] == "__" or name[:1] == "." or issubclass(type(value), _HIDDEN):
        return True
    return name == "context" or name in given and given[name] is value
