# family: kernel
# tries: to answer its own system calls by a filter with a listener
# invariant: 5
# layers: seccomp

import struct

instruction = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000), 8)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(instruction)), 16)
call(317, 1, 8, program)  # SECCOMP_FILTER_FLAG_NEW_LISTENER
"escaped"
