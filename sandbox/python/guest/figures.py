"""Draws a matplotlib figure as PNG once, and crops it to the same part as savefig(bbox_inches="tight")."""

import builtins
import contextlib
import copy
import gc
import io
import struct
import sys
import typing
import zlib

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

_DEFAULT_SETTINGS = (("dpi", "figure"), ("facecolor", "auto"), ("transparent", False))
_STRIP_ROWS = 64  # rows that are compressed at a time; few, because a guest copies each page that it writes to
_LEVEL, _UP = 1, 2  # the level of zlib; the filter of PNG that stores the difference of a row from the row above
_RGB, _RGBA = (2, 3), (6, 4)  # the color type of PNG, and the bytes of a pixel


def is_empty(figure) -> bool:
    """Tells whether a figure has nothing but its background. plt.figure() before df.plot(), which makes another, and
    plt.savefig() after plt.show() leave such figures."""
    return len(figure.get_children()) <= 1


def png(figure) -> bytes:
    """Returns the same PNG as savefig(bbox_inches="tight"). savefig draws twice, to measure and to paint. This function
    draws once and crops the drawing, unless something lies beyond its edges."""
    matplotlib = sys.modules["matplotlib"]
    settings = matplotlib.rcParams
    is_default = all(settings["savefig." + name] == default for name, default in _DEFAULT_SETTINGS)
    if not is_default or not hasattr(figure.canvas, "buffer_rgba"):
        return _savefig(figure, "tight")
    with _cheap_drawing(figure):
        figure.canvas.draw()
        tight = figure.get_tightbbox()
    box, dpi = tight.padded(settings["savefig.pad_inches"]), figure.dpi
    width, height = figure.canvas.get_width_height()
    if tight.x0 < 0 or tight.y0 < 0 or tight.x1 * dpi > width or tight.y1 * dpi > height:
        return _savefig(figure, box)
    drawn = sys.modules["numpy"].asarray(figure.canvas.buffer_rgba())
    background = [round(255 * part) for part in matplotlib.colors.to_rgba(figure.get_facecolor())]
    left, top = round(box.x0 * dpi), height - round(box.y1 * dpi)
    return _encode(drawn, background, left, top, int(box.width * dpi), int(box.height * dpi), dpi)


def _savefig(figure, box) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", bbox_inches=box)
    return held.getvalue()


# -- drawing


@contextlib.contextmanager
def _cheap_drawing(figure):
    """Makes a drawing cheaper: the axes cache their ticks, simple markers are copied without deepcopy, and the garbage
    collector is off, because nearly all objects of a drawing are still in use."""
    remembered = []
    collects = gc.isenabled()
    markers: typing.Any = sys.modules.get("matplotlib.markers")
    replaces_copy = getattr(markers, "copy", None) is copy
    try:
        gc.disable()
        if replaces_copy:
            markers.copy = _Copies()
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if _Ticks.suits(axis):
                    remembered.append(_Ticks(axis))
        yield
    finally:
        if replaces_copy:
            markers.copy = copy
        if collects:
            gc.enable()
        for each in remembered:
            each.forget()


class _Copies:
    """Replaces the module copy in matplotlib's markers. Each tick has three lines, and each line deep-copies a marker,
    which takes a tenth of the time of a drawing. A marker that only has a name can share its fields with its copy,
    because neither changes them in place."""

    def __getattr__(self, name):
        return getattr(copy, name)

    @staticmethod
    def deepcopy(style):
        has_only_name = (
            type(style) is dict
            and type(style.get("_marker")) in (str, int)
            and style.get("_user_transform", style) is None
        )
        return style.copy() if has_only_name else copy.deepcopy(style)


