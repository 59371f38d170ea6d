# family: kernel
# tries: to make a user namespace, in which it would be root
# invariant: 5
# layers: seccomp

call(272, 0x10000000)
"escaped"
