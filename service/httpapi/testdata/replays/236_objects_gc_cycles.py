import gc, weakref
class A: pass
gc.collect()
gc.disable()
for _ in range(10):
    a, b = A(), A()
    a.other, b.other = b, a
del a, b
print("unreachable collected:", gc.collect() >= 20)
gc.enable()
print(gc.get_threshold(), gc.isenabled())
print(sum(isinstance(o, A) for o in gc.get_objects()))
gc.get_count()
