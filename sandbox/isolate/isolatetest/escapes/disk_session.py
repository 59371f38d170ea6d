# family: exhaustion
# tries: to fill /session with more than it may have
# invariant: 6
# layers: quota

for n in range(3):
    with open(f"/session/{n}", "wb") as file:
        file.write(b"x" * (40 << 20))
"escaped"
