# family: memory of others
# tries: to read the memory of a process of the machine
# invariant: 8
# layers: seccomp, pid, uid, user, landlock, capabilities
# proof: secret

buffer = ctypes.create_string_buffer(64)
local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 64)
remote = (ctypes.c_size_t * 2)(address, 64)
call(310, victim, local, 1, remote, 1, 0)
repr(buffer.raw)
