"""The supervisor's end of a recorder's ring, in the same process."""

import mmap

import recorder_ring as form


class Ring(form.Ring):
    """A ring that is emptied into data, a bytearray, when it is full and when it is closed."""

    def __init__(self, data):
        super().__init__(mmap.mmap(-1, form.HEAD_BYTES + form.RING_BYTES), self.take)
        self.data, self.taken = data, 0

    def take(self) -> None:
        written = int.from_bytes(self.memory[:8], "little")
        assert 0 <= written - self.taken <= form.RING_BYTES
        while self.taken < written:
            at = self.taken % form.RING_BYTES
            size = min(written - self.taken, form.RING_BYTES - at)
            self.data += self.memory[form.HEAD_BYTES + at : form.HEAD_BYTES + at + size]
            self.taken += size
        self.memory[64:72] = written.to_bytes(8, "little")

    def held(self) -> int:
        return int.from_bytes(self.memory[128:136], "little")

    def close(self) -> None:
        self.take()
        super().close()
