# family: memory of others
# tries: to read the environment of a process of the host through /proc
# invariant: 3
# layers: root, uid, user, capabilities
# proof: secret

open(f"/proc/{victim}/environ").read()
