# family: files
# tries: to change the code that guards it
# invariant: 6
# layers: readonly, landlock, uid

open("/glasshouse/session.py", "a").write("#")
"escaped"
