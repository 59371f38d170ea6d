import random
rows = await db_query("SELECT id, name, address, credit_limit FROM customers")
picked = random.sample(rows, 5)
for c in picked:
    a = c["address"] or {}
    print(c["id"], c["name"], a.get("street"), a.get("zip"), c["credit_limit"])
total = sum(c["credit_limit"] for c in picked)
print(type(total).__name__, total, f"{total / len(picked):.4f}")
