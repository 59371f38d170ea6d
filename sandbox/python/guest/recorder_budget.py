"""The budget of steps and bytes of a recording.

The first steps are sent at once. When the budget is used up, only the last steps are kept, in two consecutive segments.
They are sent at the end, after a record with the number of steps that are left out.
"""

import recorder_format as form
import recorder_objects
from recorder_format import varint

HEAD_STEPS = 10_000  # steps that are always sent
MAX_STEPS = 1_000_000
MAX_BYTES = 64 << 20
MAX_OBJECTS = 100_000  # objects that are known at a time; objects in a cycle stay known to the end
CHECK_STEPS = 1000  # steps between two comparisons with MAX_BYTES
SEGMENT_STEPS = 2000
SEGMENT_BYTES = 1 << 20


class Budget:
    def __init__(self, recorder):
        self._recorder = recorder
        self._steps = self._dropped = 0
        self._key_frame = self._old_key_frame = b""
        self._old: bytearray | None = None
        self._old_steps = 0

    def apply(self) -> None:
        """Keeps a recording within its budget. It is called at step recorder.budget_step, which it then increases."""
        recorder = self._recorder
        out = recorder._writer.out
        if recorder.tail_only:
            self._steps += 1
            if self._steps >= SEGMENT_STEPS or len(out) >= SEGMENT_BYTES:
                self._next_segment(out)
        elif recorder.steps >= HEAD_STEPS and (recorder.steps >= MAX_STEPS or recorder._bytes_sent() >= MAX_BYTES):
            recorder._flush()
            recorder.tail_only = True
            self._begin_segment()
        else:
            recorder.budget_step = max(HEAD_STEPS, min(recorder.steps + CHECK_STEPS, MAX_STEPS))

    def _begin_segment(self) -> None:
        writer = self._recorder._writer
        self._key_frame, self._steps = self._state(), 0
        if writer.defined is writer.out:
            writer.defined = bytearray()
        writer.out = self._recorder._out = bytearray()

    def _next_segment(self, out: bytearray) -> None:
        self._dropped += self._old_steps
        self._old, self._old_key_frame, self._old_steps = out, self._key_frame, self._steps
        self._begin_segment()

    def end(self) -> None:
        """Stores the current segment as the last one."""
        writer = self._recorder._writer
        if not self._recorder.tail_only:
            return
        out = bytearray(writer.defined)
        if self._dropped:
            why = form.text("the budget of steps is used; the last are kept")
            out += varint(form.LOST) + varint(self._dropped) + why + self._old_key_frame
        out += (self._old or b"") + writer.out
        writer.out = writer.defined = self._recorder._out = out
        self._recorder.tail_only = False

    def _state(self) -> bytes:
        """Returns records that restate the live frames, variables and objects."""
        recorder = self._recorder
        body, live = bytearray(), []

        def state(record: int, recorded: dict) -> None:
            for name, value in recorded.items():
                if type(value) in recorder_objects.ENTRY_TYPES:
                    live.append(value)
                    data = b"@" + varint(value.number)
                else:
                    data = form.scalar(value) or b"N"
                body.extend(varint(record) + recorder._writer.name(name) + data)

        state(form.GLOBAL, recorder._recorded)
        waiting = sorted((known for _, known in recorder._live_frames()), key=lambda known: known.number)
        stated = {0}
        while waiting:
            later = []
            for known in waiting:
                if known.parent not in stated:
                    later.append(known)
                    continue
                stated.add(known.number)
                flags = form.RESTATED | (form.SUSPENDED if known.suspended else 0)
                body += varint(form.PUSH) + varint(known.number) + known.code.number
                body += varint(known.thread) + varint(known.parent) + varint(flags) + varint(known.line)
                state(form.SET, known.recorded)
            if len(later) == len(waiting):
                break
            waiting = later
        if recorder._current_frame in stated and recorder._current_frame:
            body += varint(form.FRAME) + varint(recorder._current_frame)
        else:
            recorder._current_frame = 0
        objects = bytearray()
        recorder._objects.restate(objects, live)
        return bytes(objects + body)
