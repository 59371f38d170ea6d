import asyncio
events = []
async def main():
    loop = asyncio.get_running_loop()
    loop.call_later(0.02, events.append, "later-20")
    loop.call_later(0.01, events.append, "later-10")
    loop.call_soon(events.append, "soon")
    await asyncio.sleep(0)
    events.append("after-zero-sleep")
    await asyncio.sleep(0.03)
    events.append("end")
asyncio.run(main())
events
