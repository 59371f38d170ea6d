import contextlib
import copy
import gc
import io

import figures
import matplotlib.pyplot as plt
import numpy
import pytest
from matplotlib import markers, transforms
from PIL import Image

# Each program leaves a figure open. In each figure the ticks and labels depend on other settings.
PLOTS = {
    "lines": "fig, ax = plt.subplots()\nax.plot([1, 2, 3], [3, 1, 2])\nax.set(title='title', xlabel='x', ylabel='y')",
    "a grid": "fig, axes = plt.subplots(2, 3, figsize=(9, 5))\nfor n, ax in enumerate(axes.flat): ax.plot([0, 10**n]); ax.set_title(n)",
    "shared": "fig, axes = plt.subplots(2, 2, sharex=True, sharey='row')\naxes[0, 0].plot([1e9, 1e9 + 1])\naxes[1, 1].plot([1, 5000])",
    "tight": "fig, axes = plt.subplots(2, 2, layout='tight')\nfor ax in axes.flat: ax.plot([0.001, 0.002]); ax.set_ylabel('long label')",
    "constrained": "fig, axes = plt.subplots(1, 2, layout='constrained')\nfig.colorbar(axes[0].imshow([[1, 200000]]), ax=axes)\naxes[1].set_title('two\\nlines')",
    "equal": "fig, ax = plt.subplots()\nax.plot([0, 1, 40], [0, 2, 3])\nax.set_aspect('equal', adjustable='datalim')",
    "equal boxes": "fig, axes = plt.subplots(1, 2, sharex=True)\nfor ax in axes: ax.plot([0, 40], [0, 3]); ax.set_aspect('equal', adjustable='box'); ax.set_title('t')",
    "offsets": "fig, ax = plt.subplots()\nax.plot([1e9, 1e9 + 1, 1e9 + 3], [1e-9, 2e-9, 5e-9])\nax.set_title('above the offset')",
    "one formatter": (
        "from matplotlib.ticker import ScalarFormatter\nfig, ax = plt.subplots()\nax.plot([1e9, 1e9 + 1], [1e-9, 2e-9])\nboth = ScalarFormatter()\n"
        "ax.xaxis.set_major_formatter(both); ax.yaxis.set_major_formatter(both)"
    ),
    "logarithms": "fig, ax = plt.subplots()\nax.loglog([1, 1e5], [1e-3, 1e3])\nax.grid(which='both')",
    "minor": "fig, ax = plt.subplots()\nax.plot([1, 2]); ax.minorticks_on(); ax.tick_params(labelrotation=30, which='both', labeltop=True)\nax.set_title('t')",
    "twins": "fig, ax = plt.subplots()\nax.plot([1, 2])\nother = ax.twinx(); other.plot([5000, 1]); other.set_ylabel('right')\nax.twiny().set_xlabel('top')\nax.set_title('t')",
    "second axis": "fig, ax = plt.subplots()\nax.plot([1, 2])\nax.secondary_xaxis('top', functions=(lambda x: x * 9, lambda x: x / 9)).set_xlabel('nines')\nax.set_title('t')",
    "inset": "fig, ax = plt.subplots()\nax.plot([1, 2])\nax.inset_axes([0.5, 0.5, 0.4, 0.4]).plot([9, 7])",
    "moved spines": "fig, ax = plt.subplots()\nax.plot([-2, 2], [-9, 3])\nax.spines[['left', 'bottom']].set_position('zero')\nax.spines[['right', 'top']].set_visible(False)\nax.set_xlabel('x')",
    "polar": "ax = plt.subplot(projection='polar')\nax.plot([0, 1, 2], [1, 2, 3])\nax.set_title('t')",
    "three dimensions": "ax = plt.figure().add_subplot(projection='3d')\nax.plot([0, 1], [0, 1], [0, 5])\nax.set_title('t')",
    "words": "plt.bar(['one', 'two', 'three'], [1, 2, 3])\nplt.xticks(rotation=45)\nplt.title('words')",
    "dates": "import datetime\nplt.plot([datetime.date(2024, 1, n) for n in (1, 9, 30)], [1, 2, 3])\nplt.gcf().autofmt_xdate()",
    "aligned": "fig, axes = plt.subplots(2, 1)\naxes[0].plot([1, 2]); axes[1].plot([100000, 2])\nfor ax in axes: ax.set_ylabel('y')\nfig.align_ylabels()",
    "within": "whole = plt.figure()\nfor part in whole.subfigures(1, 2): part.subplots().plot([1, 2]); part.suptitle('part')",
    "no ticks": "fig, ax = plt.subplots()\nax.imshow([[1, 2], [3, 4]]); ax.set_axis_off()",
    "empty": "plt.figure(figsize=(2, 1))",
    "beyond": "fig, ax = plt.subplots()\nax.plot([1, 2], label='a rather long name')\nax.legend(loc='upper left', bbox_to_anchor=(1.05, 1))",
    "transparent": "fig, ax = plt.subplots(facecolor=(1, 0, 0, 0.3))\nax.plot([1, 2])\nax.patch.set_alpha(0.5)",
    "fine": "fig, ax = plt.subplots(dpi=57.3)\nax.plot([1, 2])",
    "markers": (
        "from matplotlib.markers import MarkerStyle\nfrom matplotlib.transforms import Affine2D\nfig, ax = plt.subplots()\n"
        "for n, m in enumerate(['o', '$x^2$', (5, 1, 20), [[-1, -1], [1, 0], [0, 1]], MarkerStyle('^', transform=Affine2D().rotate_deg(40)), 4]):\n"
        "    ax.plot([0, 1, 2], [n, n + 1, n], marker=m, fillstyle='left' if n % 2 else 'full', label=str(n))\nax.legend()\nax.tick_params(length=20, width=3, direction='inout')"
    ),
    "a listener": "fig, ax = plt.subplots()\nax.plot([1, 2])\nfig.canvas.mpl_connect('draw_event', lambda _: ax.set_yticks([1.5], ['quite wide']))",
    "ticks that change": (
        "fig, (first, second) = plt.subplots(1, 2)\nfirst.plot([1, 2]); second.plot([1, 2])\n"
        "second.callbacks.connect('xlim_changed', lambda _: first.set_yticks([1.5], ['quite wide']))"
    ),
}


