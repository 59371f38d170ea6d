"""The base class that the processor templates build on."""

import inspect

_defined: list = []  # processors that the code has defined, if it has made none


class AsyncProcessor:
    """Subclass it and write `async def process(self, data)`.

    `await processor.run(data)`, or `await processor(data)`, validates the data and returns the result of process. name
    and config are for the subclass. If code defines a processor without making one, and the context of the run has
    data, the processor runs: process gets the data, or the whole context if its parameter is called context.
    """

    name = "processor"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        _defined.append(cls)

    def __new__(cls, *_arguments, **_options):
        _defined.clear()  # code that makes a processor runs it itself
        return super().__new__(cls)

    def __init__(self, name=None, config=None, **options):
        if isinstance(name, dict) and config is None:  # AsyncProcessor({"limit": 5})
            name, config = None, name
        self.name = name or type(self).__name__
        self.config = {**(config or {}), **options}

    def validate(self, data):
        """Raises or returns False if the data can't be processed. It may be async. By default all data is accepted."""
        return True

    async def process(self, data):
        raise NotImplementedError("write `async def process(self, data)` in your processor")

    async def run(self, data=None):
        valid = self.validate(data)
        if inspect.isawaitable(valid):
            valid = await valid
        if valid is False:
            raise ValueError(f"{self.name}: validate returned False for the data")
        out = self.process(data)
        return await out if inspect.iscoroutine(out) else out

    async def __call__(self, data=None):
        return await self.run(data)


def begin_run():
    """Forgets the processors of earlier runs."""
    _defined.clear()


def pending_run(context):
    """Returns a coroutine that runs the processor that the code has defined but not made, or None."""
    if not _defined or not isinstance(context, dict) or "data" not in context:
        return None
    kind = _defined[-1]
    try:
        inspect.signature(kind.__init__).bind(None)
        takes = list(inspect.signature(kind.process).parameters)
    except (TypeError, ValueError):  # it needs arguments, or process is not a function
        return None
    return kind().run(context if takes[1:2] == ["context"] else context["data"])
