# family: memory of others
# tries: to read the environment of a process of the machine through /proc
# invariant: 3
# layers: root, uid, user, capabilities
# proof: secret

open(f"/proc/{victim}/environ").read()
