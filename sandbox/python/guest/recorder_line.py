"""The line event of the recorders in Python, in one function: each call or attribute would take as long as the work.

The function leaves rare cases to the methods of the recorder.
"""

import recorder_format as form
import recorder_ring

_integer, _SET, _MISSING = form.integer, form.SET, object()
_SHORT, _line_record, _WRITTEN = form.SHORT_LINE, form.line, recorder_ring.WRITTEN


def line_hook(recorder, ring):
    """Returns the function that records that a frame has reached a line."""
    objects, writer, budget, channel = recorder._objects, recorder._writer, recorder._budget, recorder._channel
    unheld, prefixes, continue_frame = objects.unheld, recorder._prefixes[_SET], recorder._continue_frame
    memory, counters = ring.memory, ring.counters

    def record_line(frame, known, number: int, is_step: bool = False) -> None:
        if known.number != recorder._current_frame or known.thrown:
            continue_frame(known)
        code = known.code
        steps = code.comprehensions
        if steps is not None and not is_step:
            at = frame.f_lasti
            number = steps.get(at, number)
            if type(number) is tuple:
                record_line(frame, known, number[0], True)
                number = number[1]
            if not number or number == known.line and known.has_steps and (code.is_comprehension or at in steps):
                recorder._read_variables(frame, known)
                return
        known.has_steps = True
        data = b""
        if code.is_simple:
            objects.event += 1
            recorded, found = known.recorded, frame.f_locals
            for name, value in found.items():
                if type(name) is not str:  # another frame has put it there
                    continue
                old = recorded.get(name, _MISSING)
                if old is value:
                    continue
                if type(value) is int and type(old) is int and (encoded := _integer(value)) is not None:
                    if old != value:
                        data += prefixes[name] + encoded
                    recorded[name] = value
                else:
                    if data:
                        writer.out += data
                        data = b""
                    recorder._record_variable(_SET, recorded, name, old, value)
            if code.reads_more:
                if code.clear_snapshot:
                    found.clear()  # otherwise an object would outlive its variable
                writer.out += data
                data = b""
                recorder._read_namespace(code.reads)
            if objects.array_changed:
                writer.out += data
                data = b""
                recorder._read_sharing_arrays()
        else:
            recorder._read_variables(frame, known)
            if code.names_of_turn:
                known.turn = at if (at := frame.f_lasti) in code.names_of_turn else -1
        if unheld:
            writer.out += data
            data = b""
            objects.forget_unheld()
        delta = number - known.line
        data += _SHORT[delta + 64] if -64 <= delta < 64 else _line_record(delta)
        known.line = number
        recorder.steps = steps = recorder.steps + 1
        out = writer.out
        if out or steps >= recorder.budget_step:
            out += data
            if steps >= recorder.budget_step:
                budget.apply()
            if not recorder.tail_only:
                ring.put(out)
                out.clear()
        else:  # ring.put, without a call
            at = ring.at
            end = at + len(data)
            if end <= ring.until:
                memory[at:end] = data
                ring.at = end
                counters[_WRITTEN] = ring.base + end
            else:  # the ring is full, or the budget holds the records
                out += data
                if not recorder.tail_only:
                    ring.put(out)
                    out.clear()
        control = recorder.control
        if control is not None:
            lines = recorder.stop_lines
            if lines is None or number in lines or channel.attention:
                control.line(frame, known, number)

    return record_line
