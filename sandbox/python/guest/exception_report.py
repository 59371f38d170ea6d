"""Describes the exception of a failed run: with the user's own lines, and a hint."""

import builtins
import difflib
import itertools
import json
import linecache
import os
import re
import sys

import directories
import missing_modules
import postmortem
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_MESSAGE = 4000
# Of the message of a notebook's error, as JSON: clients such as smolagents return values in it. The supervisor takes
# 1 MiB for the whole exception.
MAX_NOTEBOOK_MESSAGE_BYTES = 800_000
MAX_FRAMES = 50
MAX_NAMES = 2000  # among which the nearest is searched
MAX_NAME_LENGTH = 100  # of a name that has a nearest; the search takes a time quadratic in it
MAX_LISTED = 20  # labels of a table that a hint lists

# Files of the user's code, besides those in its directories.
_USER_FILES = ("<execution",)
_USUAL_IMPORTS = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "px": "import plotly.express as px",
    "dt": "import datetime as dt",
}
_NETWORK = ("requests", "aiohttp", "urllib", "urllib3", "http", "socket", "ssl")

_INTEGER = re.compile(r"-?\d{1,18}")
_NEAREST = re.compile(r"did you mean '([^']+)'\?")
_getline, _nearest, _dumps = linecache.getline, difflib.get_close_matches, json.dumps
_trace = vars(BaseException)["__traceback__"].__get__
_cause = vars(BaseException)["__cause__"].__get__
_args = vars(BaseException)["args"].__get__


def _is_users(filename: str) -> bool:
    """Tells whether a file has the user's own code. In tests, the guest's modules may also be below /tmp."""
    return filename.startswith(
        (*_USER_FILES, directories.session + "/", directories.tmp + "/")
    ) and not filename.startswith(directories.OWN + "/")


