# family: kernel
# tries: to switch the randomness of addresses off
# invariant: 5
# layers: seccomp

call(135, 0x0040000)
"escaped"
