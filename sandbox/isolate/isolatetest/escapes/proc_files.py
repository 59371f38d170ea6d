# family: memory of others
# tries: to read the open files of a process of the machine through /proc
# invariant: 8
# layers: root, uid, user, landlock, capabilities
# proof: secret

open(f"/proc/{victim}/fd/{descriptor}").read()
