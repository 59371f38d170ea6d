"""Runs the executor of glasshouse_sandbox.adk with an agent of Google's ADK whose model is scripted.

GLASSHOUSE_URL and GLASSHOUSE_KEY name the service.
"""

import asyncio
import base64

from glasshouse_sandbox.adk import GlasshouseCodeExecutor
from google.adk.agents import LlmAgent
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, File
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class ScriptedModel(BaseLlm):
    answers: list[str]
    seen: list[str] = []

    async def generate_content_async(self, llm_request, stream=False):
        self.seen.append(str(llm_request.contents[-1]))
        text = self.answers[len(self.seen) - 1]
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


def check_executor():
    executor = GlasshouseCodeExecutor(config={"max_rows": 5000}, timeout_seconds=5)

    def run(code, session="s", **files):
        inputs = [File(name, content) for name, content in files.items()]
        return executor.execute_code(None, CodeExecutionInput(code, inputs, session))

    result = run("print('hi')\nx = 41\nx + 1")
    assert (result.stdout, result.stderr, result.exit_code) == ("hi\nresult: 42\n", "", 0), result
    assert run("x").stdout == "result: 41\n" and "NameError" in run("x", "other").stderr
    failed = run("import warnings\nprint('before')\n1 / 0")
    assert failed.stdout == "before\n" and "ZeroDivisionError" in failed.stderr and failed.exit_code == 1, failed
    assert run("import warnings\nwarnings.warn('careful')").stderr == ""
    assert run("print(open('/data/a.csv').read())", a_csv=b"").exit_code == 1
    file = {"a.csv": base64.b64encode(b"a,b\n1,2\n")}
    assert run("print(open('/data/a.csv').read())", **file).stdout == "a,b\n1,2\n\n"
    made = run("import matplotlib.pyplot as plt\nplt.plot([1])\nopen('/session/artifacts/r.txt', 'w').write('é')")
    kinds = {f.name: base64.b64decode(f.content) for f in made.output_files}
    assert kinds["r.txt"] == "é".encode() and kinds["figure-1.png"].startswith(b"\x89PNG"), list(kinds)
    assert "timeout" in run("while True: pass").stderr
    executor._sandboxes["s"].close()  # as its idle time does
    lost = run("x")
    assert lost.stdout.startswith("note: the earlier session has ended") and "NameError" in lost.stderr, lost
    executor.close()
    fresh = GlasshouseCodeExecutor(stateful=False)
    assert fresh.execute_code(None, CodeExecutionInput("y = 1\ny")).stdout == "result: 1\n"
    assert "NameError" in fresh.execute_code(None, CodeExecutionInput("y")).stderr


async def check_agent():
    code = "```python\nrows = await db_query('SELECT count(*) AS n FROM users')\nprint('users:', rows[0]['n'])\n```"
    model = ScriptedModel(
        model="scripted", answers=[code, "```python\nprint(len(rows), 'row')\n```", "There are some."]
    )
    agent = LlmAgent(name="analyst", model=model, code_executor=GlasshouseCodeExecutor())
    runner = InMemoryRunner(agent, app_name="check")
    session = await runner.session_service.create_session(app_name="check", user_id="u")
    question = types.Content(role="user", parts=[types.Part(text="How many users are there?")])
    results = []
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=question):
        for part in (event.content and event.content.parts) or ():
            if part.code_execution_result:
                results.append(part.code_execution_result)
    assert [r.outcome.name for r in results] == ["OUTCOME_OK"] * 2, results
    assert "users:" in results[0].output and "1 row" in results[1].output, results
    assert "users:" in model.seen[1], model.seen
    await runner.close()


check_executor()
asyncio.run(check_agent())
print("adk ok")
