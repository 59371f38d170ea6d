# family: kernel
# tries: to let other processes read its memory
# invariant: 4
# layers: seccomp

call(157, 4, 1, 0, 0, 0)
if call(157, 3, 0, 0, 0, 0) != 1:
    raise OSError("not dumpable")
"escaped"
