"""The fonts of figures: the machine's fonts for scripts that matplotlib's own font lacks, and fonts in memory.

matplotlib keeps the file of a font open and reads it in small pieces, a thousand times a plot. A guest does not inherit
the zygote's descriptors, so without this module each guest opens its fonts again, which takes milliseconds, and a hook
of matplotlib does so at each fork. Guests share the memory, which makes both reading and forking faster.
"""

import contextlib
import functools
import io
import logging
import sys
import typing
import unicodedata
import warnings
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
_CJK_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")
_USER_CODE = "<execution "  # the start of the file names of user code
told: "set[str]" = set()  # what warnings of this run have said


def use_fallbacks(matplotlib: typing.Any) -> None:
    """Makes figures draw the characters that a font lacks with those of FALLBACKS that the machine has, even if code
    has set a font. matplotlib is the module, whose font_manager is imported."""
    manager = matplotlib.font_manager.fontManager
    find = manager._find_fonts_by_props
    installed = {font.name for font in manager.ttflist}
    paths = [manager.findfont(name, fallback_to_default=False) for name in FALLBACKS if name in installed]
    if not paths or getattr(find, "has_fallbacks", False):
        return

    @functools.wraps(find)
    def find_with_fallbacks(prop, fontext="ttf", *args, **options):
        found = find(prop, fontext, *args, **options)
        return found + [path for path in paths if path not in found] if fontext == "ttf" else found

    find_with_fallbacks.has_fallbacks = True  # type: ignore[attr-defined]
    manager._find_fonts_by_props = find_with_fallbacks


def explain_missing(matplotlib: typing.Any) -> None:
    """Makes matplotlib say once in a run, and not for each character and text, that a font is missing."""
    matplotlib._text_helpers.warn_on_missing_glyph = _warn_about_glyph
    logger = logging.getLogger("matplotlib.font_manager")
    if _explain_font not in logger.filters:
        logger.addFilter(_explain_font)


def _warn_about_glyph(codepoint: int, _fonts: str = "") -> None:
    character = chr(codepoint)
    script = unicodedata.name(character, "unnamed").split()[0].split("-")[0]
    if unicodedata.category(character)[0] != "L":
        text = "emoji and symbols such as {}, which are drawn as boxes: write words, or symbols like ▲ ✓ ★"
        script = "symbols"
    else:
        package = "fonts-noto-cjk" if script in _CJK_SCRIPTS else "fonts-noto-core"
        text = f"{script} characters such as {{}}, which are drawn as boxes: Debian's package {package} has one"
    if script not in told:
        told.add(script)
        warnings.warn(f"no font of figures has {text.format(character)}", UserWarning, stacklevel=_level())


def _level() -> int:
    """Returns the stack level of the innermost frame of user code, seen from the caller, or one above all frames."""
    frame: typing.Any = sys._getframe(1)
    level = 1
    while frame is not None and not frame.f_code.co_filename.startswith(_USER_CODE):
        frame, level = frame.f_back, level + 1
    return level


def _explain_font(record: logging.LogRecord) -> bool:
    """Makes the message about a font that is missing shorter. Returns False for one that was there in this run."""
    text = record.getMessage()
    if not text.startswith("findfont: ") or "not found" not in text:
        return True
    wanted = record.args[-1] if isinstance(record.args, tuple) and record.args else ""
    if f"font {wanted}" in told:
        return False
    told.add(f"font {wanted}")
    record.msg, record.args = "this machine has no font %s: figures use their default fonts", (wanted,)
    return True


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
