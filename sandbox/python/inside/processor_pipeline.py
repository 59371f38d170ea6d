"""The base class that the processor templates build on."""


class AsyncProcessor:
    """Subclass it and write `async def process(self, data)`.

    `await processor.run(data)` validates, processes and returns; `context.data` of
    a run is what a processor is usually given.
    """

    name = "processor"

    def __init__(self, config: "dict | None" = None):
        self.config = dict(config or {})

    def validate(self, data) -> None:
        """Raises ValueError where data can't be processed; accepts all by default."""

    async def process(self, data):
        raise NotImplementedError("write `async def process(self, data)` in your processor")

    async def run(self, data):
        self.validate(data)
        return await self.process(data)

    __call__ = run
