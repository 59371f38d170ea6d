# family: secrets
# tries: to map a memory segment of the machine
# invariant: 8
# layers: seccomp, ipc
# proof: secret

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
where = libc.shmat(call(29, shm_key, 64, 0), None, 0o10000)
ctypes.string_at(where, 64).decode("ascii", "replace")
