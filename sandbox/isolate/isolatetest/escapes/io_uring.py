# family: kernel
# tries: to have the kernel make its calls
# invariant: 5
# layers: seccomp, rlimits

call(425, 8, ctypes.create_string_buffer(120))
"escaped"
