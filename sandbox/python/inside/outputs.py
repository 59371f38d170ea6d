"""Rich outputs as Jupyter MIME bundles: figures, images and DataFrames."""

import base64
import io
import sys

import values

MAX_OUTPUTS = 50
MAX_BYTES = 8 << 20  # of all outputs of a run


class Outputs:
    def __init__(self):
        self.bundles: list = []
        self.cut = 0
        self._bytes = 0

    def begin(self) -> None:
        self.bundles, self.cut, self._bytes = [], 0, 0
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and getattr(pyplot.show, "__self__", None) is not self:
            pyplot.show = self.show

    def show(self, *_args, **_kwargs) -> None:
        """plt.show(): what is open now becomes an output."""
        self.figures()

    def figures(self) -> None:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            try:
                self._figure(pyplot.figure(number))
            except Exception as error:
                self._add({"text/plain": f"<figure {number}: {type(error).__name__}: {error}>"})
        pyplot.close("all")

    def _figure(self, figure) -> None:
        held = io.BytesIO()
        figure.savefig(held, format="png", bbox_inches="tight")
        self._add({"image/png": base64.b64encode(held.getvalue()).decode(), "text/plain": f"<Figure with {len(figure.axes)} axes>"})

    def display(self, *objects) -> None:
        """Adds each object as a rich output, as notebooks have it."""
        for each in objects:
            self._add(self._bundle(each))

    def last(self, value) -> None:
        """The value of a last expression: a table is shown as well as returned."""
        if type(value).__name__ == "DataFrame" and type(value).__module__.startswith("pandas."):
            self.display(value)

    def _bundle(self, v) -> dict:
        bundle = {}
        kind = values.type_name(v)
        try:
            if kind.startswith("pandas.") and type(v).__name__ == "DataFrame":
                bundle["text/html"] = v.to_html(max_rows=20, max_cols=20)
                bundle["text/plain"] = v.to_string(max_rows=20, max_cols=20)
                return bundle
            if kind.startswith("matplotlib.figure."):
                held = io.BytesIO()
                v.savefig(held, format="png", bbox_inches="tight")
                sys.modules["matplotlib.pyplot"].close(v)
                return {"image/png": base64.b64encode(held.getvalue()).decode(), "text/plain": "<Figure>"}
            if kind.startswith("PIL.") and hasattr(v, "save"):
                held = io.BytesIO()
                v.save(held, format="PNG")
                return {"image/png": base64.b64encode(held.getvalue()).decode(), "text/plain": values.safe_repr(v)}
            if hasattr(type(v), "_repr_html_"):
                html = v._repr_html_()
                if isinstance(html, str):
                    bundle["text/html"] = html
        except Exception:
            pass
        bundle["text/plain"] = v if type(v) is str else values.safe_repr(v, 10_000)
        return bundle

    def _add(self, bundle: dict) -> None:
        size = sum(len(part) for part in bundle.values())
        if len(self.bundles) >= MAX_OUTPUTS or self._bytes + size > MAX_BYTES:
            self.cut += 1
            return
        self._bytes += size
        self.bundles.append({"data": {mime: part.encode("utf-8", "replace").decode() for mime, part in bundle.items()}})
