"""A server that forks a warm interpreter for each request: Flask under uWSGI.

It stands for servers of this kind. multiprocessing creates the child, which has limits of memory
and a process group of its own, and returns its output or its error through a queue. A child that
exceeds the timeout is killed. There is no isolation, no history and no database. Each request has a
connection of its own, as with uWSGI's HTTP socket.
"""

import contextlib
import io
import multiprocessing
import os
import resource

from flask import Flask, request

app = Flask(__name__)
app.json.sort_keys = False  # the order in which FastAPI and Glasshouse answer
TIMEOUT = 30  # seconds
MEMORY = 10 << 30  # bytes


def child(code: str, answers: multiprocessing.Queue) -> None:
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        resource.setrlimit(limit, (MEMORY, MEMORY))
    os.setsid()
    error = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            exec(code, {"__name__": "__main__"})
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    answers.put({"status": "failed" if error else "completed", "stdout": printed.getvalue(), "error": error})


@app.post("/execute")
def execute() -> dict:
    answers: multiprocessing.Queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=child, args=(request.get_json()["code"], answers))
    process.start()
    process.join(TIMEOUT)
    if process.is_alive():
        process.kill()
        return {"status": "timeout", "stdout": "", "error": "the code exceeded the timeout"}
    return answers.get(timeout=1)
