# family: exhaustion
# tries: to open five hundred files at once
# invariant: 10
# layers: rlimits

held = [open("/dev/null") for _ in range(500)]
"escaped"
