import asyncio
async def step(n):
    await asyncio.sleep(0.005)
    if n == 3:
        raise LookupError(f"step {n} has no data")
    print("step", n)
async def pipeline():
    for n in range(5):
        await step(n)
asyncio.run(pipeline())
