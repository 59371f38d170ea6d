# family: kernel
# tries: to use the machine's I/O ports
# invariant: 5
# layers: seccomp, user, capabilities, uid
# needs: ports

call(173, 0x80, 1, 1)
"escaped"
