# family: kernel
# tries: to make a network namespace
# invariant: 5
# layers: seccomp, capabilities, uid

call(272, 0x40000000)
"escaped"
