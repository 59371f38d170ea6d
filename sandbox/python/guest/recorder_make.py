"""Which recorder this Python has, with all that it needs: nothing is imported later."""

import sys

import protocol
import recorder
import recorder_code
import recorder_format
import recorder_line
import recorder_names
import recorder_ring
import recorder_tail
import recorder_values
import stops

_fast: type[recorder.Recorder] | None = None
_kind: type[recorder.Recorder]

if sys.version_info >= (3, 12):
    import recorder_monitor as hooks

    _kind = hooks.MonitorRecorder
else:
    import recorder_trace as hooks

    _kind = hooks.TraceRecorder
    try:
        _fast = hooks.fast()
    except ImportError:
        pass  # there was no compiler

for _module in (recorder, recorder_code, recorder_format, recorder_line, recorder_names, recorder_ring, recorder_tail, recorder_values, stops, hooks):
    protocol.HOOKS.add(str(_module.__file__))


def make(channel, filename: str, names: dict, hidden, fast: bool = True) -> recorder.Recorder:
    """Records code compiled under filename; fast, where the extension is there."""
    return (_fast or _kind if fast else _kind)(channel, filename, names, hidden)
