# family: kernel
# tries: to open the session's keyring
# invariant: 5
# layers: seccomp

call(250, 0, -3, 1)
"escaped"
