import dataclasses
import io
import os

import fonts
import matplotlib
import matplotlib.font_manager as manager
import pytest
from matplotlib import ft2font

FILE = matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"


def files():
    """Returns the files that this process has open."""
    return [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{fd}")
    ]


def measured(font):
    font.set_size(12, 100)
    font.set_text("some text")
    return font.get_width_height()


def test_font_is_kept_in_memory():
    before = files().count(FILE)
    from_file = ft2font.FT2Font(FILE)
    assert files().count(FILE) == before + 1
    with fonts.kept_in_memory() as names:
        font = ft2font.FT2Font(FILE)
    assert (files().count(FILE), names) == (before + 1, [FILE])
    assert (font.fname, measured(font)) == (FILE, measured(from_file))


def test_other_files_are_opened_as_usual(tmp_path):
    other = tmp_path / "x.txt"
    with fonts.kept_in_memory() as names:
        opener = io.open  # inside it is another function
        with opener(other, "w") as opened:
            opened.write("x")
        with opener(other, "rb") as opened:
            assert type(opened) is io.BufferedReader
        with pytest.raises(FileNotFoundError):
            opener("/none.ttf", "rb")
    assert names == [] and io.open is open


def test_hooked_module_is_the_one_that_keeps_fonts():
    assert manager.__name__ == fonts.HOOKED_MODULE
    with fonts.kept_in_memory() as names:
        manager._get_font.cache_clear()
        manager.get_font(FILE)
    manager._get_font.cache_clear()
    assert FILE in names


@pytest.fixture
def devanagari(monkeypatch):
    """Installs a font for another script: a file of matplotlib's, with the name of that font."""
    other = next(font for font in manager.fontManager.ttflist if font.name == "STIXGeneral")
    entry = dataclasses.replace(other, name="Noto Sans Devanagari")
    monkeypatch.setattr(manager.fontManager, "ttflist", [*manager.fontManager.ttflist, entry])
    monkeypatch.setattr(
        manager.fontManager, "_find_fonts_by_props", manager.fontManager._find_fonts_by_props, raising=False
    )
    manager.fontManager._findfont_cached.cache_clear()
    yield entry.fname
    manager.fontManager._findfont_cached.cache_clear()


def _fonts_of(family):
    return list(manager.fontManager._find_fonts_by_props(manager.FontProperties(family=family)))


@pytest.mark.parametrize("family", [None, "serif", "DejaVu Sans Mono", ["No Such Font"], ["sans-serif", "serif"]])
def test_figures_use_the_fonts_of_the_machine_for_what_a_font_lacks(devanagari, family):
    before = _fonts_of(family)
    assert before and devanagari not in before
    for _ in range(2):
        fonts.use_fallbacks(matplotlib)
        assert _fonts_of(family) == [*before, devanagari]


def test_a_font_is_not_its_own_fallback(devanagari):
    fonts.use_fallbacks(matplotlib)
    assert _fonts_of("Noto Sans Devanagari") == [devanagari]


def test_without_such_fonts_nothing_changes(monkeypatch):
    plain = [font for font in manager.fontManager.ttflist if "Noto" not in font.name]
    monkeypatch.setattr(manager.fontManager, "ttflist", plain)
    before = manager.fontManager._find_fonts_by_props
    fonts.use_fallbacks(matplotlib)
    assert manager.fontManager._find_fonts_by_props == before
