# family: kernel
# tries: to make a network namespace
# invariant: 5
# walls: seccomp, capabilities, uid

call(272, 0x40000000)
"escaped"
