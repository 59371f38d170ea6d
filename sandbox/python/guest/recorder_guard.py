"""Tells the recorder when the program calls a function that can take the recorder's events away.

While a program is recorded, such functions of sys and threading are replaced by functions that tell the recorder first.
So the recording says at once why it ends, and not only at the end of the run.
"""

import builtins
import functools

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones


class Guard:
    """The functions that are replaced at present."""

    def __init__(self):
        self._replaced: list = []  # module, name, original, replacement

    def replace(self, module, name: str, call) -> None:
        """Replaces a function of a module, if it exists, by call, which gets the original and the arguments."""
        original = getattr(module, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def replacement(*args, **kwargs):
            return call(original, *args, **kwargs)

        setattr(module, name, replacement)
        self._replaced.append((module, name, original, replacement))

    def restore(self) -> None:
        """Restores the functions that the program has not replaced, too."""
        for module, name, original, replacement in self._replaced:
            if getattr(module, name, None) is replacement:
                setattr(module, name, original)
        self._replaced.clear()
