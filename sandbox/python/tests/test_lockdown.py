import os
import struct

import lockdown
import syscalls


def test_filter_is_filled_in_with_the_pid_of_the_guest():
    instructions = [(0x20, 0, 0, 4), (0x15, 1, 0, lockdown._OWN_PID), (0x06, 0, 0, 0), (0x15, 0, 0, lockdown._OWN_PID)]
    program = lockdown.Filter(b"".join(struct.pack("=HBBI", *each) for each in instructions))
    batch = syscalls.Batch()
    program.fill_in_pid(batch)
    batch.run()
    values = [value for *_, value in struct.iter_unpack("=HBBI", program._memory.raw)]
    assert values == [4, os.getpid(), 0, os.getpid()]


def test_filter_without_a_pid_adds_no_step():
    batch = syscalls.Batch()
    lockdown.Filter(struct.pack("=HBBI", 0x06, 0, 0, 0)).fill_in_pid(batch)
    assert batch.steps() == 0
