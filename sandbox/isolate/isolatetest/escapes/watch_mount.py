# family: kernel
# tries: to watch a whole file system (fanotify)
# invariant: 8
# layers: seccomp

call(300, 0x200, 0)
"escaped"
