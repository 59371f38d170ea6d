import threading, time
done = threading.Event()
t0 = time.monotonic()
log = []
def fire(name):
    log.append((name, round(time.monotonic() - t0, 3)))
    if name == "late": done.set()
threading.Timer(0.02, fire, ["early"]).start()
threading.Timer(0.05, fire, ["late"]).start()
print("waited:", done.wait(1))
print([n for n, _ in log])
log
