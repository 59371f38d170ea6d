# family: exhaustion
# tries: to make the kernel hold twice the memory that it may have, in page tables
# invariant: 10
# layers: cgroups
# policy: max_memory_mb=64

import mmap

PAGE, SPAN = 4096, 2 << 20  # a page of page table maps 2 MiB
MAP_NORESERVE, MADV_NOHUGEPAGE = 0x4000, 15
tables = (140 << 20) // PAGE
held = mmap.mmap(-1, tables * SPAN, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, mmap.PROT_READ)
held.madvise(MADV_NOHUGEPAGE)
for address in range(0, len(held), SPAN):
    held[address]  # maps the page of zeros
"escaped"
