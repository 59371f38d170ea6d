"""Where the recorder's bytes go: memory that the host shares and empties, so that handing
over a record costs a store and no system call, and what was handed over outlives a kill.
Package hatch in Go is its other end, and says how it is laid out.
"""

import mmap

HEAD = 4096
SIZE = 256 << 10
MOST = SIZE // 2  # bytes that are handed over as a whole
_WRITTEN, _READ = 0, 8  # which eight bytes of the head are the counters


class Ring:
    """memory is a map of HEAD + SIZE bytes. wait is called where it is full, and returns when
    there is room again."""

    def __init__(self, memory: mmap.mmap, wait):
        self.memory = memory
        self._counters = memoryview(memory)[:HEAD].cast("Q")
        self._wait = wait
        self._written = 0
        self._room = SIZE

    def put(self, data: bytearray) -> None:
        """Hands over some bytes; as a whole, but for very many."""
        size = len(data)
        if size > self._room:
            if size > MOST:
                for at in range(0, size, MOST):
                    self.put(data[at : at + MOST])
                return
            self._make_room(size)
        at = HEAD + self._written % SIZE
        end = at + size
        if end <= HEAD + SIZE:
            self.memory[at:end] = data
        else:
            first = HEAD + SIZE - at
            self.memory[at:] = data[:first]
            self.memory[HEAD : end - SIZE] = data[first:]
        self._room -= size
        self._written += size
        self._counters[_WRITTEN] = self._written

    def _make_room(self, size: int) -> None:
        self._room = SIZE - (self._written - self._counters[_READ])
        if size > self._room:
            self.wait()
            self._room = SIZE - (self._written - self._counters[_READ])
            if size > self._room:
                raise BufferError("the ring stays full")

    def wait(self) -> None:
        """Here, and not there, since no interrupt comes into the midst of this file."""
        self._wait()

    def close(self) -> None:
        self._counters.release()
        self.memory.close()
