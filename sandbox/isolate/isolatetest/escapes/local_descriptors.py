# family: kernel
# tries: to read its segment descriptors, an old way into the kernel
# invariant: 5
# layers: seccomp

call(154, 0, ctypes.create_string_buffer(64), 64)
"escaped"
