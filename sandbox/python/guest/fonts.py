"""The fonts of figures: the machine's fonts for scripts that matplotlib's own font lacks, and fonts in memory.

matplotlib keeps the file of a font open and reads it in small pieces, a thousand times a plot. A guest does not inherit
the zygote's descriptors, so without this module each guest opens its fonts again, which takes milliseconds, and a hook
of matplotlib does so at each fork. Guests share the memory, which makes both reading and forking faster.
"""

import contextlib
import io
import typing
from collections.abc import Iterator

HOOKED_MODULE = "matplotlib.font_manager"  # its hook makes a child forget the fonts that are open
_SUFFIXES = (".ttf", ".otf", ".ttc")

# Fonts for scripts that DejaVu Sans lacks, by the names that matplotlib reads in Debian's packages fonts-noto-cjk and
# fonts-noto-core. They are few, because a text opens all of them.
FALLBACKS = (
    "Noto Sans CJK JP",  # each font of the file has the characters of all its languages
    "Noto Sans Devanagari",
    "Noto Sans Bengali",
    "Noto Sans Tamil",
    "Noto Sans Thai",
)


def use_fallbacks(matplotlib: typing.Any) -> None:
    """Makes figures draw the characters that the default font lacks with those of FALLBACKS that the machine has.
    matplotlib is the module, whose font_manager is imported."""
    installed = {font.name for font in matplotlib.font_manager.fontManager.ttflist}
    found = [name for name in FALLBACKS if name in installed]
    for settings in (matplotlib.rcParams, matplotlib.rcParamsDefault):
        if found and settings["font.family"] == ["sans-serif"]:
            settings["font.family"] = ["sans-serif", *found]


class FontFile(io.BytesIO):
    """The file of a font in memory. Its name is its path, like that of a file."""

    name = ""


@contextlib.contextmanager
def kept_in_memory() -> "Iterator[list[str]]":
    """Loads each font that is opened in its context into memory. Yields the growing list of their paths."""
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
