# family: files
# tries: to change the guest's own code
# invariant: 6
# layers: readonly, landlock, uid, user

open("/glasshouse/session.py", "a").write("#")
"escaped"
