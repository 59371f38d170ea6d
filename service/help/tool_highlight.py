# Code as HTML with classes, and the style sheet of the classes. context has code.
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

formatter = HtmlFormatter(cssclass="highlight", wrapcode=True)
html = highlight(context["code"], PythonLexer(stripnl=False), formatter)
__result__ = {"html": html, "css": formatter.get_style_defs(".highlight")}
