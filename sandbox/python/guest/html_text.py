"""The text of HTML, for a reader that sees no HTML."""

import builtins
import html.parser

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_HTML = 200_000  # characters that are read

_HIDDEN = frozenset(("style", "script", "title", "template"))
_LINES = frozenset("br caption dd div dt h1 h2 h3 h4 h5 h6 hr li p pre tr".split())
_CELLS = frozenset(("td", "th"))


def text(source: str) -> str:
    """Returns the visible text of HTML: a line for each row of a table, with two spaces between the cells."""
    reader = _Reader()
    reader.feed(source[:MAX_HTML])
    reader.close()
    lines = ("  ".join(" ".join(cell.split()) for cell in line).rstrip() for line in reader.lines)
    return "\n".join(line for line in lines if line)


class _Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.lines: list = [[]]  # each a list of cells
        self._hidden = 0

    def handle_starttag(self, tag, attrs):
        if tag in _HIDDEN:
            self._hidden += 1
        elif tag in _LINES:
            self.lines.append([])
        elif tag in _CELLS:
            self.lines[-1].append("")

    def handle_endtag(self, tag):
        if tag in _HIDDEN:
            self._hidden = max(self._hidden - 1, 0)
        elif tag in _LINES:
            self.lines.append([])

    def handle_data(self, data):
        line = self.lines[-1]
        if self._hidden or not line and data.isspace():
            return
        if not line:
            line.append("")
        line[-1] += data
