# family: exhaustion
# tries: to hold twice the memory that it may have, as shared memory of which it maps only one page
# invariant: 10
# layers: cgroups
# policy: max_memory_mb=64

import mmap

PAGE = 4096
held = []
for _ in range(14):
    part = mmap.mmap(-1, 10 << 20)
    for page in range(0, len(part), PAGE):
        part[page] = 1
    part.madvise(mmap.MADV_DONTNEED)
    held.append(part)
"escaped"
