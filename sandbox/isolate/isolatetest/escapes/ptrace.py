# family: memory of others
# tries: to trace a process of the machine
# invariant: 8
# layers: seccomp, pid, uid, user, landlock, capabilities

call(101, 0x4206, victim, 0, 0)  # PTRACE_SEIZE
"escaped"
