"""Runs the executor of glasshouse_sandbox.smolagents with a CodeAgent whose model is scripted.

GLASSHOUSE_URL and GLASSHOUSE_KEY name the service.
"""

from glasshouse_sandbox.smolagents import GlasshouseExecutor
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, tool
from smolagents.utils import AgentError


@tool
def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: The number.
    """
    return number * 2


class ScriptedModel(Model):
    def __init__(self, *programs):
        super().__init__(model_id="scripted")
        self.programs = iter(programs)
        self.seen = []

    def generate(self, messages, **kwargs):
        self.seen.append(str(messages[-1].content))
        return ChatMessage(
            role=MessageRole.ASSISTANT, content=f"Thought: go on\n<code>\n{next(self.programs)}\n</code>"
        )


def refused(call):
    try:
        call()
    except AgentError as error:
        return str(error)
    raise AssertionError("no AgentError")


with GlasshouseExecutor(["pandas", "pillow"], max_execution_time=20) as executor:
    assert executor.installed_packages == ["pandas", "pillow"]
    assert "nosuchpackage" in refused(lambda: executor.install_packages(["pandas", "nosuchpackage"]))
    output = executor("print('hi')\n[1, 'a']")
    assert (output.output, output.logs, output.is_final_answer) == ([1, "a"], "hi\n", False), output
    assert "ZeroDivisionError" in refused(lambda: executor("1 / 0"))
    executor.send_variables({"rates": {"EUR": 1.5}, "names": ("a", "b")})
    assert executor("[rates['EUR'], names == ('a', 'b')]").output == [1.5, True]
    executor.send_variables({"long": "x" * 1_000_000})
    assert executor("len(long)").output == 1_000_000
    image = executor("import PIL.Image\nPIL.Image.new('RGB', (3, 2))").output
    assert image.size == (3, 2), image

with GlasshouseExecutor() as executor:
    model = ScriptedModel(
        "rows = await db_query('SELECT count(*) AS n FROM users')\nn = rows[0]['n']\nprint('users:', n)",
        "missing_name + 1",
        "final_answer({'users': double(n), 'text': 'x' * 100_000})",
    )
    answer = CodeAgent(tools=[double], model=model, executor=executor, max_steps=4).run("Double the number of users")
    assert answer["users"] > 0 and answer["users"] % 2 == 0 and len(answer["text"]) == 100_000, str(answer)[:200]
    assert "users:" in model.seen[1] and "NameError" in model.seen[2], model.seen[1:]
    sandbox = executor.sandbox
print("smolagents ok")
