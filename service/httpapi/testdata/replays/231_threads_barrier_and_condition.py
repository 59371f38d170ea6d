import threading, random, time
bar = threading.Barrier(3)
cond, turn, log = threading.Condition(), [0], []
def run(i):
    time.sleep(random.random() * .01)
    idx = bar.wait()
    with cond:
        cond.wait_for(lambda: turn[0] == i)
        log.append((i, idx))
        turn[0] += 1
        cond.notify_all()
ts = [threading.Thread(target=run, args=(i,)) for i in range(3)]
[t.start() for t in ts]; [t.join() for t in ts]
print(log)
bar, cond
