"""The base class that the processor templates build on."""

import inspect


class AsyncProcessor:
    """Subclass it and write `async def process(self, data)`.

    `await processor.run(data)`, or `await processor(data)`, validates, processes and
    returns what process returned. name and config are the subclass's to use.
    """

    name = "processor"

    def __init__(self, name=None, config=None, **options):
        if isinstance(name, dict) and config is None:  # AsyncProcessor({"limit": 5})
            name, config = None, name
        self.name = name or type(self).__name__
        self.config = {**(config or {}), **options}

    def validate(self, data):
        """Raise, or return False, where data can't be processed; accepts all by default.
        It may be async."""
        return True

    async def process(self, data):
        raise NotImplementedError("write `async def process(self, data)` in your processor")

    async def run(self, data=None):
        valid = self.validate(data)
        if inspect.isawaitable(valid):
            valid = await valid
        if valid is False:
            raise ValueError(f"{self.name}: validate refused the data")
        out = self.process(data)
        return await out if inspect.iscoroutine(out) else out

    async def __call__(self, data=None):
        return await self.run(data)
