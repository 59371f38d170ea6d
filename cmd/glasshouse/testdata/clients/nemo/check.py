"""Uses the sandbox client of the NeMo Agent Toolkit, unchanged, as its tool code_execution does. The arguments are the
URL of the API and the client's kind: local or piston."""

import asyncio
import sys

import pydantic

from nat.tool.code_execution.code_sandbox import get_sandbox


def run(code, **options):
    return asyncio.run(sandbox.execute_code(code, **options))


sandbox = get_sandbox(sys.argv[2], uri=pydantic.HttpUrl(sys.argv[1]))
answer = run("print(1 + 1)")
assert answer["process_status"] == "completed" and "2" in answer["stdout"], answer
answer = run("```python\nimport os\nopen('kept.txt', 'w').write('x')\nprint(os.getcwd())\n```" if sys.argv[2] == "local"
             else "open('kept.txt', 'w').write('x')")
assert answer["process_status"] == "completed", answer
answer = run("print(open('kept.txt').read())")
assert "x" in answer["stdout"], answer
answer = run("1 / 0")
assert "ZeroDivisionError" in answer["stdout"] + answer["stderr"], answer
answer = run("print('x'\n")
assert "SyntaxError" in answer["stdout"] + answer["stderr"], answer
answer = run("while True: pass", timeout_seconds=2.0)
assert answer["process_status"] in ("timeout", "error"), answer
answer = run("print('x' * 5000)", max_output_characters=100)
assert 0 < len(answer["stdout"]) < 1100, answer
print("done")
