"""What a failed run says: the exception, from the user's own lines, with a hint."""

import builtins
import difflib
import linecache
import sys

from values import _encodable

MAX_MESSAGE = 4000
MAX_FRAMES = 50


def describe(error: BaseException, filename: str, namespace: dict, policy: dict) -> dict:
    """A sandbox.Exception for error, raised by code compiled under filename."""
    frames = _frames(error, filename)
    out = {"type": type(error).__name__, "message": message(error), "line": 0, "traceback": frames}
    if isinstance(error, SyntaxError) and error.filename == filename:
        out["line"], out["column"] = error.lineno or 0, error.offset or 0
        out["message"] = _bounded(str(error.msg))
    elif hasattr(error, "lineno") and type(error).__name__ == "PolicyError":
        out["line"] = error.lineno
    else:
        own = [f for f in frames if "file" not in f]
        if own:
            out["line"] = own[-1]["line"]
    try:
        hint = _hint(error, namespace, policy)
    except Exception:
        hint = ""
    if hint:
        out["hint"] = _bounded(hint)
    return out


def message(error: BaseException) -> str:
    try:
        text = str.__str__(str(error))
    except BaseException as inner:
        text = f"<its __str__ raised {type(inner).__name__}>"
    return _bounded(text)


def _bounded(text: str) -> str:
    if not _encodable(text):
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."


def _frames(error: BaseException, filename: str) -> list:
    frames = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename.startswith(("<execution", "/session/", "/tmp/")):
            line = step.tb_lineno or 0
            frame = {"line": line, "function": code.co_name, "code": linecache.getline(code.co_filename, line).strip()[:500]}
            if code.co_filename != filename:
                frame["file"] = code.co_filename
            frames.append(frame)
        step = step.tb_next
    if len(frames) > MAX_FRAMES:
        frames = frames[: MAX_FRAMES // 2] + frames[-MAX_FRAMES // 2 :]
    return frames


def _near(name: object, names) -> str:
    close = difflib.get_close_matches(str(name), [str(n) for n in names], 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def _hint(error: BaseException, namespace: dict, policy: dict) -> str:
    own = getattr(error, "hint", None)
    if isinstance(own, str) and own:
        return own
    if isinstance(error, ModuleNotFoundError):
        near = _near(error.name, [*sys.stdlib_module_names, *(m for m in sys.modules if "." not in m and m[0] != "_")])
        return f"{error.name} is not installed in this environment. {near}".strip()
    if isinstance(error, NameError):
        return _near(error.name, [*namespace, *dir(builtins)])
    if isinstance(error, AttributeError) and error.name:
        if type(error.obj).__name__ == "coroutine":
            return "an await is missing"
        return _near(error.name, dir(error.obj))
    if isinstance(error, KeyError) and error.args:
        return _key_hint(error)
    if isinstance(error, MemoryError):
        return f"max_memory_mb is {policy.get('max_memory_mb')}: work on less at a time, or ask for more when creating the sandbox"
    if isinstance(error, RecursionError):
        return "a function calls itself without end, or too deep for Python"
    text = message(error).lower()
    module = type(error).__module__
    if module.startswith(("requests", "aiohttp", "urllib", "http", "socket")) or "name resolution" in text or type(error).__name__ in ("gaierror", "URLError"):
        return "the network is off in this sandbox; use db_query for data"
    if isinstance(error, OSError):
        if error.errno == 30:
            return "only /session, /tmp and /work may be written"
        if error.errno == 28:
            return f"the workspace is full: workspace_max_bytes is {policy.get('workspace_max_bytes')}"
        if error.errno == 27:
            return f"a file may have file_max_bytes = {policy.get('file_max_bytes')} at most"
        if error.errno == 24:
            return f"max_open_files is {policy.get('max_open_files')}"
    if isinstance(error, RuntimeError) and "can't start new thread" in text:
        return f"max_threads is {policy.get('max_threads')}"
    return ""


def _key_hint(error: KeyError) -> str:
    """The nearest column or key, from the frame that looked it up."""
    key, step, found = error.args[0], error.__traceback__, None
    while step is not None:
        local = step.tb_frame.f_locals
        for value in list(local.values())[:100]:
            if type(value) is dict and len(value) < 10_000:
                found = _near(key, value) or found
            elif type(value).__name__ == "DataFrame":
                found = _near(key, list(value.columns)[:1000]) or found
        step = step.tb_next
    return found or ""
