"""Runs the snippets of docs/mcp.md."""

import os
import pathlib
import re


def snippet(library, url):
    """Runs the snippet that imports a library, for the service at url, and returns its names."""
    page = (pathlib.Path(__file__).resolve().parents[5] / "docs" / "mcp.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if f"from {library}" in block)
    names = {"url": url, "key": os.environ["GLASSHOUSE_KEY"]}
    exec(code, names)
    return names
