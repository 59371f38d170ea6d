# Code as HTML with classes, and the style sheet of the classes. context has code.
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

lexer = PythonLexer
try:
    compile(context["code"], "<code>", "exec", 0x2000, True)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
except (SyntaxError, ValueError, RecursionError, MemoryError):
    try:  # it may have lines of a notebook
        from ipython_pygments_lexers import IPython3Lexer as lexer
    except ImportError:
        pass
formatter = HtmlFormatter(cssclass="highlight", wrapcode=True)
html = highlight(context["code"], lexer(stripnl=False), formatter)
__result__ = {"html": html, "css": formatter.get_style_defs(".highlight")}
