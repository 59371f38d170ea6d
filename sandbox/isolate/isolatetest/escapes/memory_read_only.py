# family: exhaustion
# tries: to hold twice the memory that it may have, in pages that it makes read-only after it wrote them
# invariant: 10
# layers: cgroups
# policy: max_memory_mb=64

import ctypes
import mmap

held = []
for _ in range(14):
    part = mmap.mmap(-1, 10 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    part.write(b"x" * len(part))
    call(10, ctypes.addressof(ctypes.c_char.from_buffer(part)), len(part), mmap.PROT_READ)  # mprotect
    held.append(part)
"escaped"
