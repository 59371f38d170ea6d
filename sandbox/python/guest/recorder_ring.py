"""The ring: memory that the recorder writes records to and the supervisor empties.

Handing over a record costs a store and no system call, and a record that was handed over survives a kill of the guest.
sandbox/supervisor/ring.go is the other end and describes the layout.
"""

import mmap

HEAD_BYTES = 4096
RING_BYTES = 256 << 10
END = HEAD_BYTES + RING_BYTES
MAX_WRITE = RING_BYTES // 2  # bytes that are handed over at once
WRITTEN, READ, HELD = 0, 8, 16  # indexes of the counters among the 64-bit words of the head


class Ring:
    """The writer of a ring. memory has HEAD_BYTES + RING_BYTES bytes; wait() returns when a full ring is emptied."""

    def __init__(self, memory: mmap.mmap, wait):
        self.memory = memory
        self.counters = memoryview(memory)[:HEAD_BYTES].cast("Q")
        self._wait = wait
        self.base = -HEAD_BYTES  # the count of a byte minus its offset in memory
        self.at = HEAD_BYTES  # the offset of the next byte
        self.until = END  # the offset up to which bytes can be written

    def put(self, data) -> None:
        """Hands over bytes: at once, unless they are very many or the memory ends."""
        end = self.at + len(data)
        if end > self.until:
            self._put_slowly(bytes(data))
            return
        self.memory[self.at : end] = data
        self.at = end
        self.counters[WRITTEN] = self.base + end

    def _put_slowly(self, data: bytes) -> None:
        for at in range(0, len(data), MAX_WRITE):
            part = data[at : at + MAX_WRITE]
            self._make_space(len(part))
            if self.at + len(part) <= self.until:
                self.put(part)
                continue
            first = END - self.at
            self.memory[self.at : END] = part[:first]
            self.base += RING_BYTES
            self.at = HEAD_BYTES + len(part) - first
            self.memory[HEAD_BYTES : self.at] = part[first:]
            self.counters[WRITTEN] = self.base + self.at
            self._make_space(0)

    def _make_space(self, size: int) -> None:
        """Waits until size bytes can be written."""
        for _ in range(2):
            space = RING_BYTES - (self.base + self.at - self.counters[READ])
            self.until = min(END, self.at + space)
            if size <= space:
                return
            self.wait()
        raise BufferError("the ring stays full: the supervisor has not emptied it")

    def bytes_sent(self) -> int:
        return self.base + self.at

    def close_fast_path(self) -> None:
        """Makes the next writer of records call put, or hold the records, even if the ring has space."""
        self.until = 0

    def tell_held(self, steps: int) -> None:
        """Tells the supervisor how many steps it has not got, in case the guest is killed before they are sent."""
        self.counters[HELD] = steps

    def wait(self) -> None:
        """Calls wait from this file: protocol.UNINTERRUPTIBLE_FILES keeps interrupts out of its functions."""
        self._wait()

    def close(self) -> None:
        self.counters.release()
        self.memory.close()
