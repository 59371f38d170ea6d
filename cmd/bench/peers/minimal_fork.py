"""The minimal server that forks a warm interpreter for each request: Flask under uWSGI.

The child runs the code and returns its output. The server waits for the child without any limit, so
no server in use works like this; fork_server.py stands for those.
"""

import contextlib
import io
import json
import os

from flask import Flask, Response, request

app = Flask(__name__)


@app.post("/execute")
def execute() -> Response:
    code = request.get_json()["code"]
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(code, "request", "exec"), {"__name__": "__main__"})
            with open(theirs, "w") as answer:
                result = {"status": "completed", "stdout": printed.getvalue(), "error": None}
                json.dump(result, answer, separators=(",", ":"))
        finally:
            os._exit(0)
    os.close(theirs)
    with open(ours) as answer:
        body = answer.read()
    os.waitpid(pid, 0)
    return Response(body, mimetype="application/json")
