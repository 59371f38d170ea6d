# family: signals
# tries: to signal a thread of the machine
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

call(234, victim, victim, 10)
"escaped"
