"""Finds the code in a request of a client of a local code-execution server. Such clients send raw Python, a Markdown
code block, or the text of a dict with the key generated_code."""

import ast
import json
import re
import warnings

import notebook_code

_CODE_BLOCK = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*(?:python3?|py|ipython)?[ \t]*\n(.*?)^[ \t]*\1[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_LANGUAGE_LINE = re.compile(r"(?:python3?|py)\b[ \t]*\n", re.IGNORECASE)
_KEY = "generated_code"


def extract_code(text: str) -> str:
    """Returns the code to run. Text that is valid Python is returned unchanged."""
    text = _generated_code(text)
    if _is_python(text):
        return text
    blocks = [body for _, body in _CODE_BLOCK.findall(text + "\n")]
    if blocks:
        return "\n".join(blocks)
    bare = text.strip().strip("`").strip()
    bare = _LANGUAGE_LINE.sub("", bare, count=1) if _LANGUAGE_LINE.match(bare) else bare
    return bare if _is_python(bare) else text


def _generated_code(text: str) -> str:
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}") and _KEY in bare):
        return text
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(bare)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(parsed, dict) and isinstance(parsed.get(_KEY), str):
            return parsed[_KEY]
    return text


def _is_python(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            notebook_code.parse(text, "<code>", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
