"""Finds the calls of a line into which a person can step.

A call is known by its place in the source: the compiler gives it to the instruction that calls, so the frame that has
called tells which call of its line runs.
"""

import ast
import builtins
import itertools
import linecache

import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_TARGETS = 50
MAX_SOURCE = 1 << 20  # characters of a program that is parsed
MAX_LABEL = 100

_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def targets(frame) -> list:
    """Returns the calls that begin in a frame's line, in the order in which Python makes them: labels and places."""
    found = linecache.cache.get(frame.f_code.co_filename)
    source = "".join(found[2]) if found and len(found) == 4 else ""
    if len(source) > MAX_SOURCE:
        return []
    try:
        tree = compile(source, "<targets>", "exec", _FLAGS, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # a notebook's own syntax
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == frame.f_lineno]
    calls.sort(key=lambda node: (node.end_lineno, node.end_col_offset))  # an argument ends before its call
    lines = source.split("\n")
    return [
        {"label": _label(node, lines), "place": [node.lineno, node.end_lineno, node.col_offset, node.end_col_offset]}
        for node in calls[:MAX_TARGETS]
    ]


def _label(node: ast.Call, lines: list) -> str:
    """Returns the text of a call, as far as it is in its first line."""
    line = lines[node.lineno - 1].encode()
    end = node.end_col_offset if node.end_lineno == node.lineno else None
    return values.readable(line[node.col_offset : end].decode(errors="replace"), MAX_LABEL)


def is_called_from(frame, caller, place: list) -> bool:
    """Tells whether caller has called a frame, perhaps through library code, by the call at a place."""
    while frame is not None and frame is not caller:
        frame = frame.f_back
    if frame is None:
        return False
    at = next(itertools.islice(caller.f_code.co_positions(), caller.f_lasti // 2, None), None)
    return at is not None and list(at) == place
