# family: kernel
# tries: to mount a file system without limits over /tmp
# invariant: 6
# layers: seccomp, landlock, capabilities, uid

call(165, b"x", b"/tmp", b"tmpfs", 0, None)
"escaped"
