# family: files
# tries: to leave a file in the root that all sandboxes share
# invariant: 6
# layers: readonly, landlock, uid, user

open("/left", "w").close()
"escaped"
