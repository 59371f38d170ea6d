import asyncio, random

async def worker(i):
    await asyncio.sleep(random.random() * 0.05)
    return i

async def main():
    order = []
    for fut in asyncio.as_completed([worker(i) for i in range(8)]):
        order.append(await fut)
    return order

order = asyncio.run(main())
print("completion order:", order)
print("inversions:", sum(a > b for i, a in enumerate(order) for b in order[i + 1:]))
