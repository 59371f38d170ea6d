import asyncio, random

async def fetch(name):
    delay = random.uniform(0.01, 0.05)
    await asyncio.sleep(delay)
    print("done", name, round(delay, 4))
    return name, delay

res = await asyncio.gather(*(fetch(n) for n in ["users", "orders", "items", "logs"]))
print("slowest:", max(res, key=lambda r: r[1])[0])
[r[0] for r in res]
