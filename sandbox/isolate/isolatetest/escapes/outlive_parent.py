# family: kernel
# tries: to stay alive when its zygote dies
# invariant: 13
# layers: seccomp

call(157, 1, 0, 0, 0, 0)  # PR_SET_PDEATHSIG
"escaped"
