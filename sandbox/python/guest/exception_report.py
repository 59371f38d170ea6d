"""Describes the exception of a failed run: with the user's own lines, the exceptions before it, and a hint."""

import builtins
import linecache
import re

import exception_hints
import exception_parts
import postmortem
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_FRAMES = 50
MAX_CHAIN = 5  # exceptions before the one that ended the run; the last ones
MAX_CHAIN_FRAMES = 10  # of each of them
MAX_NOTES = 10
MAX_NOTE = 1000
MAX_CODE = 500  # characters of a line

_NEAREST = re.compile(r"did you mean '([^']+)'\?")
_getline = linecache.getline
_context = vars(BaseException)["__context__"].__get__
_hides_context = vars(BaseException)["__suppress_context__"].__get__


def describe(error: BaseException, filename: str, namespace: dict, policy: dict, given: "dict | None" = None) -> dict:
    """Returns a sandbox.Exception for an error that code compiled under filename raised. The error's own __str__ runs,
    but it cannot make this function fail."""
    out = _describe_one(error, filename, policy, MAX_FRAMES, given or {})
    try:
        chain = _describe_chain(error, out, filename, policy)
        if chain:
            out["chain"] = chain
    except KeyboardInterrupt:
        raise
    except BaseException:  # a property of a hostile exception has failed
        pass
    try:
        hint = exception_hints.hint(error, namespace, policy)
    except KeyboardInterrupt:
        raise
    except BaseException:
        hint = ""
    if hint:
        out["hint"] = values.readable(hint, exception_parts.MAX_MESSAGE)
        found = _NEAREST.search(hint)
        if found:
            out["nearest"] = values.readable(found[1], 200)
    return out


def _describe_one(
    error: BaseException, filename: str, policy: dict, max_frames: int, given: "dict | None" = None
) -> dict:
    """Describes an exception without those before it. With given, the names that the user has not made, it adds the
    variables of its frames."""
    out: dict = {"type": values.name_of(type(error)), "message": "", "line": 0, "traceback": []}
    steps: list = []
    try:
        steps = exception_parts.steps(error)
        if len(steps) > max_frames:
            steps = steps[: max_frames // 2] + steps[-max_frames // 2 :]
        out["traceback"] = _frames(steps, filename)
        out["line"] = next((line for code, line, _ in reversed(steps) if code.co_filename == filename), 0)
        out["message"] = exception_parts.message(error, policy.get("profile") == "notebook")
        notes = getattr(error, "__notes__", None)
        if type(notes) is list and notes:
            out["notes"] = [values.readable(each, MAX_NOTE) for each in notes[:MAX_NOTES] if type(each) is str]
        if out["type"] == "PolicyError" and type(getattr(error, "lineno", None)) is int:
            out["line"], out["traceback"] = _position(error.lineno), []  # type: ignore[attr-defined]
        if given is not None and out["traceback"]:
            postmortem.fill(out["traceback"], steps, given)
        if isinstance(error, SyntaxError):
            _add_place(out, error, filename)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a property of a hostile exception has failed, or another thread changes the variables
        pass
    return out


def _add_place(out: dict, error: SyntaxError, filename: str) -> None:
    """Adds the place of a syntax error as the last frame. Code that cannot be parsed has no other frames."""
    line, column = _position(error.lineno), _position(error.offset)
    is_submitted = error.filename == filename
    if is_submitted:
        out["line"], out["column"], out["traceback"] = line, column, []
        out["message"] = values.readable(str(error.msg), exception_parts.MAX_MESSAGE)
    # The line as it was sent: a command of a notebook is parsed in another form.
    text = _getline(filename, line) if is_submitted else error.text
    if not line or type(text) is not str or not text.strip():
        return
    text = text.rstrip()
    code = text.lstrip()
    column = max(column - (len(text) - len(code)), 0)
    begin = max(column - MAX_CODE // 2, 0) if len(code) > MAX_CODE else 0  # of the part that is shown
    frame = {"line": line, "function": "", "code": values.readable(code[begin:], MAX_CODE)}
    if column:
        frame["column"] = len(values.escaped(code[begin : column - 1])) + 1
    if not is_submitted:
        frame["file"] = values.readable(str(error.filename), 300)
    out["traceback"].append(frame)


def _describe_chain(error: BaseException, last: dict, filename: str, policy: dict) -> list:
    """Describes the exceptions that led to error, whose description is last. It leaves out those that a library handled
    on its own, and those that say the same as the next one."""
    chain: list = []
    for each, is_cause in reversed(_earlier(error)):
        described = _describe_one(each, filename, policy, MAX_CHAIN_FRAMES)
        says_the_same = all(described[key] == last[key] for key in ("type", "message"))
        if described["traceback"] or is_cause and not says_the_same:
            if is_cause:
                described["is_cause"] = True
            chain.append(described)
            last = described
    return chain[::-1]


def _earlier(error: BaseException) -> list:
    """Returns the exceptions that led to error, in the order in which they were raised, as Python prints them: each
    with whether the next one was raised from it. They are at most MAX_CHAIN, the last ones."""
    found: list = []
    seen = {id(error)}
    while len(found) < MAX_CHAIN:
        cause = exception_parts.cause(error)
        before = cause if cause is not None else None if _hides_context(error) else _context(error)
        if before is None or id(before) in seen:
            break
        seen.add(id(before))
        found.append((before, cause is not None))
        error = before
    return found[::-1]


def _position(n: object) -> int:
    """Returns the number of a line or column; 0 if it is none. User code can set it to anything."""
    return n if type(n) is int and 0 <= n < 1 << 31 else 0


def _frames(steps: list, filename: str) -> list:
    frames = []
    for code, line, _ in steps:
        text = values.readable(_getline(code.co_filename, line).strip(), MAX_CODE)
        frame = {"line": line, "function": values.readable(code.co_name, 200), "code": text}
        if code.co_filename != filename:
            frame["file"] = values.readable(code.co_filename, 300)
        frames.append(frame)
    return frames
