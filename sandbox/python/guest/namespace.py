"""The helpers that user code finds in its namespace. helpers.py is their registry."""

import builtins
import collections
import datetime
import resource
import sys
import warnings

import database
import helpers
import json_values
import values
from helpers import helper

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_OTHER_NAMES = {"FATAL": "CRITICAL", "WARN": "WARNING"}

_UTC = datetime.UTC


class Helpers(database.Database):
    """The helpers of one session. variables() returns its sandbox.Variables; show() adds objects as rich outputs; shell
    is a notebook.Shell."""

    def __init__(self, channel, variables, show, shell):
        super().__init__(channel)
        self._variables = variables
        self._show = show
        self._shell = shell
        self._logs: collections.deque = collections.deque(maxlen=1000)
        self._note_count = 0
        self._count_by_level: dict = {}
        self._tracked: dict = {}

    def names(self) -> dict:
        """Returns the initial content of a session's namespace."""
        return helpers.namespace(self)

    @helper("debugging")
    def debug(self, message, level="INFO", data=None):
        """Records a note with the execution. level is DEBUG, INFO, WARNING, ERROR or CRITICAL; any other is
        INFO, with a warning. data is any value."""
        wanted = str(level).upper()
        level = _OTHER_NAMES.get(wanted, wanted)
        if level not in LEVELS:
            level = "INFO"
            known = ", ".join(LEVELS)
            warnings.warn(
                f"level {values.readable(wanted, 100)!r} is unknown, and recorded as INFO: use one of {known}",
                stacklevel=2,
            )
        text = message if type(message) is str else values.safe_repr(message, 10_000)
        note = {"level": level, "message": values.readable(text, 10_000), **_source_position(sys._getframe(1))}
        if data is not None:
            note["data"] = json_values.plain(data, 50_000, 5_000)[0]
        self._note_count += 1
        self._count_by_level[level] = self._count_by_level.get(level, 0) + 1
        self._logs.append(note)
        self._channel.note(note)

    @helper("debugging")
    def inspect_var(self, name, value):
        """Records the value's type, size in bytes and a bounded repr under name, and returns the value."""
        size = None
        try:
            is_array = values.shape(value) is not None and values.name_of(type(value)) == "ndarray"
            if is_array:
                size = value.nbytes
            elif values.Preview(values.MAX_REPR).needs_preview(value):
                size = object.__sizeof__(value)  # that of a Series adds up its items, and those of a Series in it
            else:
                size = sys.getsizeof(value)
        except Exception:
            pass  # its __sizeof__ raised
        note = {
            "name": values.readable(str(name), 200),
            "type": values.type_name(value),
            "size": int(size or 0),
            "repr": values.safe_repr(value),
        }
        note.update(_source_position(sys._getframe(1)))
        if len(self._tracked) < 1000 or note["name"] in self._tracked:
            self._tracked.setdefault(note["name"], collections.deque(maxlen=50)).append(note)
        self._channel.note(note)
        return value

    @helper("debugging", awaitable=True)
    def get_debug_info(self):
        """Returns what was noted so far: total_logs, log_levels, tracked_variables, variable_names and recent_logs."""
        return database.State(
            total_logs=self._note_count,
            log_levels=dict(self._count_by_level),
            tracked_variables=len(self._tracked),
            variable_names=list(self._tracked),
            recent_logs=[dict(note) for note in list(self._logs)[-10:]],
        )

    @helper("debugging", awaitable=True)
    def get_sandbox_state(self):
        """Returns this sandbox's variables, and the CPU time and memory that it has used."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        usage = {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_memory_mb": used.ru_maxrss / 1024}
        return database.State(self._variables(), usage=usage)

    @helper("output", signature="display(*objects)")
    def display(self, *objects, **options):
        """Adds each object as a rich output: a DataFrame, a figure, an image, or anything that notebooks can show."""
        return self._show(*objects, **options)

    @helper("run", signature="help(object)", in_compat=True)
    def help(self, *objects):
        """Prints the documentation of an object."""
        import pydoc  # rarely used, and large

        if not objects:
            print("help(object) prints the documentation of an object, such as help(len)")
        for each in objects:
            pydoc.help(each)

    @helper("output", in_compat=True)
    def get_ipython(self):
        """Returns what notebooks use of IPython's shell: run_line_magic, run_cell_magic and user_ns. Lines such as
        `%time f(x)` and `%pip install NAME` call it."""
        return self._shell


value = helpers.value
value(
    "__result__",
    "output",
    "__result__ = value",
    "The result of the run. If it is not set, the result is the value of a last expression.",
)
value(
    "context",
    "run",
    "context",
    "The context of the run as a dict. Its keys are also attributes and, if they are identifiers, variables.",
)
value("exit", "run", "exit(code=None)", "Ends the run. It fails if code is not 0 or None.", sys.exit, in_compat=True)
value("quit", "run", "quit(code=None)", "The same as exit.", sys.exit, in_compat=True)
for kind, signature in (
    (datetime.datetime, "datetime(year, month, day, ...)"),
    (datetime.timedelta, "timedelta(days=0, ...)"),
    (datetime.timezone, "timezone.utc"),
):
    value(kind.__name__, "dates", signature, f"datetime.{kind.__name__} of the standard library.", kind)


def _source_position(frame) -> dict:
    return {
        "timestamp": datetime.datetime.now(_UTC).isoformat(),
        "line": frame.f_lineno or 0,
        "function": values.readable(frame.f_code.co_name, 200),
    }
