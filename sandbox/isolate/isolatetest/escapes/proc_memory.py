# family: memory of others
# tries: to read the memory of a process of the machine through /proc
# invariant: 8
# layers: root, uid, user, landlock, capabilities
# proof: secret

with open(f"/proc/{victim}/mem", "rb", buffering=0) as memory:
    memory.seek(address)
    got = memory.read(64)
repr(got)
