# family: kernel
# tries: to leave a key in the kernel
# invariant: 1
# layers: seccomp

call(248, b"user", b"glasshouse-escape", b"x", 1, -2)
"escaped"
