# family: memory of others
# tries: to write into the memory of a process of the machine
# invariant: 8
# layers: seccomp, pid, uid, user, landlock, capabilities

buffer = ctypes.create_string_buffer(b"g", 1)  # what is there already
local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 1)
remote = (ctypes.c_size_t * 2)(address, 1)
call(311, victim, local, 1, remote, 1, 0)
"escaped"
