"""Hints for the exceptions of failed runs: what was probably meant, or what a sandbox has instead."""

import builtins
import difflib
import itertools
import os
import re
import sys

import directories
import exception_parts
import missing_modules
import removed_names
import type_hints
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_FRAMES = 50  # that are searched
MAX_NAMES = 2000  # among which the nearest is searched
MAX_NAME_LENGTH = 100  # of a name that has a nearest; the search takes a time quadratic in it
MIN_LIKENESS = 0.65  # of names; append and pipe have 0.6
MAX_LISTED = 20  # labels of a table that a hint lists
MAX_CAUSES = 5  # in which a hint is searched

_USUAL_IMPORTS = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "px": "import plotly.express as px",
    "dt": "import datetime as dt",
}
_NETWORK = ("requests", "aiohttp", "urllib", "urllib3", "http", "socket", "ssl")
_NETWORK_FILES = re.compile(r"(/|^)(socket|socketserver|asyncio/\w+|urllib3/.+|http/client)\.py$")
# The modules that start processes, or make what several processes share.
_PROCESS_FILES = re.compile(r"(/|^)(subprocess|pty|multiprocessing/(?!pool|dummy/)\w+|concurrent/futures/process)\.py$")
_STARTS = {"fork", "forkpty", "popen", "posix_spawn", "posix_spawnp", "_fork_exec", "fork_exec"}
_NO_PROCESSES = (
    "a sandbox cannot start processes: use threads, such as concurrent.futures.ThreadPoolExecutor, or call the "
    "library's function directly"
)

_NO_VIDEO = (
    "a sandbox has no ffmpeg: save the animation as a GIF, animation.save('animation.gif', writer='pillow'), or show "
    "it with HTML(animation.to_jshtml()) of IPython.display"
)

_DRIVERS = ("asyncpg", "psycopg", "psycopg2", "sqlalchemy")
_NO_CONNECTION = "the sandbox has no connection of its own: db_query(sql, params) returns rows, db_frame a DataFrame"

_EARLIER_CELLS = re.compile(r"In|Out|_{1,3}|_i{1,3}|_i?\d+")  # names of IPython
_INTEGER = re.compile(r"-?\d{1,18}")
_nearest = difflib.get_close_matches


def near(name: object, names) -> str:
    """Returns the name in names that is most like name and not the same, or ""."""
    wanted = str(name)
    if len(wanted) > MAX_NAME_LENGTH:
        return ""
    listed = [n for n in list(names)[:MAX_NAMES] if type(n) is str and n != wanted and len(n) <= 2 * MAX_NAME_LENGTH]
    folded = {n.lower(): n for n in reversed(listed)}
    if wanted.lower() in folded:
        return folded[wanted.lower()]
    close = _nearest(wanted, listed, 1, MIN_LIKENESS)
    return close[0] if close else ""


def _did_you_mean(name: object, names) -> str:
    found = near(name, names)
    return f"did you mean {found!r}?" if found else ""


def hint(error: BaseException, namespace: dict, policy: dict) -> str:
    """Returns a hint for an error or, if there is none, for what it was raised from. "" if there is none."""
    for _ in range(MAX_CAUSES):
        found = _hint(error, namespace, policy)
        cause = exception_parts.cause(error)
        if found or cause is None:
            return found
        error = cause
    return ""


