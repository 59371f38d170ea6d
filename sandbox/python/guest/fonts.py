"""Keeps the files of fonts in memory from the zygote on.

matplotlib keeps the file of a font open and reads it in small pieces, a thousand times a plot. A guest has none of the
zygote's descriptors, so each guest opened its fonts again, which took milliseconds, and a hook of matplotlib made it do
so at each fork. Memory is shared by guests, and makes both reading and forking faster.
"""

import contextlib
import io
import typing
from collections.abc import Iterator

HOOKED_MODULE = "matplotlib.font_manager"  # its hook makes a child forget the fonts that are open
_SUFFIXES = (".ttf", ".otf", ".ttc")


class FontFile(io.BytesIO):
    """The file of a font in memory. name is its path, as a file has it."""

    name = ""


@contextlib.contextmanager
def kept_in_memory() -> "Iterator[list[str]]":
    """Keeps fonts that are opened in its context in memory. Yields the list of their paths, which grows."""
    paths: list[str] = []
    plain: typing.Any = io.open

    def open_font(file, mode="r", *args, **options):
        opened = plain(file, mode, *args, **options)
        if mode != "rb" or not str(file).lower().endswith(_SUFFIXES):
            return opened
        with opened:
            font = FontFile(opened.read())
        font.name = file
        paths.append(file)
        return font

    io.open = open_font  # the extension of matplotlib calls it
    try:
        yield paths
    finally:
        io.open = plain
