"""The host's end of a recorder's ring, in the same process."""

import mmap

import recorder_ring as form


class Ring(form.Ring):
    """Emptied into data, a bytearray, when it is full and when it is closed."""

    def __init__(self, data):
        super().__init__(mmap.mmap(-1, form.HEAD + form.SIZE), self.take)
        self.data, self.taken = data, 0

    def take(self) -> None:
        written = int.from_bytes(self.memory[:8], "little")
        assert 0 <= written - self.taken <= form.SIZE
        while self.taken < written:
            at = self.taken % form.SIZE
            size = min(written - self.taken, form.SIZE - at)
            self.data += self.memory[form.HEAD + at : form.HEAD + at + size]
            self.taken += size
        self.memory[64:72] = written.to_bytes(8, "little")

    def close(self) -> None:
        self.take()
        super().close()