def describe(error: BaseException, filename: str, namespace: dict, policy: dict, given: "dict | None" = None) -> dict:
    """Returns a sandbox.Exception for an error that code compiled under filename raised. The error's own __str__ runs,
    but it cannot make this function fail."""
    out: dict = {"type": values.name_of(type(error)), "message": "", "line": 0, "traceback": []}
    steps: list = []
    try:
        steps = _steps(error)
        if len(steps) > MAX_FRAMES:
            steps = steps[: MAX_FRAMES // 2] + steps[-MAX_FRAMES // 2 :]
        out["traceback"] = _frames(steps, filename)
        out["line"] = next((line for code, line, _ in reversed(steps) if code.co_filename == filename), 0)
        out["message"] = message(error, policy.get("profile") == "notebook")
        if isinstance(error, SyntaxError) and error.filename == filename:
            out["line"], out["column"] = _position(error.lineno), _position(error.offset)
            out["message"] = values.readable(str(error.msg), MAX_MESSAGE)
            out["traceback"] = []
        elif out["type"] == "PolicyError" and type(getattr(error, "lineno", None)) is int:
            out["line"], out["traceback"] = _position(error.lineno), []  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a property of a hostile exception has failed
        pass
    try:
        hint = _hint(error, namespace, policy) or _cause_hint(error)
    except KeyboardInterrupt:
        raise
    except BaseException:
        hint = ""
    if hint:
        out["hint"] = values.readable(hint, MAX_MESSAGE)
        found = _NEAREST.search(hint)
        if found:
            out["nearest"] = values.readable(found[1], 200)
    try:
        if out["traceback"]:
            postmortem.fill(out["traceback"], steps, given or {})
    except KeyboardInterrupt:
        raise
    except BaseException:  # another thread changes the variables
        pass
    return out


def message(error: BaseException, is_notebook: bool = False) -> str:
    """Returns the bounded text of an error."""
    try:
        texts = values.Preview(MAX_MESSAGE, runs_code=True)
        if texts.needs_preview(error):
            args = _args(error)
            text = texts.text(args[0] if len(args) == 1 else args, MAX_MESSAGE)
        else:
            text = str.__str__(str(error))
        if issubclass(type(error), BaseExceptionGroup):
            text += ": " + "; ".join(_short_text(each) for each in error.exceptions[:10])  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        raise
    except BaseException as inner:
        text = f"<its __str__ raised {values.name_of(type(inner))}>"
    if is_notebook and len(_dumps(text[:MAX_NOTEBOOK_MESSAGE_BYTES])) <= MAX_NOTEBOOK_MESSAGE_BYTES:
        return values.readable(text, MAX_NOTEBOOK_MESSAGE_BYTES)
    return values.readable(text, MAX_MESSAGE)


def _short_text(error: BaseException) -> str:
    text = message(error)
    line = next((line for code, line, _ in reversed(_steps(error)) if code.co_filename.startswith("<execution")), 0)
    name = values.name_of(type(error))
    return (f"{name}: {text[:300]}" if text else name) + (f" (line {line})" if line else "")


def _cause_hint(error: BaseException) -> str:
    cause = _cause(error)
    return "" if cause is None else "the cause was " + _short_text(cause)


def _position(n: object) -> int:
    """Returns the number of a line or column; 0 if it is none. User code can set it to anything."""
    return n if type(n) is int and 0 <= n < 1 << 31 else 0


def _steps(error: BaseException) -> list:
    """Returns the frames of the traceback that are the user's, outermost first, as (code, line, frame)."""
    steps = []
    step = _trace(error)
    while step is not None:
        code = step.tb_frame.f_code
        if _is_users(code.co_filename) and "/site-packages/" not in code.co_filename:
            steps.append((code, step.tb_lineno or 0, step.tb_frame))
        step = step.tb_next
    return steps


def _frames(steps: list, filename: str) -> list:
    frames = []
    for code, line, _ in steps:
        text = values.readable(_getline(code.co_filename, line).strip(), 500)
        frame = {"line": line, "function": values.readable(code.co_name, 200), "code": text}
        if code.co_filename != filename:
            frame["file"] = values.readable(code.co_filename, 300)
        frames.append(frame)
    return frames


def near(name: object, names) -> str:
    """Returns the name in names that is most like name and not the same, or ""."""
    wanted = str(name)
    if len(wanted) > MAX_NAME_LENGTH:
        return ""
    listed = [
        n for n in list(names)[:MAX_NAMES] if type(n) is str and n != wanted and len(n) <= 2 * MAX_NAME_LENGTH
    ]
    folded = {n.lower(): n for n in reversed(listed)}
    if wanted.lower() in folded:
        return folded[wanted.lower()]
    close = _nearest(wanted, listed, 1, 0.6)
    return close[0] if close else ""


def _did_you_mean(name: object, names) -> str:
    found = near(name, names)
    return f"did you mean {found!r}?" if found else ""


# -- hints


def _hint(error: BaseException, namespace: dict, policy: dict) -> str:
    own_hint = getattr(error, "hint", None)
    if type(own_hint) is str and own_hint:
        return own_hint
    if isinstance(error, BaseExceptionGroup):
        return next((h for h in (_hint(each, namespace, policy) for each in error.exceptions[:10]) if h), "")
    if isinstance(error, ImportError):
        return _import_hint(error, policy)
    if isinstance(error, NameError):
        name = str(error.name)
        if name in _USUAL_IMPORTS:
            return f"{_USUAL_IMPORTS[name]} first"
        if name in sys.modules or name in sys.stdlib_module_names:
            return f"import {name} first"
        return _did_you_mean(name, [*_locals(error), *namespace]) or _did_you_mean(name, vars(builtins))
    if isinstance(error, AttributeError) and error.name:
        if type(error.obj).__name__ in ("coroutine", "async_generator"):
            return "an await is missing before the call"
        if message(error).startswith("Can only use ."):  # of pandas
            return _ACCESSORS.get(error.name, "")
        return _did_you_mean(error.name, dir(error.obj))
    if isinstance(error, KeyError):
        return _key_hint(error)
    if isinstance(error, MemoryError):
        return (
            f"max_memory_mb is {policy.get('max_memory_mb')}: work on less at a time, or create the sandbox with more"
        )
    if isinstance(error, RecursionError):
        return "a function calls itself without end, or more deeply than Python allows: use a loop"
    if isinstance(error, SyntaxError):
        return _syntax_hint(error)
    text = message(error)
    if isinstance(error, TypeError) and "'coroutine' object" in text:
        return "an await is missing before the call"
    if isinstance(error, RuntimeError) and "start new thread" in text:
        return f"max_threads is {policy.get('max_threads')}"
    if _is_network_error(error, text):
        hosts = ", ".join(map(str, policy.get("allowed_hosts") or ()))
        if policy.get("enable_network_access"):
            return f"the network reaches only allowed_hosts: {hosts}"
        return "the network is off in this sandbox (enable_network_access); use db_query for data"
    return _os_hint(error, policy) if isinstance(error, OSError) else ""


def _import_hint(error: ImportError, policy: dict) -> str:
    if isinstance(error, ModuleNotFoundError):
        return missing_modules.hint(error.name, policy.get("environment", "default"))
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    if found and found[2] in sys.modules:
        return _did_you_mean(found[1], vars(sys.modules[found[2]]))
    return ""


def _locals(error: BaseException) -> list:
    """Returns the names of the innermost user frame."""
    steps = _steps(error)
    return list(steps[-1][0].co_varnames) if steps else []


def _key_hint(error: KeyError) -> str:
    """Suggests the most similar key or column of the innermost frame that has one. If pandas did not find a label, the
    hint is about the table or index in which pandas searched."""
    if not error.args:
        return ""
    key, frames, step = error.args[0], [], _trace(error)
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    frames = frames[: -MAX_FRAMES - 1 : -1]  # innermost first
    searching = list(itertools.takewhile(_is_of_pandas, frames))
    if searching:
        return _label_hint(key, searching)
    for frame in frames:
        for value in list(frame.f_locals.values())[:200]:
            if issubclass(type(value), list) and list.__len__(value):  # a list of rows: the keys of the first row
                value = list.__getitem__(value, 0)
            kind = type(value)
            if kind is dict or kind in values.DICTS:
                if "__builtins__" in value:
                    continue
                found = _dict_hint(key, value)
            elif _is_data_frame(value):
                found = _did_you_mean(key, value.columns[:MAX_NAMES].tolist())
            else:
                continue
            if found:
                return found
    return ""


def _is_of_pandas(frame) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("pandas.")


def _is_data_frame(value: object) -> bool:
    return values.name_of(type(value)) == "DataFrame" and values.shape(value) is not None


def _label_hint(key: object, frames: list) -> str:
    """Suggests the most similar label of the index in which pandas' frames, innermost first, searched for key, or lists
    the labels. If no frame is a method of an index, the labels are the columns of the innermost table."""
    index = noun = None
    for frame in frames:
        variables = frame.f_locals
        if index is None and values.name_of(type(variables.get("self"))).endswith("Index"):
            index, noun = variables["self"], "labels"
        table = next(filter(_is_data_frame, variables.values()), None)
        if table is not None and (index is None or table.columns.equals(index)):
            index, noun = table.columns, "columns"
        if noun == "columns":
            break
    if index is None:
        return ""
    labels = index[:MAX_NAMES].tolist()
    more = f", ... ({len(index)} in all)" if len(index) > MAX_LISTED else ""
    return _dict_hint(key, dict.fromkeys(labels)) or f"the {noun} are {', '.join(map(repr, labels[:MAX_LISTED]))}{more}"


_ACCESSORS = {
    "dt": "the values are not dates: parse them first, with pd.to_datetime(...)",
    "str": "the values are not text: convert them first, with .astype(str)",
}


def _dict_hint(key: object, value: dict) -> str:
    """Suggests a key of a dict. A dict that has the key is another one than the one that was searched."""
    if type(key) is int and dict.__contains__(value, str(key)):
        return f"the key is the text {str(key)!r}"
    if type(key) is not str or dict.__contains__(value, key):
        return ""
    if _INTEGER.fullmatch(key) and dict.__contains__(value, int(key)):
        return f"the key is the number {int(key)}"
    return _did_you_mean(key, value)


def _syntax_hint(error: SyntaxError) -> str:
    line = (error.text or "").strip()
    if line.startswith("```"):
        return "send the code without the Markdown fence"
    if "outside async function" in str(error.msg):
        return "await works at the top level and in `async def`: make the function around it async"
    return ""


def _is_network_error(error: BaseException, text: str) -> bool:
    module = type(error).__module__
    if type(module) is str and module.partition(".")[0] in _NETWORK and isinstance(error, OSError | TimeoutError):
        return True
    if type(error).__name__ in ("gaierror", "URLError", "ClientConnectorError", "ClientConnectorDNSError"):
        return True
    # network unreachable, host unreachable, connection refused
    if isinstance(error, OSError) and error.errno in (101, 113, 111):
        return True
    if isinstance(error, PermissionError) and error.filename is None:
        step = _trace(error)
        while step is not None:
            if re.search(
                r"(/|^)(socket|socketserver|asyncio/\w+|urllib3/.+|http/client)\.py$", step.tb_frame.f_code.co_filename
            ):
                return True
            step = step.tb_next
    return "name resolution" in text or "Name or service not known" in text


def _os_hint(error: OSError, policy: dict) -> str:
    if isinstance(error, FileNotFoundError) and type(error.filename) is str:
        folder, name = os.path.split(error.filename)
        try:
            return _did_you_mean(name, sorted(os.listdir(folder or "."))[:MAX_NAMES])
        except OSError:
            return (
                f"there is no folder {folder!r}: {directories.session} is the working folder, /data has the data sets"
            )
    if error.errno in (13, 30):
        return f"only {directories.session} and {directories.tmp} can be written; the rest of the machine is hidden"
    limits = {28: "workspace_max_bytes", 27: "file_max_bytes", 24: "max_open_files", 11: "max_processes"}
    key = limits.get(error.errno or 0)
    return f"{key} is {policy.get(key)}" if key else ""
