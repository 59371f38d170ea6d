# family: kernel
# tries: to replace its root file system
# invariant: 5
# layers: seccomp, landlock, capabilities, uid

call(155, b"/session", b"/session")
"escaped"
