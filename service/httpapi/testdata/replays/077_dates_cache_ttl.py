import time

class TTLCache(dict):
    def __init__(self, ttl):
        super().__init__()
        self.ttl = ttl
    def __setitem__(self, k, v):
        super().__setitem__(k, (time.time(), v))
    def __getitem__(self, k):
        t, v = super().__getitem__(k)
        if time.time() - t > self.ttl:
            del self[k]
            raise KeyError(k)
        return v

c = TTLCache(0.03)
c["a"] = 1
hits = misses = 0
for _ in range(8):
    try:
        c["a"]; hits += 1
    except KeyError:
        misses += 1
        c["a"] = hits
    time.sleep(0.01)
print(f"hits={hits} misses={misses}")
dict(c)