def _hint(error: BaseException, namespace: dict, policy: dict) -> str:
    own_hint = getattr(error, "hint", None)
    if type(own_hint) is str and own_hint:
        return own_hint
    if isinstance(error, BaseExceptionGroup):
        return next((h for h in (_hint(each, namespace, policy) for each in error.exceptions[:10]) if h), "")
    text = exception_parts.message(error)
    by_place = _hint_by_place(error, namespace)
    if by_place:
        return by_place
    if isinstance(error, ImportError):
        return _import_hint(error, namespace, policy)
    if isinstance(error, NameError):
        return _name_hint(error, namespace)
    if isinstance(error, AttributeError) and error.name:
        return _attribute_hint(error, text)
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
    if isinstance(error, UnicodeDecodeError):
        return f"the bytes are not {error.encoding}: pass their encoding, such as encoding='cp1252' or 'utf-16'"
    if isinstance(error, TypeError):
        if "'coroutine' object" in text:
            return "an await is missing before the call"
        return removed_names.keyword(text) or type_hints.hint(text, _tracebacks_frames(error))
    if isinstance(error, RuntimeError) and "start new thread" in text:
        return f"max_threads is {policy.get('max_threads')}"
    if isinstance(error, RuntimeError) and "event loop is already running" in text:
        return "code that awaits at its top level runs in the event loop: write `await` instead"
    if _is_network_error(error, text):
        hosts = ", ".join(map(str, policy.get("allowed_hosts") or ()))
        if policy.get("enable_network_access"):
            return f"the network reaches only allowed_hosts: {hosts}"
        return "the network is off in this sandbox (enable_network_access); use db_query for data"
    if type(error).__name__ == "Error" and type(error).__module__ == "locale":
        return "the sandbox has C.UTF-8 and what its machine has: for another language, format with the package babel"
    return _os_hint(error, policy) if isinstance(error, OSError) else ""


def _hint_by_place(error: BaseException, namespace: dict) -> str:
    """Returns a hint for an error of any type that comes from modules whose work a sandbox cannot do."""
    frames = _tracebacks_frames(error)
    if any(frame.f_code.co_filename.endswith("matplotlib/animation.py") for frame in frames):
        text = exception_parts.message(error)
        if isinstance(error, OSError) or "not available" in text or "unknown file extension" in text:
            return _NO_VIDEO
    for frame in frames:
        filename = frame.f_code.co_filename
        if _PROCESS_FILES.search(filename) and isinstance(error, (OSError, ImportError, NotImplementedError)):
            return _NO_PROCESSES
        if filename.endswith("pandas/core/reshape/merge.py") and "concat" in str(error) and type(error) is ValueError:
            return "give both columns the same type first, such as with pd.to_datetime(...) or .astype(str)"
        if filename.endswith("pandas/io/sql.py") and "db_frame" in namespace:
            con = frame.f_locals.get("con")
            if type(con) is str and "://" in con:
                return _NO_CONNECTION
    return ""


def _tracebacks_frames(error: BaseException) -> list:
    """Returns the innermost frames of a traceback, innermost first, with those of libraries."""
    frames, step = [], exception_parts.trace(error)
    while step is not None:
        frames.append(step.tb_frame)
        step = step.tb_next
    return frames[: -MAX_FRAMES - 1 : -1]


def _name_hint(error: NameError, namespace: dict) -> str:
    name = str(error.name)
    if name in _USUAL_IMPORTS:
        return f"{_USUAL_IMPORTS[name]} first"
    if name in sys.modules or name in sys.stdlib_module_names:
        return f"import {name} first"
    if _EARLIER_CELLS.fullmatch(name):
        return "code and values of earlier runs are not kept under such names: assign values to variables of your own"
    return (
        removed_names.attribute("builtins", name)
        or _did_you_mean(name, [*_locals(error), *namespace])
        or _did_you_mean(name, vars(builtins))
    )


def _attribute_hint(error: AttributeError, text: str) -> str:
    name = str(error.name)
    if type(error.obj).__name__ in ("coroutine", "async_generator"):
        return "an await is missing before the call"
    if text.startswith("Can only use ."):  # of pandas
        return _ACCESSORS.get(name, "")
    found = removed_names.attribute(removed_names.package(error.obj), name)
    if found or not text.endswith(f"has no attribute {name!r}"):  # a library that says more is right
        return found
    return _did_you_mean(name, dir(error.obj))


