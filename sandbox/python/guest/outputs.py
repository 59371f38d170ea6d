"""Rich outputs as Jupyter MIME bundles: figures, images, tables, and objects that describe themselves."""

import base64
import builtins
import collections
import io
import json
import os
import re
import sys
import types
import typing
import weakref

import figures
import fonts
import html_text
import import_hooks
import ipython_display
import json_values
import output_summary
import table_rows
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

# A run has at most the first outputs, which are sent when they are shown, the newest ones, which wait for the end of
# the run, and the result.
MAX_FIRST = 50
MAX_NEWEST = 10
MAX_FIRST_BYTES = 8 << 20  # of the data as JSON
MAX_NEWEST_BYTES = 2 << 20
MAX_BYTES = 14 << 20  # of all; the rest is for the result
MAX_TEXT = 10_000
MAX_NOTEBOOK_TEXT = 1_000_000
MAX_CELLS = 50_000  # of a table that is shown, whatever the user's settings are
MAX_SUMMARY = 300
TABLE = "application/vnd.dataresource+json"  # the type of a table with its schema, in notebooks

_loads, _dumps = json.loads, json.dumps
# What a library may write as JSON, and not every reader takes: json_values.plain replaces it.
_find_unfit = re.compile(rf"NaN|Infinity|[0-9]{{{values.MAX_DIGITS + 1}}}|\\ud[89a-f]").search
# IPython.display takes its names from IPython.core.display_functions.
_HOOKED_MODULES = (
    "matplotlib.pyplot",
    "IPython.core.display_functions",
    "IPython.display",
    "IPython.core.getipython",
    "plotly.io._renderers",
    "plotly.io._kaleido",
)
_HOOKED_NAMES = frozenset(_HOOKED_MODULES)
# Classes whose values are shown only as text.
_TEXT_ONLY = frozenset((type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset))
_REPR_METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/json", "_repr_json_"),
)


