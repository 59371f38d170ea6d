"""The recorder's budget of steps and bytes: the first steps are sent as they come;
once the budget is used, only the last ones are kept, in two segments that follow each
other, and sent at the end behind a record that counts those between.
"""

import recorder_format as form
import recorder_values
from recorder_format import n

HEAD_STEPS = 10_000  # that are always kept
MAX_STEPS = 1_000_000
MAX_BYTES = 64 << 20
MAX_OBJECTS = 100_000  # that are known at a time; those of a cycle are, to the end
LOOK = 1000  # steps from one look at the bytes to the next
SEGMENT = 2000  # steps of a segment
SEGMENT_BYTES = 1 << 20


class Tail:
    def __init__(self, recorder):
        self._recorder = recorder
        self._steps = self._dropped = 0
        self._key = self._old_key = b""
        self._old: bytearray | None = None
        self._old_steps = 0

    def step(self) -> None:
        """Called with the steps from recorder.mark on; says when it wants to be called next."""
        recorder = self._recorder
        out = recorder._writer.out
        if recorder.kept:
            self._steps += 1
            if self._steps >= SEGMENT or len(out) >= SEGMENT_BYTES:
                self._roll(out)
        elif recorder.count >= HEAD_STEPS and (recorder.count >= MAX_STEPS or recorder._sent() >= MAX_BYTES):
            recorder._flush()
            recorder.kept = True
            self._begin()
        else:
            recorder.mark = max(HEAD_STEPS, min(recorder.count + LOOK, MAX_STEPS))

    def _begin(self) -> None:
        writer = self._recorder._writer
        self._key, self._steps = self._state(), 0
        if writer.defined is writer.out:
            writer.defined = bytearray()
        writer.out = self._recorder._out = bytearray()

    def _roll(self, out: bytearray) -> None:
        self._dropped += self._old_steps
        self._old, self._old_key, self._old_steps = out, self._key, self._steps
        self._begin()

    def end(self) -> None:
        """Puts what was kept where it will be sent."""
        writer = self._recorder._writer
        if not self._recorder.kept:
            return
        out = bytearray(writer.defined)
        if self._dropped:
            out += n(form.LOST) + n(self._dropped) + form.text("the budget of steps is used; the last are kept") + self._old_key
        out += (self._old or b"") + writer.out
        writer.out = writer.defined = self._recorder._out = out
        self._recorder.kept = False

    def _state(self) -> bytes:
        """What lives now, as the records that state it again."""
        recorder = self._recorder
        body, live = bytearray(), []

        def state(record: int, seen: dict) -> None:
            for name, value in seen.items():
                if type(value) in recorder_values.ENTRIES:
                    live.append(value)
                    data = b"@" + n(value.number)
                else:
                    data = form.scalar(value) or b"N"
                body.extend(n(record) + recorder._writer.name(name) + data)

        state(form.GLOBAL, recorder._seen)
        waiting = sorted((known for _, known in recorder._live()), key=lambda known: known.number)
        stated = {0}
        while waiting:
            later = []
            for known in waiting:
                if known.parent not in stated:
                    later.append(known)
                    continue
                stated.add(known.number)
                flags = form.RESTATED | (form.SUSPENDED if known.suspended else 0)
                body += n(form.PUSH) + n(known.number) + known.code.number + n(known.lane) + n(known.parent) + n(flags) + n(known.line)
                state(form.SET, known.seen)
            if len(later) == len(waiting):
                break
            waiting = later
        if recorder._current in stated and recorder._current:
            body += n(form.FRAME) + n(recorder._current)
        else:
            recorder._current = 0
        objects = bytearray()
        recorder._objects.restate(objects, live)
        return bytes(objects + body)
