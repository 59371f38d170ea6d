# why: totals
orders = [("ana", 10.0), ("bo", 4.5), ("ana", 2.5), ("cy", 8.0), ("bo", 1.0)]
groups = {}
for name, amount in orders:
    groups.setdefault(name, []).append(amount)
for name, amounts in groups.items():
    amounts.sort(reverse=True)
totals = {}
for name, amounts in groups.items():
    totals[name] = sum(amounts)
best = max(totals, key=totals.get)