class _Ticks:
    """A cache of the ticks of an axis and the boxes of their labels. It is valid while the state on which they depend
    is the same.

    A drawing needs them ten times, to place the title, the label and the edges, and measuring needs them again. Without
    the cache an axis computes them each time, which took a third of the time of a plot. The cache belongs to one axis
    and lasts until forget is called.
    """

    def __init__(self, axis):
        self._axis = axis
        self._compute, self._measure = axis._update_ticks, axis._get_ticklabel_bboxes
        self._state: list | None = None
        self._ticks = self._renderer = self._boxes = None
        axis._update_ticks, axis._get_ticklabel_bboxes = self._update, self._bboxes

    @staticmethod
    def suits(axis) -> bool:
        """Tells whether the axis is of matplotlib's own class and no code has replaced its methods."""
        kinds = sys.modules["matplotlib.axis"]
        default = (
            axis.axes.name == "rectilinear"
            and type(axis) in (kinds.XAxis, kinds.YAxis)
            and "_update_ticks" not in vars(axis)
        )
        return default and hasattr(axis, "_update_ticks") and hasattr(axis, "_get_ticklabel_bboxes")

    def forget(self) -> None:
        for name in ("_update_ticks", "_get_ticklabel_bboxes"):
            vars(self._axis).pop(name, None)

    def _now(self) -> list:
        """Returns the state on which the ticks and their positions depend, and the state that computing them changes: a
        formatter that several axes share keeps the values of its last call."""
        axis = self._axis
        places, state = [axis.axes], [axis.axes.figure.dpi]
        for ticker in (axis.major, axis.minor):
            state += ticker.locator, ticker.formatter, ticker.formatter.get_offset()
            owner = getattr(ticker.locator.axis, "axes", axis.axes)  # for axes that share it, the first of them
            if owner not in places:
                places.append(owner)
        for axes in places:
            state += *axes.viewLim.bounds, *axes.bbox.bounds
        return state

    def _update(self):
        if self._state is None or self._now() != self._state:
            self._ticks, self._boxes = self._compute(), None
            self._state = self._now()
        return self._ticks

    def _bboxes(self, ticks, renderer):
        if ticks is not self._ticks or self._now() != self._state:
            return self._measure(ticks, renderer)
        if self._boxes is None or renderer is not self._renderer:
            self._renderer, self._boxes = renderer, self._measure(ticks, renderer)
        return self._boxes


# -- writing


def _encode(drawn, background: "list[int]", left: int, top: int, width: int, height: int, dpi: float) -> bytes:
    """Returns the PNG of a part of a drawing, an RGBA array, with the background beyond its edges.

    Pillow tries five filters on each row, which takes twice as long as all the rest. One filter suits lines and letters
    on paper, and pictures as well.
    """
    numpy = sys.modules["numpy"]
    rows, columns = drawn.shape[:2]
    color, depth = _RGB if background[3] == 255 and drawn[..., 3].min() == 255 else _RGBA
    pixels, background_pixel = (
        part.view(numpy.uint32)[..., 0] for part in (drawn, numpy.array(background, numpy.uint8))
    )
    inside = slice(max(left, 0), min(left + width, columns))
    packer = zlib.compressobj(_LEVEL)
    packed = []
    above: typing.Any = 0
    for first in range(0, height, _STRIP_ROWS):
        count = min(_STRIP_ROWS, height - first)
        strip = numpy.full((1 + count, width), background_pixel)
        strip[0] = above
        begin, end = max(first + top, 0), min(first + top + count, rows)
        if begin < end:
            place = slice(1 + begin - top - first, 1 + end - top - first)
            strip[place, inside.start - left : inside.stop - left] = pixels[begin:end, inside]
        above = strip[-1]
        parts = strip.view(numpy.uint8).reshape(1 + count, width, 4)
        lines = numpy.full((count, 1 + width * depth), _UP, numpy.uint8)
        target = lines[:, 1:].reshape(count, width, depth)  # a view
        differences = parts[1:] - parts[:-1]
        for part in range(depth):
            target[:, :, part] = differences[:, :, part]
        packed.append(packer.compress(lines))
    packed.append(packer.flush())
    meter = round(dpi / 0.0254)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0)),
        (b"pHYs", struct.pack(">IIB", meter, meter, 1)),
        (b"IDAT", b"".join(packed)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
        for name, data in chunks
    )
