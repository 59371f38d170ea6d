import io
import os

import matplotlib
import matplotlib.font_manager as manager
import pytest
from matplotlib import ft2font

import fonts

FILE = matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"


def files():
    """What this process has open."""
    return [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")]


def measured(font):
    font.set_size(12, 100)
    font.set_text("some text")
    return font.get_width_height()


def test_a_font_is_held_in_memory():
    from_file = ft2font.FT2Font(FILE)
    assert FILE in files()
    wide = measured(from_file)
    del from_file
    with fonts.held() as names:
        font = ft2font.FT2Font(FILE)
    assert FILE not in files() and names == [FILE]
    assert (font.fname, measured(font)) == (FILE, wide)


def test_nothing_else_is(tmp_path):
    other = tmp_path / "x.txt"
    with fonts.held() as names:
        with io.open(other, "w") as opened:
            opened.write("x")
        with io.open(other, "rb") as opened:
            assert type(opened) is io.BufferedReader
        with pytest.raises(FileNotFoundError):
            io.open("/none.ttf", "rb")
    assert names == [] and io.open is open


def test_the_module_with_the_hook_is_the_one_that_keeps_fonts():
    assert manager.__name__ == fonts.HOOKED
    with fonts.held() as names:
        manager._get_font.cache_clear()
        manager.get_font(FILE)
    manager._get_font.cache_clear()
    assert FILE in names