class Outputs:
    """The outputs of one run. send gets each, a sandbox.Output, when it is shown or at the end of the run; left_out
    counts those beyond the bounds, cut_rows and cut_columns those of tables (and the values of arrays) that were shown
    in part, and cut_text the characters and items of lists that texts lack. is_notebook says that every last value is
    shown, and texts are the whole repr, as in notebooks. While captured is a list, outputs are appended to it instead.
    shell is what get_ipython() returns. step returns the step of the recording that runs, or 0 if the run is not
    recorded."""

    def __init__(self, send):
        self._send = send
        self.step = _no_step
        self.is_notebook = False
        self.shell: typing.Any = None
        self.captured: list | None = None
        self.tables: dict = {}  # by number: functions that return the tables that are shown in part
        self.left_out = self.cut_rows = self.cut_columns = self.cut_text = 0
        self._sent = self._bytes = 0
        self._has_hooks = False  # the hooks that wait for an import are its own; the zygote's session left others
        self._drawn: weakref.WeakSet = weakref.WeakSet()  # figures that this run has shown
        self._updates: dict = {}  # by display_id: the newest representation
        self._newest: collections.deque = collections.deque()  # outputs that wait for the end of the run, and sizes
        self._newest_bytes = 0
        self._is_cleared = False  # clear_output was called: outputs wait, and another call removes them

    def provide_ipython(self) -> None:
        """Makes `import IPython.display` work in environments without IPython."""
        package = types.ModuleType("IPython", "A part of IPython, which is not installed.")
        package.__path__ = []
        package.display = ipython_display.display  # type: ignore[attr-defined]
        package.get_ipython = lambda: self.shell  # type: ignore[attr-defined]
        ipython_display.__name__ = "IPython.display"
        self._hook_ipython(ipython_display)
        import_hooks.provide({"IPython": package, "IPython.display": ipython_display})

    def begin(self) -> None:
        self.left_out = self.cut_rows = self.cut_columns = self.cut_text = self._sent = self._bytes = 0
        self.step = _no_step
        self.captured = None
        self.tables = {}
        if self._drawn.data:  # type: ignore[attr-defined]  # clear() and the truth are functions of Python
            self._drawn.clear()
        self._updates.clear()
        fonts.told.clear()
        self._newest.clear()
        self._newest_bytes = 0
        self._is_cleared = False
        if self._has_hooks and import_hooks.all_pending(_HOOKED_NAMES):
            return
        self._has_hooks = True
        hooks = (
            self._hook_pyplot,
            self._hook_ipython,
            self._hook_ipython,
            self._hook_get_ipython,
            self._hook_plotly,
            _hook_kaleido,
        )
        for name, hook in zip(_HOOKED_MODULES, hooks):
            import_hooks.when_imported(name, hook)

    def _hook_pyplot(self, pyplot) -> None:
        if getattr(getattr(pyplot, "show", None), "of", None) is self:
            return

        def show(*_args, **_kwargs) -> None:  # a function, since matplotlib sets its signature
            self.figures()

        def show_one(figure, *_args, **_kwargs) -> None:
            self._add("figure", self._figure(figure))
            pyplot.close(figure)

        try:
            fonts.explain_missing(sys.modules["matplotlib"])
            fonts.use_fallbacks(sys.modules["matplotlib"])
        except Exception:
            pass  # user code has replaced a part of matplotlib
        show.of = self  # type: ignore[attr-defined]
        pyplot.show = show
        pyplot.Figure.show = show_one

    def _hook_ipython(self, module) -> None:
        """Makes the functions of IPython.display show here: its own need a running shell."""
        module.display = self.display
        module.update_display = self.update_display
        module.publish_display_data = self.publish
        module.clear_output = self.clear_output

    def _hook_get_ipython(self, module) -> None:
        """Lets get_ipython of IPython return the shell to the user's code, and None to libraries, as outside of
        IPython: they would use parts of a shell that this one does not have."""
        original = module.get_ipython

        def get_ipython():
            names = getattr(self.shell, "user_ns", None)
            return self.shell if sys._getframe(1).f_globals is names else original()

        module.get_ipython = get_ipython

    def _hook_plotly(self, module) -> None:
        """Makes fig.show() and plotly.io.show(fig) show here: plotly's own need a browser or nbformat."""

        def show(fig, *_args, **_kwargs) -> None:
            if isinstance(fig, dict):
                fig = sys.modules["plotly.graph_objects"].Figure(fig)
            self.display(fig)

        module.show = show

    # -- figures

    def figures(self) -> None:
        """Shows each open figure that has something to see and closes it, so that none leaks into the next run.
        plt.show() and the end of a run call it."""
        pyplot = _with_figures()
        if pyplot is None:
            return
        try:
            for number in pyplot.get_fignums():
                figure = pyplot.figure(number)
                if not figures.is_empty(figure):
                    self._add("figure", self._figure(figure))
        finally:
            self.close()

    @staticmethod
    def close() -> None:
        """Closes the open figures without showing them."""
        try:
            pyplot = _with_figures()
            if pyplot is not None:
                pyplot.close("all")
        except Exception:
            pass  # user code has replaced pyplot

    def _figure(self, figure) -> dict:
        self._drawn.add(figure)
        width, height = figure.get_size_inches() * figure.dpi
        text = f"<Figure size {width:.0f}x{height:.0f} with {len(figure.axes)} Axes>"
        if figures.is_empty(figure):
            return {"text/plain": text}
        try:
            png = figures.png(figure)
        except Exception as error:
            return {"text/plain": f"<a figure that could not be drawn: {values.safe_repr(error, 500)}>"}
        return {"image/png": _base64(png), "text/plain": text, None: output_summary.figure(figure)}

    # -- display

    def display(self, *objects, raw=False, include=None, exclude=None, display_id=None, update=False, **_options):
        """Shows each object as a rich output, like a notebook; with raw, objects are bundles. include and exclude name
        MIME types. With a display_id, returns a handle that can update the output; with update, it does so."""
        handle = Handle(self, display_id) if display_id else None
        if update and handle is not None:
            for each in objects:
                handle.update(each, raw=raw)
            return handle
        for each in objects:
            bundle = _plain_bundle(each) if raw else self._bundle(each)
            for kind in [kind for kind in bundle if kind is not None]:
                if include and kind not in include or exclude and kind in exclude:
                    del bundle[kind]
            self._add("display", self._with_text(bundle, "" if raw else each), handle.display_id if handle else "")
        return handle

    def update_display(self, obj, *, display_id, raw=False, **_options) -> None:
        """Shows another representation of an output. What was shown stays; the newest is shown at the end of the run,
        because a program such as a progress bar makes very many."""
        bundle = _plain_bundle(obj) if raw else self._bundle(obj)
        self._updates[_display_id(display_id)] = self._with_text(bundle, "" if raw else obj)

    def publish(self, data, *_arguments, **_options) -> None:
        """Shows a bundle."""
        self.display(data, raw=True)

    def updates(self) -> None:
        """Shows the newest representation of each output that was updated."""
        while self._updates:
            display_id = next(iter(self._updates))
            self._add("display", self._updates.pop(display_id), display_id, True)

    def clear_output(self, wait=False) -> None:
        """Removes the outputs that wait for the end of the run. From now on all outputs of the run wait, so that a loop
        that clears and shows has its last one. What was sent stays."""
        self._newest.clear()
        self._newest_bytes = 0
        self._is_cleared = True

    def show_rest(self, is_interrupted: bool) -> None:
        """Shows and sends at the end of a run what waits for it. An interrupted run gets no new figures."""
        if not is_interrupted:
            if _with_figures() is not None:
                self.figures()
            if self._updates:
                self.updates()
        if self._newest:
            self.send_newest()

    def send_newest(self) -> None:
        """Sends the outputs that wait for the end of the run."""
        self._bytes += self._newest_bytes
        self._newest_bytes = 0
        while self._newest:
            self._send(self._newest.popleft()[0])

    def last(self, value) -> None:
        """Shows the value of a last expression, in addition to returning it, if it has other representations than text.
        Open figures are shown already; one that the code has closed is not."""
        is_text_only = type(value) in _TEXT_ONLY
        if is_text_only and not self.is_notebook:
            return
        if values.type_name(value).startswith("matplotlib.figure."):
            if value not in self._drawn and not figures.is_empty(value):
                self._add("figure", self._figure(value))
            return
        bundle = {} if is_text_only else self._rich(value)
        if self.is_notebook or bundle.keys() - {"text/plain"}:
            self._add("result", self._with_text(bundle, value))

    def _bundle(self, v) -> dict:
        return self._with_text(self._rich(v), v)

    def _with_text(self, bundle: dict, v) -> dict:
        """Adds the text that each bundle has."""
        if type(bundle.get("text/plain")) is str:
            return bundle
        if self.is_notebook:
            bundle["text/plain"], cut = values.own_repr(v, MAX_NOTEBOOK_TEXT)
        elif type(v) is str:
            bundle["text/plain"], cut = values.readable(v, MAX_TEXT), len(v) - MAX_TEXT
        elif text := _text_of_rich(bundle, v):
            bundle["text/plain"], cut = values.readable(text, MAX_TEXT), len(text) - MAX_TEXT
        else:
            bundle["text/plain"], cut = values.shown_repr(v, MAX_TEXT)
        self.cut_text += max(cut, 0)
        self.cut_rows += values.summarized(v)
        if values.type_name(v).startswith("pandas.") and values.name_of(type(v)) == "Series":
            most, least = values.row_bounds()
            self.cut_text += values.cut_cells([v], 1, most if len(v) <= most else least)
        return bundle

    def _rich(self, v) -> dict:
        """Returns the representations of v other than its text. There may be none, as for a value whose repr would take
        too long: its HTML would, too."""
        if values.Preview(MAX_TEXT).needs_preview(v):
            return {}
        try:
            bundle = self._special(v, values.type_name(v))
        except Exception:
            bundle = None
        if bundle is not None:
            return bundle
        bundle = {}
        if isinstance(v, type):  # the methods of a class are for its instances
            return bundle
        try:
            bundle.update(_mimebundle(v))
        except Exception:
            pass  # its method failed: its other representations are shown
        for mime, method in _REPR_METHODS:
            if mime in bundle:
                continue
            try:
                representation = getattr(v, method)() if hasattr(type(v), method) else None
            except Exception:
                continue
            if isinstance(representation, tuple):  # data and metadata
                representation = representation[0] if representation else None
            if isinstance(representation, bytes):
                representation = _base64(representation)
            if isinstance(representation, str) or mime == "application/json" and representation is not None:
                is_text = isinstance(representation, str)
                bundle[mime] = representation if is_text else json_values.plain(representation)[0]
        return bundle

    def _special(self, v, kind: str) -> "dict | None":
        """Returns the bundle of an object that notebooks show in a special way, or None."""
        name = values.name_of(type(v))
        if kind.startswith("pandas.") and name == "DataFrame":
            return self._frame(v)
        if kind.startswith("matplotlib.figure."):
            bundle = self._figure(v)
            sys.modules["matplotlib.pyplot"].close(v)
            return bundle
        if kind.startswith("PIL.") and hasattr(v, "save"):
            buffer = io.BytesIO()
            v.save(buffer, format="PNG")
            text = f"image of {v.width}x{v.height} pixels, mode {v.mode}"
            return {"image/png": _base64(buffer.getvalue()), "text/plain": values.safe_repr(v), None: text}
        if kind.startswith("plotly.") and hasattr(v, "to_json"):
            representation = _loads(v.to_json())
            return {
                "application/vnd.plotly.v1+json": representation,
                "text/plain": f"<plotly {name}>",
                None: output_summary.plotly(representation),
            }
        return None

    def _frame(self, v) -> dict:
        """Returns the bundle of a DataFrame, cut as the user's settings of pandas say, or as notebooks cut it."""
        rows, columns = v.shape
        most, least = values.row_bounds()
        most_columns = values.pandas_option("max_columns", values.MAX_SHOWN_COLUMNS)
        shown_columns = min(columns, most_columns)
        most = min(most, max(MAX_CELLS // max(shown_columns, 1), 1))
        least = min(least, most)
        if rows > most:
            self.cut_rows += rows - least
        self.cut_columns += columns - shown_columns
        bounds = {
            "max_rows": rows if rows <= most else least,
            "max_cols": most_columns,
            "show_dimensions": rows > most or columns > most_columns,
        }
        self.cut_text += values.cut_cells([column for _, column in v.items()], most_columns, bounds["max_rows"])
        width = values.pandas_option("max_colwidth", 50)
        bundle = {
            "text/html": v.to_html(notebook=True, **bounds),
            "text/plain": v.to_string(max_colwidth=width if width < sys.maxsize else None, **bounds),
            None: output_summary.frame(v),
        }
        try:
            head = v.head(most).iloc[:, :most_columns]
            names = [str(label) for label in head.columns]
            if len({*names}) < len(names):  # the keys of a row
                head = head.set_axis(values.unique(names), axis=1)
            bundle[TABLE] = {
                **_loads(head.to_json(orient="table", date_format="iso")),
                "shape": list(v.shape),
                "dtypes": [str(dtype) for dtype in v.dtypes.iloc[:most_columns]],
            }
            if rows > most or columns > most_columns:
                number = bundle[TABLE]["number"] = len(self.tables) + 1
                self.tables[number] = table_rows.reference_to(v)
        except Exception:
            pass  # a schema cannot have such labels; the bundle has only HTML and text
        return bundle

    def _add(self, role: str, bundle: dict, display_id: str = "", is_update: bool = False) -> None:
        if self.captured is not None:
            bundle.pop(None, None)
            if len(self.captured) < MAX_FIRST:
                self.captured.append(bundle)
            else:
                self.left_out += 1
            return
        line = bundle.pop(None, None) or output_summary.text(bundle)  # the key None has the summary
        data = {mime: values.escaped(part) if isinstance(part, str) else part for mime, part in bundle.items()}
        text = _dumps(data)
        if _find_unfit(text):
            data = {mime: part if type(part) is str else json_values.plain(part)[0] for mime, part in data.items()}
            text = _dumps(data)
        output: dict = {"role": role, "summary": values.readable(" ".join(line.split()), MAX_SUMMARY), "data": data}
        if display_id:
            output["display_id"] = display_id
        if is_update:
            output["update"] = True
        step = self.step()
        if step:
            output["step"] = step
        self._send_or_hold(output, len(text))

    def _send_or_hold(self, output: dict, size: int) -> None:
        """Sends an output, or makes it the newest of those that wait. size is the size of its data."""
        if output["role"] == "result":
            if self._bytes + size > MAX_BYTES:
                output["data"] = {"text/plain": output["data"].get("text/plain", "")}
                self.left_out += 1
            self._send(output)
        elif not self._is_cleared and self._sent < MAX_FIRST and self._bytes + size <= MAX_FIRST_BYTES:
            self._bytes += size
            self._sent += 1
            self._send(output)
        elif size > MAX_NEWEST_BYTES:
            self.left_out += 1
        else:
            self._newest.append((output, size))
            self._newest_bytes += size
            while len(self._newest) > MAX_NEWEST or self._newest_bytes > MAX_NEWEST_BYTES:
                self._newest_bytes -= self._newest.popleft()[1]
                self.left_out += 1


def _no_step() -> int:
    return 0


def _hook_kaleido(module) -> None:
    """Makes fig.write_image() of plotly and its like say what works: their advice to install a browser does not."""

    def refuse(*_args, **_kwargs):
        raise RuntimeError(
            "plotly needs a browser to make a picture, and a sandbox has none: use fig.show() to show the figure, "
            "fig.write_html('figure.html') to keep it as a file, or matplotlib for a PNG or PDF"
        )

    module.to_image = module.write_image = module.write_images = refuse


class Handle:
    """An output that can be updated, as display(display_id=True) of a notebook returns it."""

    def __init__(self, outputs: Outputs, display_id):
        self._outputs = outputs
        self.display_id = os.urandom(16).hex() if display_id is True else _display_id(display_id)

    def display(self, obj, **options) -> None:
        self._outputs.display(obj, display_id=self.display_id, **options)

    def update(self, obj, **options) -> None:
        self._outputs.update_display(obj, display_id=self.display_id, **options)


def _display_id(given) -> str:
    """Returns the id of an output that can be updated."""
    return values.readable(str(given), 200)


def _text_of_rich(bundle: dict, v) -> str:
    """Returns the text of a value that has another form, but no text of its own: its repr is that of any object."""
    if type(v).__repr__ is not object.__repr__:
        return ""
    for mime in ("text/markdown", "text/latex", "text/html"):
        if type(bundle.get(mime)) is str:
            return html_text.text(bundle[mime]) if mime == "text/html" else bundle[mime]
    return ""


def _with_figures():
    """Returns matplotlib.pyplot if it has open figures."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return sys.modules.get("matplotlib.pyplot") if helpers is not None and helpers.Gcf.figs else None


def _mimebundle(v) -> dict:
    """Returns the bundle of an object that has _repr_mimebundle_."""
    if not hasattr(type(v), "_repr_mimebundle_"):
        return {}
    representation = v._repr_mimebundle_(include=None, exclude=None)
    if isinstance(representation, tuple):  # data and metadata
        representation = representation[0] if representation else {}
    return _plain_bundle(representation or {})


def _plain_bundle(representation) -> dict:
    """Returns a bundle of the user's with parts that JSON can hold."""
    out = {}
    for mime, part in dict(representation).items():
        if type(mime) is str and "/" in mime and values.encodable(mime):
            part = _base64(part) if isinstance(part, bytes) else part
            out[mime] = part if isinstance(part, str) else json_values.plain(part)[0]
    return out


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
