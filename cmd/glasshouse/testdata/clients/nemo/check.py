"""Uses the sandbox client of the NeMo Agent Toolkit, unchanged, as its tool code_execution does. The argument is the
client's kind: local or piston. The working folder has the lines of docs/clients.md."""

import asyncio
import importlib.util
import pathlib
import re
import sys

import pydantic

from nat.tool.code_execution.code_sandbox import get_sandbox


def run(code, **options):
    return asyncio.run(sandbox.execute_code(code, **options))


# The tool itself needs the frameworks that are not installed.
tool = pathlib.Path(importlib.util.find_spec("nat.tool.code_execution").origin).with_name("register.py").read_text()
settings = dict(re.findall(r"(\w+): (\S+)", pathlib.Path("nemo-agent-toolkit.yaml").read_text()))
assert f'name="{settings.pop("_type")}"' in tool, settings
kind = re.search(r'sandbox_type: .*default="(\w+)"', tool)[1]
assert kind == sys.argv[1], kind
sandbox = get_sandbox(kind, uri=pydantic.HttpUrl(settings.pop("uri")))
assert not settings, f"settings that this check does not use: {settings}"
answer = run("print(1 + 1)")
assert answer["process_status"] == "completed" and "2" in answer["stdout"], answer
answer = run("```python\nimport os\nopen('kept.txt', 'w').write('x')\nprint(os.getcwd())\n```" if kind == "local"
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
