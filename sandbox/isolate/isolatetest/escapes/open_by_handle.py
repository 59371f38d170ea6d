# family: kernel
# tries: to open a file by its handle, without a path
# invariant: 6
# layers: seccomp, user, capabilities, uid

import os
import struct

open("/tmp/x", "w").write("x")
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136)
where = ctypes.c_int()
call(303, -100, b"/tmp/x", handle, ctypes.byref(where), 0)
call(304, os.open("/tmp", os.O_RDONLY), handle, os.O_RDONLY)
"escaped"
