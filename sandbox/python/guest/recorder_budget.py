"""The budget of steps and bytes of a recording.

The first steps are sent at once. When the budget is used up, only the last steps are kept, in two consecutive segments.
They are sent when the program stops for the debugger, when recording ends, and at the end of the run, after a record
with the number of steps that are left out. So the stream is complete up to each stop.

A segment that does not follow sent steps begins with a key frame, which restates the state of the program.
"""

import recorder_format as form
import recorder_objects
from recorder_format import varint

HEAD_STEPS = 10_000  # steps that are always sent
MAX_STEPS = 1_000_000
MAX_BYTES = 64 << 20
MAX_SENT_BYTES = 160 << 20  # with the segments that are sent at stops; a reader rejects 192 MiB
MAX_OBJECTS = 100_000  # objects that are known at a time
CHECK_STEPS = 1000  # steps between two comparisons with MAX_BYTES
CHECK_HELD_STEPS = 100  # the same while steps are held
SEGMENT_STEPS = 2000
SEGMENT_BYTES = 1 << 20

_DROPPED = "the budget of steps is used; the last are kept"
TOO_LARGE = "the budget of bytes is used; later steps are not recorded"


class _Segment:
    """Records from a step on. key_frame is None if the records follow those that are sent."""

    def __init__(self, first: int, key_frame: "bytes | None"):
        self.first, self.key_frame, self.records = first, key_frame, bytearray()


class Budget:
    def __init__(self, recorder):
        self._recorder = recorder
        self._sent = 0  # steps that are sent or dropped already
        self._old: _Segment | None = None
        self._current = _Segment(0, None)

    def apply(self) -> None:
        """Keeps a recording within its budget. It is called at step recorder.budget_step, which it then increases."""
        recorder = self._recorder
        steps = recorder.steps
        if recorder.tail_only:
            self._limit_segment(steps)
            left = self._current.first + SEGMENT_STEPS - steps
            recorder.budget_step = steps + (left if 0 < left < CHECK_HELD_STEPS else CHECK_HELD_STEPS)
            recorder._ring.tell_held(steps - self._sent)
        elif steps >= HEAD_STEPS and (steps >= MAX_STEPS or recorder._bytes_sent() >= MAX_BYTES):
            recorder._flush()
            recorder.tail_only = True
            self._begin(steps, None)
        else:
            recorder.budget_step = max(HEAD_STEPS, min(steps + CHECK_STEPS, MAX_STEPS))

    def _begin(self, steps: int, key_frame: "bytes | None") -> None:
        """Begins a segment. Its definitions are kept apart, because they are never dropped."""
        recorder, writer = self._recorder, self._recorder._writer
        if self._old is None:
            self._sent = steps
            writer.defined = bytearray()
        self._current = _Segment(steps, key_frame)
        writer.out = recorder._out = self._current.records
        recorder.budget_step = steps + min(CHECK_HELD_STEPS, SEGMENT_STEPS)
        recorder._ring.close_fast_path()

    def _limit_segment(self, steps: int) -> None:
        """Begins the next segment if this one is full. A large key frame takes time, so it needs a long segment."""
        segment = self._current
        size, key_size = len(segment.records), len(segment.key_frame or b"")
        if size >= max(SEGMENT_BYTES, key_size) or steps - segment.first >= SEGMENT_STEPS and size >= key_size // 2:
            key_frame = self.state()
            self._old = segment
            self._begin(steps, key_frame)

    def release(self) -> bool:
        """Hands over the steps that are held, if any. Returns False if the recording would become too large."""
        recorder = self._recorder
        if not recorder.tail_only:
            return True
        return self._hand_over(self._held()) or self._hand_over(self._only_state())

    def _hand_over(self, records: bytearray) -> bool:
        """Sends records in place of the segments, unless they are too many."""
        recorder = self._recorder
        if recorder._bytes_sent() + len(records) > MAX_SENT_BYTES:
            return False
        recorder._writer.out = recorder._out = records
        recorder._flush()
        self._old = None
        self._begin(recorder.steps, None)
        return True

    def _held(self) -> bytearray:
        """Returns the definitions and the records that are held, after a record of what is lost before them."""
        first, out = self._old or self._current, bytearray(self._recorder._writer.defined)
        if first.key_frame is not None:
            out += _lost(first.first - self._sent, _DROPPED) + first.key_frame
        out += first.records
        if first is not self._current:
            out += self._current.records
        return out

    def _only_state(self) -> bytearray:
        """Returns records of the present state, and that all held steps are lost."""
        state = self.state()  # it may define names
        out = bytearray(self._recorder._writer.defined)
        out += _lost(self._recorder.steps - self._sent, _DROPPED)
        return out + state

    def end(self) -> None:
        """Adds the last steps to the records that are flushed next, and does not hold records any more."""
        recorder, writer = self._recorder, self._recorder._writer
        if not recorder.tail_only:
            return
        records = self._held()
        if recorder._bytes_sent() + len(records) > MAX_SENT_BYTES:
            records = writer.defined + _lost(recorder.steps - self._sent, TOO_LARGE)
        writer.out = writer.defined = recorder._out = records
        recorder.tail_only = False

    def state(self) -> bytes:
        """Returns records that restate the live frames, variables and objects. Other objects are forgotten."""
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
        stated = {0}
        for known in _callers_first(recorder._live_frames()):
            stated.add(known.number)
            flags = form.RESTATED | (form.SUSPENDED if known.suspended else 0)
            parent = known.parent if known.parent in stated else 0
            body += varint(form.PUSH) + varint(known.number) + known.code.number
            body += varint(known.thread) + varint(parent) + varint(flags) + varint(known.line)
            if known.code.unread:
                body += varint(form.UNREAD) + recorder._writer.name(known.code.unread)
            state(form.SET, known.recorded)
        if recorder._current_frame in stated and recorder._current_frame:
            body += varint(form.FRAME) + varint(recorder._current_frame)
        else:
            recorder._current_frame = 0
        objects = bytearray()
        recorder._forget_objects_except(recorder._objects.restate(objects, live))
        return bytes(objects + body)


def _lost(steps: int, why: str) -> bytes:
    return varint(form.LOST) + varint(steps) + form.text(why)


def _callers_first(live: list) -> list:
    """Returns frames in the order in which they can be stated: each after its caller, if that is live."""
    by_number = {known.number: known for _, known in live}
    out: dict = {}
    for known in by_number.values():
        chain: dict = {}
        while known is not None and known.number not in out and known.number not in chain:
            chain[known.number] = known
            known = by_number.get(known.parent)
        out.update(reversed(chain.items()))
    return list(out.values())
