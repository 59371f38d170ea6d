# family: secrets
# tries: to read another sandbox's /session
# invariant: 8
# layers: separate_sandbox

open("/session/left", "w").write("x")

# --- another sandbox

open("/session/left").read()
"escaped"
