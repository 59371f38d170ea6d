import uuid
a, b = uuid.uuid1(), uuid.uuid1()
print(a)
print(b)
print("clock_seq equal", a.clock_seq == b.clock_seq, "node", hex(a.node))
print("ticks between", b.time - a.time)
