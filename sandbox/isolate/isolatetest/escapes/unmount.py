# family: kernel
# tries: to unmount /tmp and see what is below it
# invariant: 6
# layers: seccomp, landlock, capabilities, uid

call(166, b"/tmp", 2)
"escaped"
