"""Processors: classes of processor_pipeline.AsyncProcessor."""

import pytest

PIPELINE = """
from processor_pipeline import AsyncProcessor
class Doubler(AsyncProcessor):
    def validate(self, data):
        return isinstance(data, int)
    async def process(self, data):
        return data * 2
"""


def test_processors(run):
    run(PIPELINE)
    assert run("[await Doubler().run(4), await Doubler()(5), Doubler().name]").ok == [8, 10, "Doubler"]
    assert run("await Doubler().run('x')").failure.type == "ValueError"
    assert run("await AsyncProcessor().run(1)").failure.type == "NotImplementedError"


DATA = {"data": 21}


@pytest.mark.parametrize(
    "code, context, want",
    [
        (PIPELINE, DATA, 42),
        (PIPELINE + "print('defined')", DATA, 42),
        (PIPELINE + "class Last(Doubler):\n    def process(self, data): return -data", DATA, -21),
        (
            "from processor_pipeline import AsyncProcessor as P\nclass C(P):\n    async def process(self, context): return [context.data, context['data']]",
            DATA,
            [21, 21],
        ),
        (PIPELINE + "    def __init__(self, factor=3):\n        super().__init__()", DATA, 42),
        # No processor runs without data, or if the code makes one itself.
        (PIPELINE, {}, None),
        (PIPELINE + "5", DATA, 5),
        (PIPELINE + "__result__ = None", DATA, None),
        (PIPELINE + "kept = Doubler()", DATA, None),
        (PIPELINE + "await Doubler().run(1)\nNone", DATA, None),
        (PIPELINE + "    def __init__(self, needed): pass", DATA, None),
        (PIPELINE + "    process = 5", DATA, None),
        (PIPELINE + "del context", DATA, None),
        ("from processor_pipeline import AsyncProcessor", DATA, None),
        ("class Other:\n    def process(self, data): return data", DATA, None),
    ],
)
def test_a_processor_that_is_only_defined_processes_the_contexts_data(run, code, context, want):
    assert run(code, context=context).ok == want


def test_processor_of_an_earlier_run_is_not_run_again(run):
    assert run(PIPELINE, context=DATA).ok == 42
    assert run("x = 1", context=DATA).ok is None


def test_a_processor_that_fails_names_the_users_line(run):
    failure = run(PIPELINE.replace("data * 2", "data['n']"), context=DATA).failure
    assert (failure.type, failure.line, [f["function"] for f in failure.traceback]) == ("TypeError", 7, ["process"])
    assert run(PIPELINE, context={"data": "text"}).failure.type == "ValueError"
