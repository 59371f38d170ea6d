import asyncio, time

async def slow():
    try:
        await asyncio.sleep(5)
    except asyncio.CancelledError:
        print("cancelled")
        raise

t = time.perf_counter()
try:
    await asyncio.wait_for(slow(), timeout=0.05)
except asyncio.TimeoutError as e:
    print("timeout", repr(e))
print(f"took {time.perf_counter() - t:.4f}")
