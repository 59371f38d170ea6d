"""Fonts that children have with them.

matplotlib keeps the file of a font open, and reads from it bit by bit: a thousand times
for a plot. A child has none of the zygote's descriptors, so it had to open its fonts anew,
which took some milliseconds, and a hook of matplotlib's in each fork made it do so. From
memory, which children share, both reading and forking are faster.
"""

import contextlib
import io
import typing
from collections.abc import Iterator

HOOKED = "matplotlib.font_manager"  # whose hook makes a child forget the fonts that are open
_KINDS = (".ttf", ".otf", ".ttc")


class Held(io.BytesIO):
    """A font's file in memory; name is where it was read, as a file's is."""

    name = ""


@contextlib.contextmanager
def held() -> "Iterator[list[str]]":
    """Within, a font that is opened is held in memory; yields the names of those, as they come."""
    names: list[str] = []
    plain: typing.Any = io.open

    def hold(file, mode="r", *args, **options):
        opened = plain(file, mode, *args, **options)
        if mode != "rb" or not str(file).lower().endswith(_KINDS):
            return opened
        with opened:
            font = Held(opened.read())
        font.name = file
        names.append(file)
        return font

    io.open = hold  # matplotlib's extension looks for it there
    try:
        yield names
    finally:
        io.open = plain
