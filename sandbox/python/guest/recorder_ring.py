"""Where the recorder's bytes go: memory that the host shares and empties, so that handing
over a record costs a store and no system call, and what was handed over outlives a kill.
Package host in Go is its other end, and says how it is laid out.
"""

import mmap

HEAD = 4096
SIZE = 256 << 10
END = HEAD + SIZE
MOST = SIZE // 2  # bytes that are handed over as a whole
WRITTEN, READ = 0, 8  # which eight bytes of the head are the counters


class Ring:
    """memory is a map of HEAD + SIZE bytes. wait is called where it is full, and returns when
    there is room again."""

    def __init__(self, memory: mmap.mmap, wait):
        self.memory = memory
        self.counters = memoryview(memory)[:HEAD].cast("Q")
        self._wait = wait
        self.base = -HEAD  # the count of a byte less its place in memory
        self.at = HEAD  # where the next byte goes
        self.until = END  # as far as there is room

    def put(self, data) -> None:
        """Hands over some bytes; as a whole, but for very many, or where the memory ends."""
        end = self.at + len(data)
        if end > self.until:
            self._put_slowly(bytes(data))
            return
        self.memory[self.at : end] = data
        self.at = end
        self.counters[WRITTEN] = self.base + end

    def _put_slowly(self, data: bytes) -> None:
        for at in range(0, len(data), MOST):
            part = data[at : at + MOST]
            self._make_room(len(part))
            if self.at + len(part) <= self.until:
                self.put(part)
                continue
            first = END - self.at
            self.memory[self.at : END] = part[:first]
            self.base += SIZE
            self.at = HEAD + len(part) - first
            self.memory[HEAD : self.at] = part[first:]
            self.counters[WRITTEN] = self.base + self.at
            self._make_room(0)

    def _make_room(self, size: int) -> None:
        """Sees to it that so many bytes can be written."""
        for _ in range(2):
            room = SIZE - (self.base + self.at - self.counters[READ])
            self.until = min(END, self.at + room)
            if size <= room:
                return
            self.wait()
        raise BufferError("the ring stays full")

    def sent(self) -> int:
        """How many bytes were handed over."""
        return self.base + self.at

    def wait(self) -> None:
        """Here, and not there, since no interrupt comes into the midst of this file."""
        self._wait()

    def close(self) -> None:
        self.counters.release()
        self.memory.close()
