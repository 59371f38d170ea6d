"""Rich outputs as Jupyter MIME bundles: figures, images, tables and what describes itself."""

import base64
import builtins
import io
import json
import sys

import arrivals
import figures
import summary
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_OUTPUTS = 50
MAX_BYTES = 8 << 20  # of all outputs of a run, as JSON
MAX_TEXT = 10_000
MAX_SUMMARY = 300
TABLE = "application/vnd.dataresource+json"  # as notebooks name a table with its schema

_loads, _dumps = json.loads, json.dumps
_MET = ("matplotlib.pyplot", "IPython.core.display_functions", "IPython.display")  # the last has its names from the one before
# Their text is all that there is to see of them.
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset))
_METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/json", "_repr_json_"),
)


class Outputs:
    """The outputs of one run: send gets each, a sandbox.Output, as it is shown; cut
    counts those left out."""

    def __init__(self, send):
        self._send = send
        self.cut = 0
        self._sent = self._bytes = 0

    def begin(self) -> None:
        self.cut = self._sent = self._bytes = 0
        if arrivals.awaited(_MET):
            return
        arrivals.meet("matplotlib.pyplot", self._meet_pyplot)
        for name in _MET[1:]:
            arrivals.meet(name, self._meet_ipython)

    def _meet_pyplot(self, pyplot) -> None:
        if getattr(getattr(pyplot, "show", None), "of", None) is self:
            return

        def show(*_args, **_kwargs) -> None:  # a function: matplotlib gives it a signature
            self.figures()

        show.of = self  # type: ignore[attr-defined]
        pyplot.show = show

    def _meet_ipython(self, module) -> None:
        """`from IPython.display import display` is this display, too."""
        module.display = self.display

    # -- figures

    def figures(self) -> None:
        """plt.show(), and the end of a run. Makes an output of each open figure and closes it, so none leaks into the next run."""
        pyplot = _with_figures()
        if pyplot is None:
            return
        try:
            for number in pyplot.get_fignums():
                self._add(self._figure(pyplot.figure(number)))
        finally:
            self.close()

    @staticmethod
    def close() -> None:
        """Closes the open figures, without an output."""
        try:
            pyplot = _with_figures()
            if pyplot is not None:
                pyplot.close("all")
        except Exception:
            pass  # user code has replaced it

    def _figure(self, figure) -> dict:
        try:
            png = figures.png(figure)
        except Exception as error:
            return {"text/plain": f"<a figure that could not be drawn: {values.safe_repr(error, 500)}>"}
        width, height = figure.get_size_inches() * figure.dpi
        text = f"<Figure size {width:.0f}x{height:.0f} with {len(figure.axes)} Axes>"
        return {"image/png": _base64(png), "text/plain": text, None: summary.figure(figure)}

    # -- display

    def display(self, *objects, **_options) -> None:
        """Adds each object as a rich output, as notebooks have it."""
        for each in objects:
            self._add(self._bundle(each))

    def last(self, value) -> None:
        """The value of a last expression is shown as well as returned, where there is
        more of it to see than its text. Its figures have been shown."""
        if type(value) not in _PLAIN and not values.type_name(value).startswith("matplotlib.figure."):
            bundle = self._rich(value)
            if bundle.keys() - {"text/plain"}:
                self._add(_with_text(bundle, value))

    def _bundle(self, v) -> dict:
        return _with_text(self._rich(v), v)

    def _rich(self, v) -> dict:
        """What there is of v beside its text; empty where that is all."""
        try:
            bundle = self._special(v, values.type_name(v))
        except Exception:
            bundle = None
        if bundle is not None:
            return bundle
        bundle = {}
        if isinstance(v, type):  # its methods are not its own to be shown by
            return bundle
        try:
            bundle.update(_mimebundle(v))
        except Exception:
            pass  # its own failure; what else it has is shown
        for mime, method in _METHODS:
            if mime in bundle:
                continue
            try:
                made = getattr(v, method)() if hasattr(type(v), method) else None
            except Exception:
                continue
            if isinstance(made, tuple):  # data and metadata
                made = made[0] if made else None
            if isinstance(made, bytes):
                made = _base64(made)
            if isinstance(made, str) or mime == "application/json" and made is not None:
                bundle[mime] = made if isinstance(made, str) else values.plain(made)[0]
        return bundle

    def _special(self, v, kind: str) -> "dict | None":
        """What notebooks have their own ways for; None for anything else."""
        name = values.name_of(type(v))
        if kind.startswith("pandas.") and name == "DataFrame":
            bounds = {"max_rows": 20, "max_cols": 20}
            bundle = {"text/html": v.to_html(notebook=True, **bounds), "text/plain": v.to_string(**bounds), None: summary.frame(v)}
            try:
                bundle[TABLE] = {**_loads(v.head(20).iloc[:, :20].to_json(orient="table", date_format="iso")), "shape": list(v.shape)}
            except Exception:
                pass  # labels that no schema has: the other two say it all
            return bundle
        if kind.startswith("matplotlib.figure."):
            bundle = self._figure(v)
            sys.modules["matplotlib.pyplot"].close(v)
            return bundle
        if kind.startswith("PIL.") and hasattr(v, "save"):
            held = io.BytesIO()
            v.save(held, format="PNG")
            text = f"image of {v.width}x{v.height} pixels, mode {v.mode}"
            return {"image/png": _base64(held.getvalue()), "text/plain": values.safe_repr(v), None: text}
        if kind.startswith("plotly.") and hasattr(v, "to_json"):
            made = _loads(v.to_json())
            return {"application/vnd.plotly.v1+json": made, "text/plain": f"<plotly {name}>", None: summary.plotly(made)}
        return None

    def _add(self, bundle: dict) -> None:
        if self._sent >= MAX_OUTPUTS:
            self.cut += 1
            return
        line = bundle.pop(None, None) or summary.text(bundle)  # under no type: what a model is told
        data = {mime: values.readable(part, len(part)) if isinstance(part, str) else part for mime, part in bundle.items()}
        size = len(_dumps(data))
        if self._bytes + size > MAX_BYTES:
            self.cut += 1
            return
        self._bytes += size
        self._sent += 1
        self._send({"summary": values.readable(" ".join(line.split()), MAX_SUMMARY), "data": data})


def _with_figures():
    """matplotlib.pyplot, where it has open figures."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return sys.modules.get("matplotlib.pyplot") if helpers is not None and helpers.Gcf.figs else None


def _with_text(bundle: dict, v) -> dict:
    """The bundle, with the text that each has."""
    if type(bundle.get("text/plain")) is not str:
        bundle["text/plain"] = values.readable(v, MAX_TEXT) if type(v) is str else values.safe_repr(v, MAX_TEXT)
    return bundle


def _mimebundle(v) -> dict:
    """What an object with _repr_mimebundle_ says of itself."""
    if not hasattr(type(v), "_repr_mimebundle_"):
        return {}
    made = v._repr_mimebundle_(include=None, exclude=None)
    if isinstance(made, tuple):  # data and metadata
        made = made[0] if made else {}
    out = {}
    for mime, part in dict(made or {}).items():
        if type(mime) is str and "/" in mime:
            part = _base64(part) if isinstance(part, bytes) else part
            out[mime] = part if isinstance(part, str) else values.plain(part)[0]
    return out


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
