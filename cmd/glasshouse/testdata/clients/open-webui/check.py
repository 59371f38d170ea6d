"""Runs code by the code executor of Open WebUI, whose module is unchanged.

The environment is that of the lines of docs/clients.md; OPEN_WEBUI has the arguments of the command open-webui.
"""

import ast
import asyncio
import importlib.util
import os
import pathlib
import sys
import types

# The package itself imports the whole application, so the executor finds this one, with the default settings.
package = types.ModuleType("open_webui")
package.__path__ = list(importlib.util.find_spec("open_webui").submodule_search_locations)
settings = types.ModuleType("open_webui.env")
settings.AIOHTTP_CLIENT_ALLOW_REDIRECTS = settings.ENABLE_ORJSON = False
sys.modules.update({"open_webui": package, "open_webui.env": settings})

from open_webui.utils.code_interpreter import execute_code_jupyter  # noqa: E402


def statements(name):
    """Returns the statements of a module of Open WebUI, whose import needs the whole application."""
    return ast.parse(pathlib.Path(package.__path__[0], name).read_text()).body


def settings_of_code():
    """Returns what Open WebUI reads from the environment about its tools that run code."""
    prefixes = ("CODE_EXECUTION_", "CODE_INTERPRETER_")
    names = {"os": os}
    body = [each for each in statements("config.py") if ast.unparse(each).startswith(prefixes)]
    exec(compile(ast.Module(body, []), "config.py", "exec"), names)
    return names


configured = settings_of_code()
for tool in ("CODE_EXECUTION", "CODE_INTERPRETER"):
    assert configured[f"{tool}_ENGINE"] == "jupyter" and configured[f"{tool}_JUPYTER_AUTH"] == "token", configured
url, key = configured["CODE_EXECUTION_JUPYTER_URL"], configured["CODE_EXECUTION_JUPYTER_AUTH_TOKEN"]
assert (url, key) == (configured["CODE_INTERPRETER_JUPYTER_URL"], configured["CODE_INTERPRETER_JUPYTER_AUTH_TOKEN"])
command, *options = os.environ["OPEN_WEBUI"].split()
(found,) = (each for each in statements("__init__.py") if isinstance(each, ast.FunctionDef) and each.name == command)
assert {each.removeprefix("--") for each in options[::2]} <= {each.arg for each in found.args.args}, options


async def run(code, **credentials):
    return await execute_code_jupyter(url, code, timeout=60, **(credentials or {"token": key}))


def want(got, stdout="", stderr="", result=""):
    assert got["stdout"] == stdout and got["result"] == result, got
    assert (stderr in got["stderr"]) if stderr else got["stderr"] == "", got


async def main():
    want(await run("print('hello')\n1 + 1"), stdout="hello", result="2")
    want(await run("1 + 1", password=key), result="2")
    want(await run("def f():\n    return 1 / 0\nf()"), stderr="ZeroDivisionError: division by zero")
    want(await run("import pandas as pd\npd.Series([1, 2]).sum()"), result="np.int64(3)")
    want(await run("(await db_query('SELECT 1 AS n'))[0]['n']"), result="1")
    image = await run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert image["result"].startswith("data:image/png;base64,"), image["result"][:100]
    many = await run("print('x' * 300_000)")
    assert many["stdout"] == "x" * 300_000, len(many["stdout"])
    for wrong in ({"token": "gh_wrong"}, {"password": "gh_wrong"}):
        assert "401" in (await run("1", **wrong))["stderr"]
    both = await asyncio.gather(*(run(f"import time\ntime.sleep(0.2)\n{n}") for n in range(4)))
    assert [each["result"] for each in both] == ["0", "1", "2", "3"], both


asyncio.run(main())
print("ok")
