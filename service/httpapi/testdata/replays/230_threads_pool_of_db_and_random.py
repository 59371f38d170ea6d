from concurrent.futures import ThreadPoolExecutor
import random, threading, uuid
names = []
def job(n):
    names.append(threading.current_thread().name)
    return n, random.random(), uuid.uuid4().hex[:8]
with ThreadPoolExecutor(4) as ex:
    out = list(ex.map(job, range(10)))
for n, r, u in out:
    print(n, round(r, 5), u)
print(sorted(set(names)))
max(out, key=lambda o: o[1])[0]
