# family: kernel
# tries: to hold the kernel up at a page
# invariant: 5
# layers: seccomp

call(323, 1)
"escaped"
