import threading, time
counter = 0
def bump(n):
    global counter
    for _ in range(n):
        c = counter
        time.sleep(0)
        counter = c + 1
ts = [threading.Thread(target=bump, args=(300,)) for _ in range(4)]
[t.start() for t in ts]
[t.join() for t in ts]
print("expected 1200, got", counter)