def _import_hint(error: ImportError, namespace: dict, policy: dict) -> str:
    environment = policy.get("environment", "default")
    if isinstance(error, ModuleNotFoundError):
        if error.name in _DRIVERS and "db_frame" in namespace:
            return _NO_CONNECTION
        return missing_modules.hint(error.name, environment)
    text = str(error)
    optional = re.match(r"(?:`?Import (\w+)`? failed|Missing optional dependency '(\w+)')", text)  # of pandas
    if optional:
        return missing_modules.hint(optional[1] or optional[2], environment)
    if text.startswith("Cannot load backend"):  # of matplotlib
        return "a sandbox has no display: leave out matplotlib.use(...), and figures are shown as pictures"
    found = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", text)
    if found and found[2] in sys.modules:
        names = vars(sys.modules[found[2]])
        return removed_names.attribute(found[2].partition(".")[0], found[1]) or _did_you_mean(found[1], names)
    return ""


def _locals(error: BaseException) -> list:
    """Returns the names of the innermost user frame."""
    steps = exception_parts.steps(error)
    return list(steps[-1][0].co_varnames) if steps else []


def _key_hint(error: KeyError) -> str:
    """Suggests the most similar key or column of the innermost frame that has one. If pandas did not find a label, the
    hint is about the table or index in which pandas searched."""
    if not error.args:
        return ""
    key, frames = error.args[0], _tracebacks_frames(error)
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
        if any(_NETWORK_FILES.search(frame.f_code.co_filename) for frame in _tracebacks_frames(error)):
            return True
    return "name resolution" in text or "Name or service not known" in text


def _os_hint(error: OSError, policy: dict) -> str:
    if isinstance(error, FileNotFoundError) and type(error.filename) in (str, bytes):
        return _file_hint(os.fsdecode(error.filename))
    if error.errno in (13, 30):
        return f"only {directories.session} and {directories.tmp} can be written; the rest of the machine is hidden"
    if error.errno == 11 and _starts_process(error):
        return _NO_PROCESSES
    limits = {28: "workspace_max_bytes", 27: "file_max_bytes", 24: "max_open_files"}
    key = limits.get(error.errno or 0)
    return f"{key} is {policy.get(key)}" if key else ""


def _starts_process(error: OSError) -> bool:
    """Tells whether the innermost frame calls a function of os that starts a process. Other functions have the same
    error for a descriptor that has no data."""
    frames = _tracebacks_frames(error)
    return bool(frames) and not _STARTS.isdisjoint(frames[0].f_code.co_names)


def _file_hint(path: str) -> str:
    """Names the file that was probably meant: one of the same name where a sandbox has files, or else one of a similar
    name in the same folder or there."""
    folder, name = os.path.split(path.rstrip("/"))
    files = _files()
    for same in (str.__eq__, lambda a, b: a.lower() == b.lower()):
        found = next((file for file in files if same(os.path.basename(file), name)), "")
        if found:
            return f"did you mean {found!r}?"
    try:
        neighbour = near(name, sorted(os.listdir(folder or "."))[:MAX_NAMES])
        if neighbour:
            return f"did you mean {os.path.join(folder, neighbour)!r}?"
    except OSError:
        pass
    names = {os.path.basename(file): file for file in reversed(files)}
    found = near(name, names)
    if found:
        return f"did you mean {names[found]!r}?"
    if folder and not os.path.isdir(folder):
        return f"there is no folder {folder!r}: {directories.session} is the working folder, {_DATA} has the data sets"
    return ""


_DATA = "/data"


def _files() -> list:
    """Returns the paths of the files and folders in /data and in the session, those of outer folders first, at most
    MAX_NAMES."""
    found: list = []
    for root in (_DATA, directories.session, directories.tmp):
        todo = [root]
        while todo and len(found) < MAX_NAMES:
            folder = todo.pop(0)
            found.append(folder)
            try:
                with os.scandir(folder) as entries:
                    for entry in sorted(itertools.islice(entries, MAX_NAMES), key=lambda each: each.name):
                        if entry.name.startswith("."):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            todo.append(entry.path)
                        else:
                            found.append(entry.path)
            except OSError:
                continue
    return found[:MAX_NAMES]
