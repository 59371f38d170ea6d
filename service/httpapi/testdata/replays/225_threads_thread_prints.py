import threading, time
def talk(name, n):
    for i in range(n):
        print(f"{name}:{i}", flush=True)
        time.sleep(0.001)
threads = [threading.Thread(target=talk, args=(c, 4), name=f"t-{c}") for c in "xyz"]
for t in threads: t.start()
for t in threads: t.join()
print("alive", threading.active_count())
