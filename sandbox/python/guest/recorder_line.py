"""The line event in one function, for the recorders in Python: there a call or an
attribute costs as much as what it does. What is not common is left to the recorder's
methods.
"""

import recorder_code
import recorder_format as form
import recorder_ring

_integer, _SET, _MISSING, _PROXY = form.integer, form.SET, object(), recorder_code.PROXY
_SHORT, _long, _WRITTEN = form.SHORT, form.line, recorder_ring.WRITTEN


def make(recorder, ring):
    """What records that a frame has come to a line."""
    objects, writer, tail, channel = recorder._objects, recorder._writer, recorder._tail, recorder._channel
    unheld, heads, put_back = objects.unheld, recorder._heads[_SET], recorder._put_back
    memory, counters = ring.memory, ring.counters

    def line(frame, known, number: int) -> None:
        if known.number != recorder._current or known.thrown:
            put_back(known)
        code = known.code
        data = b""
        if code.plain:
            objects.tick += 1
            seen, found = known.seen, frame.f_locals
            if _PROXY:
                found = dict(found)
            for name, value in found.items():
                old = seen.get(name, _MISSING)
                if old is value:
                    continue
                if type(value) is int and type(old) is int and (shown := _integer(value)) is not None:
                    if old != value:
                        data += heads[name] + shown
                    seen[name] = value
                else:
                    if data:
                        writer.out += data
                        data = b""
                    recorder._set(_SET, seen, name, old, value)
            if code.more:
                if code.snapshot:
                    found.clear()  # or what it holds would outlive its variable
                writer.out += data
                data = b""
                recorder._namespace(code.reads)
        else:
            recorder._read(frame, known)
        if unheld:
            writer.out += data
            data = b""
            objects.settle()
        delta = number - known.line
        data += _SHORT[delta + 64] if -64 <= delta < 64 else _long(delta)
        known.line = number
        recorder.count = count = recorder.count + 1
        out = writer.out
        if out or count >= recorder.mark:
            out += data
            if count >= recorder.mark:
                tail.step()
            if not recorder.kept:
                ring.put(out)
                out.clear()
        else:  # ring.put
            at = ring.at
            end = at + len(data)
            if end <= ring.until:
                memory[at:end] = data
                ring.at = end
                counters[_WRITTEN] = ring.base + end
            else:
                ring.put(data)
        control = recorder.control
        if control is not None and (control.everywhere or number in control.lines or channel.attention):
            control.line(frame, known, number)

    return line
