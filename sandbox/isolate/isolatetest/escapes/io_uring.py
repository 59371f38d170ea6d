# family: kernel
# tries: to make the kernel do its system calls through io_uring
# invariant: 5
# layers: seccomp, rlimits

call(425, 8, ctypes.create_string_buffer(120))
"escaped"
