# family: files
# tries: to change the guest's own code
# invariant: 6
# layers: readonly, landlock, uid

open("/glasshouse/session.py", "a").write("#")
"escaped"
