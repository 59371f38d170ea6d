# family: kernel
# tries: to take /tmp off and see what is below
# invariant: 6
# layers: seccomp, landlock, capabilities, uid

call(166, b"/tmp", 2)
"escaped"
