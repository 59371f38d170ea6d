# family: exhaustion
# tries: to hold twice the memory that it may have, as a stack
# invariant: 10
# layers: cgroups
# policy: max_memory_mb=64

import mmap

held = mmap.mmap(-1, 140 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100)  # MAP_GROWSDOWN
for page in range(0, len(held), 4096):
    held[page] = 1
"escaped"
