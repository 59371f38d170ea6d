# family: files
# tries: to name another loader for shared libraries
# invariant: 8
# layers: readonly, landlock, uid

open("/etc/ld.so.preload", "w").write("/session/evil.so")

# --- another sandbox

open("/etc/ld.so.preload").read()
"escaped"
