"""A stand-in for the fastest peer: a server that forks a warm interpreter.

Two workers a core accept connections; each forks a child for a request, which runs the
body as Python and answers with what it printed. There is no wall, no limit, no
history and no database: it is what the fork and the socket cost, and no more.

    forkserver.py PORT
"""

import contextlib
import io
import os
import socket
import sys


def answer(connection: socket.socket) -> None:
    """Read one request, run its body and write what it printed."""
    request = connection.makefile("rb")
    length = 0
    for line in iter(request.readline, b"\r\n"):
        if not line:
            return
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    code = request.read(length)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "request", "exec"), {"__name__": "__main__"})
    body = printed.getvalue().encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode() + body)


def serve(listener: socket.socket) -> None:
    """Fork a child for each connection and wait for it, for ever."""
    while True:
        connection, _ = listener.accept()
        pid = os.fork()
        if pid == 0:
            try:
                answer(connection)
            finally:
                os._exit(0)
        connection.close()
        os.waitpid(pid, 0)


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=128) as listener:
        for _ in range(2 * (os.cpu_count() or 1) - 1):
            if os.fork() == 0:
                break
        serve(listener)
