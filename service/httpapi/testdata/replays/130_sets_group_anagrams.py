from collections import defaultdict
words = "listen silent enlist google elgoog abc cab bca rat tar art night thing".split()
groups = defaultdict(set)
for w in words:
    groups[frozenset(w)].add(w)
for key, g in groups.items():
    print("".join(key), "=>", g)
len(groups)
