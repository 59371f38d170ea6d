# Code as HTML with classes, and their style sheet: context has code.
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

look = HtmlFormatter(cssclass="highlight", wrapcode=True)
__result__ = {"html": highlight(context["code"], PythonLexer(stripnl=False), look), "css": look.get_style_defs(".highlight")}
