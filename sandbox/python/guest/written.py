"""Python that is being written: what stands before a cursor, in text that need not be whole."""

import ast
import re


def open_string(text: str) -> "int | None":
    """Where the string that the end of the text is in begins (its last quote); -1 in a
    comment, a longer string or one with a prefix; None in code."""
    at, size = 0, len(text)
    while at < size:
        c = text[at]
        if c == "#":
            at = text.find("\n", at)
            if at < 0:
                return -1
        elif c in "'\"":
            quote = c * 3 if text.startswith(c * 3, at) else c
            begin, end = at, at + len(quote)
            while end < size and not text.startswith(quote, end):
                if len(quote) == 1 and text[end] == "\n":
                    break
                end += 2 if text[end] == "\\" else 1
            if end >= size:
                return -1 if len(quote) == 3 or begin and text[begin - 1].isalpha() else begin
            at = end + len(quote) - 1
        at += 1
    return None


def primary(text: str) -> str:
    """The expression of names, dots, calls and subscripts that the text ends with."""
    at = len(text)
    while at > 0:
        c = text[at - 1]
        if c in ")]}":
            opened = opening(text[: at - 1])
            if opened < 0:
                return ""
            at = opened
            if c == "}" or c == "]" and not re.search(r"[\w)\]'\"]$", text[:at]) or c == ")" and not re.search(r"[\w)\]]$", text[:at]):
                break
        elif c in "'\"":
            begin = text.rfind(c, 0, at - 1)
            return "" if begin < 0 else text[begin:]
        elif c.isalnum() or c == "_":
            while at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_"):
                at -= 1
            if not text[:at].endswith("."):
                break
        elif c == ".":
            at -= 1
        else:
            break
    return text[at:].strip()


def opening(text: str) -> int:
    """Where the bracket is that is open at the end of the text; -1 for none. Brackets
    within strings are not told apart: then the expression is no Python, and is let be."""
    depth = 0
    for at in range(len(text) - 1, max(len(text) - 10_000, 0) - 1, -1):
        if text[at] in ")]}":
            depth += 1
        elif text[at] in "([{":
            if depth == 0:
                return at
            depth -= 1
    return -1


def parse(expression: str):
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tree(source: str, row: int):
    """The text as far as it is Python: without the line of the cursor, where that is in the way."""
    lines = source.split("\n")
    for _ in range(6):
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            wrong = (error.lineno or 1) - 1
            if row >= 0:
                wrong, row = row, -1
            wrong = min(wrong, len(lines) - 1)
            lines[wrong] = lines[wrong][: len(lines[wrong]) - len(lines[wrong].lstrip())] + "pass"
        except (ValueError, RecursionError, MemoryError):
            return None
    return None
