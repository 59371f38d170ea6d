"""The module IPython.display in an environment without IPython: the classes and functions that notebooks use most.

Outputs shows their objects by the methods that IPython's classes have.
"""

import builtins
import html
import json

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones


class DisplayObject:
    """Data that is shown in one way: data is text, bytes or JSON, or is read from filename."""

    _mime = "text/plain"
    _is_binary = False

    def __init__(self, data=None, url=None, filename=None, metadata=None, **_options):
        if url is not None:
            raise ValueError("url is not available without IPython: pass data or filename")
        self.filename, self.metadata = filename, metadata or {}
        if filename is None and isinstance(data, str) and self._is_binary:
            self.filename, data = data, None
        if self.filename is not None:
            with open(self.filename, "rb") as file:
                data = file.read()
            data = data if self._is_binary else data.decode("utf-8")
        self.data = data

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self._mime: self.data}

    def __repr__(self):
        return f"<IPython.display.{type(self).__name__} object>"


class HTML(DisplayObject):
    _mime = "text/html"


class Markdown(DisplayObject):
    _mime = "text/markdown"


class Latex(DisplayObject):
    _mime = "text/latex"


class Math(Latex):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self._mime: f"$\\displaystyle {self.data.strip('$')}$"}


class SVG(DisplayObject):
    _mime = "image/svg+xml"


class Javascript(DisplayObject):
    _mime = "application/javascript"


class Pretty(DisplayObject):
    def __repr__(self):
        return str(self.data)


class Code(DisplayObject):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": self.data, "text/html": f"<pre>{html.escape(self.data)}</pre>"}


class JSON(DisplayObject):
    _mime = "application/json"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self._mime: json.loads(self.data) if isinstance(self.data, str) else self.data}


class GeoJSON(JSON):
    _mime = "application/geo+json"


class Image(DisplayObject):
    """A picture in PNG, JPEG, GIF or WebP: bytes, or the name of a file."""

    _is_binary = True

    def _repr_mimebundle_(self, include=None, exclude=None):
        head = bytes(self.data[:12])
        kinds = ((b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
        return {"image/" + next((kind for begin, kind in kinds if head.startswith(begin)), "png"): self.data}


class IFrame:
    def __init__(self, src, width, height, **_options):
        self.src, self.width, self.height = src, width, height

    def _repr_html_(self):
        return f'<iframe width="{self.width}" height="{self.height}" src="{html.escape(self.src)}"></iframe>'


def _shows(kind: str):
    def show(*objects, raw=False, **options):
        """Shows each object in one MIME type only."""
        if raw:
            for each in objects:
                publish_display_data({kind: each})
        else:
            display(*objects, include=[kind], **options)

    return show


display_html, display_markdown, display_latex = _shows("text/html"), _shows("text/markdown"), _shows("text/latex")
display_svg, display_png, display_json = _shows("image/svg+xml"), _shows("image/png"), _shows("application/json")


# Outputs replaces these.
def display(*objects, **options):
    """Shows objects."""


def update_display(obj, *, display_id, **options):
    """Shows another representation of an output."""


def publish_display_data(data, *arguments, **options):
    """Shows a bundle."""


def clear_output(wait=False):
    """Removes outputs."""
