# family: kernel
# tries: to make a call of the x32 ABI
# invariant: 5
# layers: seccomp
# needs: x32

call(0x40000000 | 39)
"escaped"
