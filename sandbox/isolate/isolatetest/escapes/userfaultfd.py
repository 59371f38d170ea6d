# family: kernel
# tries: to block the kernel on a page fault
# invariant: 5
# layers: seccomp

call(323, 1)
"escaped"
