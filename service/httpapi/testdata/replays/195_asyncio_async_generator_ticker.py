import asyncio
loop = asyncio.get_event_loop()

async def ticker(n, every):
    t0 = loop.time()
    for i in range(n):
        await asyncio.sleep(every)
        yield i, loop.time() - t0

late = []
async for i, t in ticker(5, 0.01):
    late.append(t - (i + 1) * 0.01)
    print(f"tick {i} at {t * 1000:.3f} ms")
print("max lateness ms", max(late) * 1000)
