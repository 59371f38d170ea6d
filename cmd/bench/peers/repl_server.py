"""A REPL server: FastAPI on uvicorn, with uvloop and httptools.

Each session is a namespace in the server's own process, without isolation, limits or history. Code
runs in a thread, so that other sessions are served meanwhile, or in the event loop, where it blocks
them.
"""

import ast
import contextlib
import io

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
sessions: dict[str, dict] = {}


class Code(BaseModel):
    code: str


def run(session: str, code: str) -> dict:
    names = sessions.setdefault(session, {"__name__": "__main__"})
    body, result = ast.parse(code), None
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, "request", "exec"), names)
        if last is not None:
            result = eval(compile(ast.Expression(last.value), "request", "eval"), names)
    return {"status": "completed", "result": result, "stdout": printed.getvalue(), "error": None}


@app.post("/thread/{session}")
def in_thread(session: str, given: Code) -> dict:
    return run(session, given.code)


@app.post("/loop/{session}")
async def in_loop(session: str, given: Code) -> dict:
    return run(session, given.code)
