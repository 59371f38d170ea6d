# family: files
# tries: to preload a library into later programs by /etc/ld.so.preload
# invariant: 8
# layers: readonly, landlock, uid, user

open("/etc/ld.so.preload", "w").write("/session/evil.so")

# --- another sandbox

open("/etc/ld.so.preload").read()
"escaped"
