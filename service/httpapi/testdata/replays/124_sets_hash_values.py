words = ["alpha", "beta", "gamma", "delta"]
for w in words:
    print(w, hash(w), hash(w) % 8)
print(hash((1, "x")), hash(3.5), hash(2**61), hash(None) == hash(None))
buckets = [[] for _ in range(4)]
for w in words + ["epsilon", "zeta", "eta", "theta"]:
    buckets[hash(w) % 4].append(w)
buckets
