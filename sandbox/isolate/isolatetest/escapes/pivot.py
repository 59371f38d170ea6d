# family: kernel
# tries: to put another file system in the place of its root
# invariant: 5
# layers: seccomp, landlock, capabilities, uid

call(155, b"/session", b"/session")
"escaped"
