"""Makes the recorder for this version of Python. All its modules are imported here, and none during a run."""

import sys

import debug_control
import debug_expressions
import protocol
import recorder
import recorder_budget
import recorder_code
import recorder_extension
import recorder_format
import recorder_guard
import recorder_line
import recorder_objects
import recorder_ring
import recorder_source
import recorder_variables

_fast: type[recorder.Recorder] | None = None  # with the C extension
_plain: type[recorder.Recorder]

if sys.version_info >= (3, 12):
    import recorder_monitoring as hooks

    _plain = hooks.MonitoringRecorder
else:
    import recorder_settrace as hooks

    _plain = hooks.SettraceRecorder
try:
    _fast = hooks.fast_recorder()
except ImportError:
    pass  # the extension is not built

for _module in (
    *(
        debug_control,
        debug_expressions,
        recorder,
        recorder_budget,
        recorder_code,
        recorder_extension,
        recorder_format,
        recorder_guard,
        recorder_line,
        recorder_objects,
    ),
    *(recorder_ring, recorder_source, recorder_variables, hooks),
):
    protocol.UNINTERRUPTIBLE_FILES.add(str(_module.__file__))


def new_recorder(channel, filename: str, names: dict, hidden, fast: bool = True) -> recorder.Recorder:
    """Returns a recorder of code compiled under filename, with the C extension if it is built and fast is True."""
    return (_fast or _plain if fast else _plain)(channel, filename, names, hidden)
