"""Hints for modules that are not installed. The search begins only after an import has failed."""

import builtins
import difflib
import os
import sys

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_ENTRIES = 5000  # of a folder that are read

# Packages whose name differs from that of their module.
PACKAGES = {
    "Bio": "biopython",
    "Crypto": "pycryptodome",
    "MySQLdb": "mysqlclient",
    "OpenSSL": "pyOpenSSL",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "igraph": "python-igraph",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "lightning": "pytorch-lightning",
    "magic": "python-magic",
    "mpl_toolkits": "matplotlib",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pylab": "matplotlib",
    "rest_framework": "djangorestframework",
    "sentence_transformers": "sentence-transformers",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "umap": "umap-learn",
    "websocket": "websocket-client",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}

_NO_DISPLAY = (
    "a sandbox has no display: draw with matplotlib, without matplotlib.use(...), and figures are shown as pictures"
)
# Modules that code does not need in a sandbox, and why.
_NEEDLESS = {
    **dict.fromkeys(("_tkinter", "tkinter", "turtle", "turtledemo"), _NO_DISPLAY),
    "nest_asyncio": "leave it out: `await` works at the top level, and asyncio.run() everywhere",
}

_listdir, _close = os.listdir, difflib.get_close_matches


def hint(name: object, environment: object) -> str:
    """Returns the hint for a ModuleNotFoundError in one of the operator's environments."""
    if type(name) is not str or not name:
        return ""
    top, _, rest = name.partition(".")
    within = getattr(sys.modules.get(top), "__path__", None) if rest else None
    if within is not None:
        suggestion = _did_you_mean(name, [f"{top}.{each}" for each in _modules(within)])
        return f"{top} is installed but has no {name}. {suggestion}".strip()
    if top in _NEEDLESS:
        return _NEEDLESS[top]
    if top in sys.stdlib_module_names:
        return f"{top} is a part of Python that this system lacks: only Python on another system has it"
    message = f"{top} is not installed in the environment {environment!r}"
    package = PACKAGES.get(top, "")
    if not package:
        suggestion = _did_you_mean(top, [*sys.stdlib_module_names, *_modules(sys.path)])
        if suggestion:
            return f"{message}: {suggestion}"
    if not top.isidentifier() or not top.isascii():
        return message
    package_hint = f"the package is {package}; " if package else ""
    option = "" if environment == "default" else f"--env {environment} "
    return f"{message}: {package_hint}ask the operator to add it with `glasshouse env add {option}{package or top}`"


def _did_you_mean(name: str, names: list) -> str:
    """Returns the most similar of names as a question, or ""."""
    folded = {each.lower(): each for each in names if each[0] != "_"}
    close = _close(name.lower(), folded, 1, 0.75)
    return f"did you mean {folded[close[0]]!r}?" if close else ""


def _modules(folders) -> list:
    """Returns the names of the modules in folders."""
    found = set()
    for folder in list(folders)[:100]:
        try:
            entries = _listdir(folder)
        except OSError:  # an archive, or no folder
            continue
        for entry in entries[:MAX_ENTRIES]:
            name, dot, kind = entry.partition(".")
            if name.isidentifier() and (not dot or kind == "py" or kind.endswith("so")):
                found.add(name)
    return sorted(found)
