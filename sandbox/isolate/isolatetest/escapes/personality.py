# family: kernel
# tries: to switch address space randomization off
# invariant: 5
# layers: seccomp

call(135, 0x0040000)
"escaped"
