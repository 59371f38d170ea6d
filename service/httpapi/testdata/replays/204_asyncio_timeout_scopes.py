import asyncio
done = []
async def leg(n):
    await asyncio.sleep(0.012 * n)
    done.append(n)
for limit in (0.005, 0.03, 0.2):
    done.clear()
    try:
        async with asyncio.timeout(limit) as scope:
            for n in range(1, 4):
                await leg(n)
    except TimeoutError:
        pass
    print(limit, "expired" if scope.expired() else "in time", done)
repr(asyncio.timeout(1))
