"""The base class that the processor templates build on."""

import inspect

_defined: list = []  # the processors that the code has defined, while it has made none


class AsyncProcessor:
    """Subclass it and write `async def process(self, data)`.

    `await processor.run(data)`, or `await processor(data)`, validates, processes and
    returns what process returned. name and config are the subclass's to use. Code that
    defines a processor and makes none has it run, where its context has data: process
    gets that, or the whole context where its parameter is called context.
    """

    name = "processor"

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        _defined.append(cls)

    def __new__(cls, *_arguments, **_options):
        _defined.clear()  # who makes one says what becomes of it
        return super().__new__(cls)

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


def begin():
    """A run begins."""
    _defined.clear()


def left(context):
    """What the code has left to be done, as a coroutine; None where that is nothing."""
    if not _defined or not isinstance(context, dict) or "data" not in context:
        return None
    kind = _defined[-1]
    try:
        inspect.signature(kind.__init__).bind(None)
        takes = list(inspect.signature(kind.process).parameters)
    except (TypeError, ValueError):  # it needs arguments, or is something else altogether
        return None
    return kind().run(context if takes[1:2] == ["context"] else context["data"])
