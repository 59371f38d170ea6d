# family: exhaustion
# tries: to hold twice the memory that it may have, as shared memory
# invariant: 10
# layers: cgroups
# policy: max_memory_mb=64

import mmap

held = mmap.mmap(-1, 140 << 20)
for page in range(0, len(held), 4096):
    held[page] = 1
"escaped"
