# family: memory of others
# tries: to read the open files of a process of the host through /proc
# invariant: 8
# layers: root, uid, user, landlock, capabilities
# proof: secret

open(f"/proc/{victim}/fd/{descriptor}").read()
