"""The parts of an exception: its text, and the frames of the user's code."""

import builtins
import json

import directories
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_MESSAGE = 4000
# Of the message of a notebook's error, as JSON: clients such as smolagents return values in it. The supervisor takes
# 1 MiB for the whole exception.
MAX_NOTEBOOK_MESSAGE_BYTES = 800_000

# Files of the user's code, besides those in its directories.
_USER_FILES = ("<execution",)

_dumps = json.dumps
trace = vars(BaseException)["__traceback__"].__get__
cause = vars(BaseException)["__cause__"].__get__
_args = vars(BaseException)["args"].__get__


def _is_users(filename: str) -> bool:
    """Tells whether a file has the user's own code. In tests, the guest's modules may also be below /tmp."""
    return filename.startswith(
        (*_USER_FILES, directories.session + "/", directories.tmp + "/")
    ) and not filename.startswith(directories.OWN + "/")


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
            text += ": " + "; ".join(short_text(each) for each in error.exceptions[:10])  # type: ignore[attr-defined]
    except KeyboardInterrupt:
        raise
    except BaseException as inner:
        text = f"<its __str__ raised {values.name_of(type(inner))}>"
    if is_notebook and len(_dumps(text[:MAX_NOTEBOOK_MESSAGE_BYTES])) <= MAX_NOTEBOOK_MESSAGE_BYTES:
        return values.readable(text, MAX_NOTEBOOK_MESSAGE_BYTES)
    return values.readable(text, MAX_MESSAGE)


def short_text(error: BaseException) -> str:
    text = message(error)
    line = next((line for code, line, _ in reversed(steps(error)) if code.co_filename.startswith("<execution")), 0)
    name = values.name_of(type(error))
    return (f"{name}: {text[:300]}" if text else name) + (f" (line {line})" if line else "")


def steps(error: BaseException) -> list:
    """Returns the frames of the traceback that are the user's, outermost first, as (code, line, frame)."""
    found = []
    step = trace(error)
    while step is not None:
        code = step.tb_frame.f_code
        if _is_users(code.co_filename) and "/site-packages/" not in code.co_filename:
            found.append((code, step.tb_lineno or 0, step.tb_frame))
        step = step.tb_next
    return found
