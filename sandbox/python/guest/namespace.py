"""The helpers that code finds already there."""

import builtins
import collections
import datetime
import resource
import sys

import convert
import database
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")

_UTC = datetime.UTC


class Helpers(database.Database):
    """The helpers of one session; names() is what a namespace begins with."""

    def __init__(self, channel, state, display):
        super().__init__(channel)
        self._state = state  # () -> sandbox.Variables of the session
        self._display = display
        self._logs: collections.deque = collections.deque(maxlen=1000)
        self._total = 0
        self._levels: dict = {}
        self._tracked: dict = {}

    def names(self) -> dict:
        public = (
            "db_query",
            "db_frame",
            "db_explain",
            "db_tables",
            "db_schema",
            "debug",
            "inspect_var",
            "get_debug_info",
            "get_execution_history",
            "get_sandbox_state",
        )
        out = {name: getattr(self, name) for name in public}
        out.update(display=self._display, datetime=datetime.datetime, timedelta=datetime.timedelta, timezone=datetime.timezone)
        out.update(ReadOnlyError=database.ReadOnlyError, DatabaseError=database.DatabaseError, Range=convert.Range)
        out.update(exit=sys.exit, quit=sys.exit)
        return out

    def debug(self, message, level="INFO", data=None):
        """Keeps a note with the execution; level is DEBUG, INFO, WARNING or ERROR."""
        level = str(level).upper()
        level = "WARNING" if level == "WARN" else level
        if level not in LEVELS:
            raise ValueError(f"level {level!r} is not one of {', '.join(LEVELS)}")
        text = message if type(message) is str else values.safe_repr(message, 10_000)
        note = {"level": level, "message": values.readable(text, 10_000), **_place(sys._getframe(1))}
        if data is not None:
            note["data"] = values.plain(data, 50_000, 5_000)[0]
        self._total += 1
        self._levels[level] = self._levels.get(level, 0) + 1
        self._logs.append(note)
        self._channel.note(note)

    def inspect_var(self, name, value):
        """Records the value's type, size and a bounded repr under name; returns the value."""
        size = None
        try:
            size = value.nbytes if values.shape(value) is not None and values.name_of(type(value)) == "ndarray" else sys.getsizeof(value)
        except Exception:
            pass  # its __sizeof__ failed
        note = {
            "name": values.readable(str(name), 200),
            "type": values.type_name(value),
            "size": int(size or 0),
            "repr": values.safe_repr(value),
        }
        note.update(_place(sys._getframe(1)))
        if len(self._tracked) < 1000 or note["name"] in self._tracked:
            self._tracked.setdefault(note["name"], collections.deque(maxlen=50)).append(note)
        self._channel.note(note)
        return value

    def get_debug_info(self):
        """{total_logs, log_levels, tracked_variables, variable_names, recent_logs}"""
        return database.State(
            total_logs=self._total,
            log_levels=dict(self._levels),
            tracked_variables=len(self._tracked),
            variable_names=list(self._tracked),
            recent_logs=[dict(note) for note in list(self._logs)[-10:]],
        )

    def get_sandbox_state(self):
        """This sandbox's variables and what it uses."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        usage = {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_memory_mb": used.ru_maxrss / 1024}
        return database.State(self._state(), usage=usage)


def _place(frame) -> dict:
    return {
        "timestamp": datetime.datetime.now(_UTC).isoformat(),
        "line": frame.f_lineno or 0,
        "function": values.readable(frame.f_code.co_name, 200),
    }
