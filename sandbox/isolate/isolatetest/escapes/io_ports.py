# family: kernel
# tries: to reach the machine's ports
# invariant: 5
# layers: seccomp, user, capabilities, uid
# needs: ports

call(173, 0x80, 1, 1)
"escaped"
