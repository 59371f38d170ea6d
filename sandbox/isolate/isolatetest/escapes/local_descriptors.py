# family: kernel
# tries: to read its local descriptor table by modify_ldt, a call with a history of kernel bugs
# invariant: 5
# layers: seccomp

call(154, 0, ctypes.create_string_buffer(64), 64)
"escaped"
