# family: exhaustion
# tries: to pin a megabyte, which the kernel could then never reclaim
# invariant: 10
# layers: seccomp, rlimits

import mmap

held = mmap.mmap(-1, 1 << 20)
call(149, ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(held))), 1 << 20)
"escaped"
