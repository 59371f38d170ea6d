"""A matplotlib figure as PNG: drawn once, and cropped to what savefig(bbox_inches="tight") shows."""

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

_USUAL = (("dpi", "figure"), ("facecolor", "auto"), ("transparent", False))
_STRIP = 64  # rows that are made ready and compressed at a time: what is written to is a page that a fork must copy
_LEVEL, _UP = 1, 2  # of zlib; and PNG's filter that tells each row by what it differs in from the one above
_RGB, _RGBA = (2, 3), (6, 4)  # PNG's color type, and its bytes of a pixel


def png(figure) -> bytes:
    """What savefig(bbox_inches="tight") writes. That draws twice, to measure and to
    paint; here the one drawing is cropped, where nothing lies beyond its edges."""
    matplotlib = sys.modules["matplotlib"]
    settings = matplotlib.rcParams
    plain = all(settings["savefig." + name] == usual for name, usual in _USUAL)
    if not plain or not hasattr(figure.canvas, "buffer_rgba"):
        return _saved(figure, "tight")
    with _settled(figure):
        figure.canvas.draw()
        tight = figure.get_tightbbox()
    box, dpi = tight.padded(settings["savefig.pad_inches"]), figure.dpi
    width, height = figure.canvas.get_width_height()
    if tight.x0 < 0 or tight.y0 < 0 or tight.x1 * dpi > width or tight.y1 * dpi > height:
        return _saved(figure, box)
    drawn = sys.modules["numpy"].asarray(figure.canvas.buffer_rgba())
    ground = [round(255 * part) for part in matplotlib.colors.to_rgba(figure.get_facecolor())]
    left, top = round(box.x0 * dpi), height - round(box.y1 * dpi)
    return _encode(drawn, ground, left, top, int(box.width * dpi), int(box.height * dpi), dpi)


def _saved(figure, box) -> bytes:
    held = io.BytesIO()
    figure.savefig(held, format="png", bbox_inches=box)
    return held.getvalue()


# -- drawing


@contextlib.contextmanager
def _settled(figure):
    """Within, the figure's axes remember their ticks, plain markers are copied the short
    way, and no garbage is collected: what a drawing makes is nearly all still in use."""
    kept = []
    collects = gc.isenabled()
    markers: typing.Any = sys.modules.get("matplotlib.markers")
    short = getattr(markers, "copy", None) is copy
    try:
        gc.disable()
        if short:
            markers.copy = _Copies()
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if _Ticks.suits(axis):
                    kept.append(_Ticks(axis))
        yield
    finally:
        if short:
            markers.copy = copy
        if collects:
            gc.enable()
        for each in kept:
            each.forget()


class _Copies:
    """The module copy, for matplotlib's markers. Each tick has three lines, of which each
    copies a marker in all its depth: a tenth of a drawing. A marker that only has a name
    shares with its copy what neither ever changes in place."""

    def __getattr__(self, name):
        return getattr(copy, name)

    @staticmethod
    def deepcopy(style):
        named = type(style) is dict and type(style.get("_marker")) in (str, int) and style.get("_user_transform", style) is None
        return style.copy() if named else copy.deepcopy(style)


class _Ticks:
    """The ticks of an axis, and the boxes of their labels, worked out once for as long as
    all that they depend on is the same.

    A drawing asks for them some ten times, to place the title, the label and the edges,
    and measuring it does so again; an axis works them out each time, which took a third
    of what a plot costs. It is this one axis that remembers, until it is told to forget."""

    def __init__(self, axis):
        self._axis = axis
        self._work_out, self._measure = axis._update_ticks, axis._get_ticklabel_bboxes
        self._state: list | None = None
        self._ticks = self._renderer = self._boxes = None
        axis._update_ticks, axis._get_ticklabel_bboxes = self._update, self._bboxes

    @staticmethod
    def suits(axis) -> bool:
        """Whether the axis is as matplotlib makes it."""
        kinds = sys.modules["matplotlib.axis"]
        usual = axis.axes.name == "rectilinear" and type(axis) in (kinds.XAxis, kinds.YAxis) and "_update_ticks" not in vars(axis)
        return usual and hasattr(axis, "_update_ticks") and hasattr(axis, "_get_ticklabel_bboxes")

    def forget(self) -> None:
        for name in ("_update_ticks", "_get_ticklabel_bboxes"):
            vars(self._axis).pop(name, None)

    def _now(self) -> list:
        """What the ticks and their places depend on, and what else came of working them out:
        a formatter, which others may have, goes by what it was last asked to format."""
        axis = self._axis
        places, state = [axis.axes], [axis.axes.figure.dpi]
        for ticker in (axis.major, axis.minor):
            state += ticker.locator, ticker.formatter, ticker.formatter.get_offset()
            owner = getattr(ticker.locator.axis, "axes", axis.axes)  # of axes that share it, the first
            if owner not in places:
                places.append(owner)
        for axes in places:
            state += *axes.viewLim.bounds, *axes.bbox.bounds
        return state

    def _update(self):
        if self._state is None or self._now() != self._state:
            self._ticks, self._boxes = self._work_out(), None
            self._state = self._now()
        return self._ticks

    def _bboxes(self, ticks, renderer):
        if ticks is not self._ticks or self._now() != self._state:
            return self._measure(ticks, renderer)
        if self._boxes is None or renderer is not self._renderer:
            self._renderer, self._boxes = renderer, self._measure(ticks, renderer)
        return self._boxes


# -- writing


def _encode(drawn, ground: "list[int]", left: int, top: int, width: int, height: int, dpi: float) -> bytes:
    """The PNG of so much of what is drawn, an array of RGBA, with the ground where it ends.

    Pillow tries five filters on each row, and takes twice as long for that as for all
    the rest. One filter suits lines and letters on paper as well as it suits pictures."""
    numpy = sys.modules["numpy"]
    rows, columns = drawn.shape[:2]
    color, depth = _RGB if ground[3] == 255 and drawn[..., 3].min() == 255 else _RGBA
    pixels, paper = (part.view(numpy.uint32)[..., 0] for part in (drawn, numpy.array(ground, numpy.uint8)))
    inside = slice(max(left, 0), min(left + width, columns))
    packer = zlib.compressobj(_LEVEL)
    packed = []
    above: typing.Any = 0
    for first in range(0, height, _STRIP):
        count = min(_STRIP, height - first)
        strip = numpy.full((1 + count, width), paper)
        strip[0] = above
        begin, end = max(first + top, 0), min(first + top + count, rows)
        if begin < end:
            place = slice(1 + begin - top - first, 1 + end - top - first)
            strip[place, inside.start - left : inside.stop - left] = pixels[begin:end, inside]
        above = strip[-1]
        parts = strip.view(numpy.uint8).reshape(1 + count, width, 4)
        lines = numpy.full((count, 1 + width * depth), _UP, numpy.uint8)
        told = lines[:, 1:].reshape(count, width, depth)  # the same memory
        differences = parts[1:] - parts[:-1]
        for part in range(depth):
            told[:, :, part] = differences[:, :, part]
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
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(name))) for name, data in chunks
    )
