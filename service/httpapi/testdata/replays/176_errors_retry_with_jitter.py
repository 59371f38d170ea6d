import random, time

class Flaky(Exception):
    pass

def call():
    if random.random() < 0.6:
        raise Flaky(f"code {random.randint(500, 503)}")
    return "payload"

for attempt in range(1, 9):
    try:
        print("attempt", attempt, call())
        break
    except Flaky as e:
        pause = 0.005 * 2 ** min(attempt, 4) * random.uniform(.5, 1.5)
        print(f"attempt {attempt} failed ({e}), sleeping {pause:.4f}s")
        time.sleep(pause)
else:
    print("gave up")
