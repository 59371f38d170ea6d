# family: exhaustion
# tries: to write one file larger than a file may be
# invariant: 10
# layers: rlimits, quota

with open("/session/large", "wb") as file:
    for _ in range(70):
        file.write(b"x" * (1 << 20))
"escaped"
