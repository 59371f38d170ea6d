"""Runs code by real clients of a Jupyter server, unchanged: jupyter-kernel-client, smolagents, and nbclient through a
Jupyter Server whose gateway is the service.

The working folder has the lines of docs/clients.md. JUPYTER has the arguments of its command jupyter, with the URL of
the service's Jupyter server; GLASSHOUSE_KEY is the key.
"""

import contextlib
import io
import json
import logging
import os
import runpy
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import nbformat
from jupyter_kernel_client import JupyterKernelClient
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from smolagents import ChatMessage, CodeAgent, MessageRole, Model, tool
from smolagents.utils import AgentError

command, *gateway = shlex.split(os.environ["JUPYTER"])
assert command == "lab", command
(url,) = (each.removeprefix("--gateway-url=") for each in gateway if each.startswith("--gateway-url="))
key = os.environ["GLASSHOUSE_KEY"]


def page(section):
    """Runs the Python lines of a section of the page, which print 2 at their end, and returns their names."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        names = runpy.run_path(section + ".python")
    assert printed.getvalue().endswith("2\n"), printed.getvalue()
    return names


def text(reply):
    return "".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in reply["outputs"])


def kernel_client():
    page("jupyter-kernel-client")
    # Its subprotocol v1 does not work with Jupyter Server either: its own handler of messages raises a KeyError.
    with JupyterKernelClient(server_url=url, token=key) as kernel:
        assert kernel.kernel_info["language_info"]["name"] == "python"
        assert text(kernel.execute("print('hi')\n(1, 'a')")) == "hi\n(1, 'a')"
        failed = kernel.execute("x = 1\n1 / 0")
        assert failed["status"] == "error" and failed["outputs"][0]["ename"] == "ZeroDivisionError", failed
        assert text(kernel.execute("x")) == "1"
        interrupt = threading.Timer(1, kernel.interrupt)
        interrupt.start()
        began = time.monotonic()
        ended = kernel.execute("import time\ntime.sleep(60)", timeout=50)
        assert ended["outputs"][0]["ename"] == "KeyboardInterrupt" and time.monotonic() - began < 30, ended
        assert text(kernel.execute("x")) == "1"
        kernel.restart()
        assert kernel.execute("x")["outputs"][0]["ename"] == "NameError"
        assert kernel.is_alive()


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

    def generate(self, messages, **kwargs):
        return ChatMessage(
            role=MessageRole.ASSISTANT, content=f"Thought: go on\n<code>\n{next(self.programs)}\n</code>"
        )


def smolagents():
    model = ScriptedModel("n = double(21)\nprint('n', n)", "missing_name", "final_answer([n, base, 'x' * 100_000])")
    agent = CodeAgent(tools=[double], model=model, verbosity_level=0)
    agent.python_executor = page("smolagents")["executor"]
    answer = agent.run("Go on.", additional_args={"base": {"rate": 1.5}})
    assert answer == [42, {"rate": 1.5}, "x" * 100_000], str(answer)[:500]
    logs = [str(step.observations) + str(step.error) for step in agent.memory.steps[1:]]
    assert "n 42" in logs[0] and "NameError" in logs[1], logs
    executor = page("smolagents")["executor"]
    output = executor("print('hi')\n[1, 'a']")
    assert (output.output, output.logs, output.is_final_answer) == ("[1, 'a']", "hi\n", False), output
    try:
        executor("1 / 0")
    except AgentError as error:
        assert "ZeroDivisionError" in str(error)
    else:
        raise AssertionError("no AgentError")


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def nbclient_through_a_gateway(folder):
    """Starts a Jupyter Server without a key of its own, as on a person's own machine."""
    log = open(os.path.join(folder, "log"), "w+")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
        + ["--ServerApp.port=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}"]
        + gateway,
        env={**os.environ, "HOME": folder, "JUPYTER_RUNTIME_DIR": folder},
        stdout=log,
        stderr=log,
    )
    try:
        address = wait_for_address(server, folder)
        GatewayClient.instance().url = address
        client = NotebookClient(
            notebook(
                "import matplotlib.pyplot as plt\nx = 20",
                "print(x)\nx + 1",
                "plt.plot([1, 2])\nplt.show()",
                "import pandas as pd\npd.DataFrame({'a': [x]})",
            ),
            kernel_manager_class=GatewayKernelManager,
            timeout=60,
        )
        cells = client.execute().cells
        assert [c.execution_count for c in cells] == [1, 2, 3, 4], cells
        assert cells[1].outputs[0].text == "20\n" and cells[1].outputs[1].data["text/plain"] == "21", cells[1]
        assert "image/png" in cells[2].outputs[0].data, cells[2]
        assert "<table" in cells[3].outputs[0].data["text/html"], cells[3]
        try:
            failing = notebook("1 / 0", "2")
            NotebookClient(failing, kernel_manager_class=GatewayKernelManager, timeout=60).execute()
        except CellExecutionError as error:
            assert error.ename == "ZeroDivisionError", error
        else:
            raise AssertionError("no CellExecutionError")
    except BaseException:
        log.seek(0)
        sys.stderr.write(log.read()[-5000:])
        raise
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(20)


def wait_for_address(server, folder):
    for _ in range(600):
        for name in os.listdir(folder):
            if name.startswith("jpserver-") and name.endswith(".json"):
                try:
                    with open(os.path.join(folder, name)) as info:
                        found = json.load(info)
                except json.JSONDecodeError:
                    continue  # the server is writing it
                urllib.request.urlopen(found["url"] + "api").read()
                return found["url"].rstrip("/")
        assert server.poll() is None, "Jupyter Server has ended"
        time.sleep(0.1)
    raise AssertionError("Jupyter Server does not start")


logging.disable(logging.ERROR)  # smolagents and the clients log the errors that this program expects
kernel_client()
smolagents()
with tempfile.TemporaryDirectory() as folder:
    nbclient_through_a_gateway(folder)
print("ok")
