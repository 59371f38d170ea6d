import asyncio
calls = []
class Debounce:
    def __init__(self, wait): self.wait, self.t = wait, None
    def __call__(self, v):
        if self.t: self.t.cancel()
        self.t = asyncio.create_task(self._run(v))
    async def _run(self, v):
        await asyncio.sleep(self.wait)
        calls.append(v)
d = Debounce(0.02)
for i, gap in enumerate([.005, .005, .04, .005, .03, .001]):
    d(i)
    await asyncio.sleep(gap)
await asyncio.sleep(.04)
print("fired:", calls)
print(d.t)
