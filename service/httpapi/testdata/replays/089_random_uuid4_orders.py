import uuid

orders = {str(uuid.uuid4()): qty for qty in (3, 1, 4, 1, 5)}
for oid in sorted(orders):
    print(oid, orders[oid])
u = uuid.uuid4()
print(u.version, u.variant, u.hex[:8], u.int % 97)
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))
