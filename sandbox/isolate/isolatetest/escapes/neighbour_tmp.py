# family: secrets
# tries: to read what another sandbox left in /tmp
# invariant: 8
# layers: separate_sandbox

open("/tmp/left", "w").write("x")

# --- another sandbox

open("/tmp/left").read()
"escaped"
