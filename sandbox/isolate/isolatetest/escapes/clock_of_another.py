# family: processes
# tries: to read the CPU time of a process of the machine
# invariant: 8
# layers: seccomp, pid

CLOCK_GETTIME = {"x86_64": 228, "aarch64": 113}[os.uname().machine]
call(CLOCK_GETTIME, ~victim << 3 | 2, ctypes.create_string_buffer(16))
"escaped"
