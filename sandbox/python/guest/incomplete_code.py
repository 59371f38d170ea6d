"""Reads Python source that is being typed: the text before a cursor, which need not be complete."""

import ast
import re

_F_PREFIX = re.compile(r"(?<![^\W\d])(?:f|fr|rf)\Z", re.IGNORECASE)


_ALLOW_INCOMPLETE_INPUT = 0x4000  # PyCF_ALLOW_INCOMPLETE_INPUT of Python's codeop


def may_continue(source: str, tree: "ast.Module | None") -> bool:
    """Tells whether a console waits for more lines after source: it ends in an open bracket, string or statement, or in
    a block without an empty line after it. tree is that of source, or None if it has none."""
    if tree is not None:
        last = tree.body[-1] if tree.body else None
        is_block = last is not None and hasattr(last, "body") and last.lineno != last.end_lineno
        return is_block and bool(source.rpartition("\n")[2].strip())
    try:
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | _ALLOW_INCOMPLETE_INPUT
        compile(source.rstrip() + "\n", "<code>", "exec", flags, True)
    except SyntaxError as error:
        return error.msg == "incomplete input"
    except (ValueError, RecursionError, MemoryError):
        pass
    return False


def open_string(text: str) -> "int | None":
    """Returns the index of the quote of the string that the end of the text is in; -1 in a comment, a triple-quoted
    string or one with a prefix; None in code, also in the code in the braces of an f-string."""
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
                if _F_PREFIX.search(text, max(begin - 3, 0), begin):
                    field = _open_field(text, begin + len(quote))
                    if field >= 0:
                        inner = open_string(text[field + 1 :])
                        return inner if inner is None or inner < 0 else field + 1 + inner
                return -1 if len(quote) == 3 or begin and text[begin - 1].isalpha() else begin
            at = end + len(quote) - 1
        at += 1
    return None


def _open_field(text: str, at: int) -> int:
    """Returns the index of the brace that begins the code that the end of the text is in, or -1. at is the index of
    the first character of an f-string that is open at the end."""
    opened: list = []  # (index, kind), where kind is "field", "format" (a text again) or "bracket" (in a field)
    while at < len(text):
        c, kind = text[at], opened[-1][1] if opened else "format"
        if kind == "format":
            if c == "\\":
                at += 2 if text.startswith("N{", at + 1) else 1
            elif c == "{" and text.startswith("{", at + 1):
                at += 1
            elif c == "{":
                opened.append((at, "field"))
            elif c == "}":
                del opened[-2:]  # the format and its field
        elif c in "'\"":
            end = text.find(c, at + 1)
            if end < 0:
                break
            at = end
        elif c in "([{":
            opened.append((at, "bracket"))
        elif c in ")]}":
            del opened[-1]
        elif c == ":" and kind == "field":
            opened.append((at, "format"))
        at += 1
    if not opened or opened[-1][1] == "format":
        return -1
    return next(index for index, kind in reversed(opened) if kind == "field")


def primary(text: str) -> str:
    """Returns the expression of names, dots, calls and subscripts that the text ends with."""
    at = len(text)
    while at > 0:
        c = text[at - 1]
        if c in ")]}":
            opened = opening(text[: at - 1])
            if opened < 0:
                return ""
            at = opened
            if (
                c == "}"
                or c == "]"
                and not re.search(r"[\w)\]'\"]$", text[:at])
                or c == ")"
                and not re.search(r"[\w)\]]$", text[:at])
            ):
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
    """Returns the index of the bracket that is open at the end of the text, or -1. Brackets in strings also count: the
    expression is then invalid, and there are no completions."""
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
    """Parses an expression, or returns None."""
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_lenient(source: str, row: int):
    """Parses as much of the text as is valid Python, without the line of the cursor if that is in the way."""
    lines = source.split("\n")
    for _ in range(6):
        try:
            return ast.parse("\n".join(lines))
        except SyntaxError as error:
            bad_line = (error.lineno or 1) - 1
            if row >= 0:
                bad_line, row = row, -1
            bad_line = min(bad_line, len(lines) - 1)
            lines[bad_line] = lines[bad_line][: len(lines[bad_line]) - len(lines[bad_line].lstrip())] + "pass"
        except (ValueError, RecursionError, MemoryError):
            return None
    return None