QUICK = {
    "lines",
    "shared",
    "constrained",
    "one formatter",
    "logarithms",
    "twins",
    "markers",
    "a listener",
    "ticks that change",
}
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.nightly) for name in PLOTS]


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")


def made(code):
    plt.close("all")
    exec(code, {"plt": plt})
    return plt.gcf()


def opened(png):
    return numpy.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))


@pytest.mark.parametrize("name", EACH)
def test_cached_ticks_do_not_change_pixels(name, monkeypatch):
    remembered = opened(figures.png(made(PLOTS[name])))
    monkeypatch.setattr(figures, "_cheap_drawing", lambda _: contextlib.nullcontext())
    assert numpy.array_equal(remembered, opened(figures.png(made(PLOTS[name]))))


@pytest.mark.parametrize("name", EACH)
def test_drawing_leaves_the_figure_unchanged(name):
    figure = made(PLOTS[name])
    before = [set(vars(axis)) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    figure.canvas.draw()
    drawn = [set(vars(axis)) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    figures.png(figure)
    after = [set(vars(axis)) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    assert after == drawn and len(before) == len(after)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_again_where_it_was(collects):
    figure = made(PLOTS["lines"])
    seen = []
    figure.canvas.mpl_connect("draw_event", lambda _: seen.append(gc.isenabled()))
    (gc.enable if collects else gc.disable)()
    try:
        figures.png(figure)
        assert (seen, gc.isenabled()) == ([False], collects)
    finally:
        gc.enable()


def test_markers_made_while_drawing_are_copied():
    """A listener may copy markers and change the copies while a figure is drawn."""
    figure = made(PLOTS["markers"])
    turned = markers.MarkerStyle("^", transform=transforms.Affine2D().rotate_deg(40))
    plain = markers.MarkerStyle("o", "left")
    before = [m.get_transform().get_matrix() for m in (turned, plain)]
    seen = []

    def listen(_):
        for m in turned, plain:
            seen.append([markers.MarkerStyle(m), m.rotated(deg=30), m.scaled(2)])

    figure.canvas.mpl_connect("draw_event", listen)
    figures.png(figure)
    assert markers.copy is copy
    assert all(numpy.array_equal(m.get_transform().get_matrix(), was) for m, was in zip((turned, plain), before))
    for (same, *changed), was in zip(seen, before, strict=True):
        assert numpy.array_equal(same.get_transform().get_matrix(), was)
        assert not any(numpy.array_equal(m.get_transform().get_matrix(), was) for m in changed)


def test_ticks_are_computed_once():
    figure = made(PLOTS["lines"])
    asked = []
    axis = figure.axes[0].xaxis
    locator = axis.get_major_locator()
    axis.set_major_locator(
        type(
            "Asked", (type(locator),), {"__call__": lambda self: asked.append(1) or super(type(self), self).__call__()}
        )()
    )
    figures.png(figure)
    assert len(asked) == 1


def test_axis_forgets_its_ticks_after_a_failure():
    figure = made(PLOTS["lines"])
    figure.axes[0].title.set_text("$")
    figure.axes[0].title.set_text("$\\nothing$")
    with pytest.raises(ValueError, match="nothing"):
        figures.png(figure)
    assert not {"_update_ticks", "_get_ticklabel_bboxes"} & vars(figure.axes[0].xaxis).keys()
    assert markers.copy is copy


@pytest.mark.parametrize(
    "left, top, width, height", [(3, 5, 20, 150), (-4, -6, 60, 170), (-9, 10, 30, 7), (10, 140, 60, 60), (0, 0, 50, 64)]
)
@pytest.mark.parametrize("opacity", [255, 200])
def test_png_has_the_pixels_that_were_drawn(left, top, width, height, opacity):
    drawn = numpy.random.default_rng(1).integers(0, 256, (160, 50, 4), numpy.uint8)
    drawn[..., 3] = opacity
    ground = (1, 2, 3, 255)
    page = Image.new("RGBA", (width, height), ground)
    page.paste(Image.fromarray(drawn), (-left, -top))
    held = Image.open(io.BytesIO(figures._encode(drawn, ground, left, top, width, height, 72.5)))
    assert (held.mode, held.size) == ("RGB" if opacity == 255 else "RGBA", (width, height))
    assert held.info["dpi"] == pytest.approx((72.5, 72.5), abs=0.02)
    assert numpy.array_equal(numpy.asarray(held.convert("RGBA")), numpy.asarray(page))


def test_pictures_are_not_much_larger_than_pillow_makes_them():
    figure = made(
        "fig, axes = plt.subplots(2, 2)\nimport numpy\nx = numpy.linspace(-3, 3, 300)\naxes[0, 0].imshow(numpy.sin(x[:, None] * 2) * numpy.cos(x))\naxes[1, 0].scatter(x, x ** 2, alpha=0.5)\naxes[0, 1].plot(numpy.sin(x))\naxes[1, 1].bar(['a', 'b'], [1, 2])"
    )
    made_here = figures.png(figure)
    held = io.BytesIO()
    Image.open(io.BytesIO(made_here)).convert("RGBA").save(held, "png")
    assert len(made_here) < 1.3 * len(held.getvalue())
