"""Writes src/glasshouse_sandbox/_sync.py from _async.py. With --check it only says whether the file is up to date."""

import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent / "src" / "glasshouse_sandbox"

RULES = (
    ('"""The asynchronous client. The synchronous one in _sync.py is written from this file by make_sync.py."""',
     '"""The synchronous client. make_sync.py writes this file from _async.py."""'),
    ("import asyncio\n", ""),
    ("import json\n", "import json\nimport time\n"),
    ("AsyncIterator, Callable, Iterable,", "Callable, Iterable, Iterator,"),
    ("AsyncIterator", "Iterator"),
    ("asynccontextmanager", "contextmanager"),
    ("await asyncio.to_thread(_local.Service, binary, flags)", "_local.Service(binary, flags)"),
    ("await asyncio.to_thread(self._local.stop)", "self._local.stop()"),
    ("await _parallel.gather(", "_parallel.in_threads("),
    ("asyncio.sleep", "time.sleep"),
    ("httpx.AsyncClient", "httpx.Client"),
    ("aclose", "close"),
    ("aread", "read"),
    ("aiter_lines", "iter_lines"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
)


def synchronous(text: str) -> str:
    for old, new in RULES:
        text = text.replace(old, new)
    text = re.sub(r"\b(async|await) ", "", text)
    return re.sub(r"\bAsync(Client|Sandboxes|Sandbox|Executions|PendingWrites|Files)\b", r"\1", text)


if __name__ == "__main__":
    target = FOLDER / "_sync.py"
    text = synchronous((FOLDER / "_async.py").read_text())
    if "--check" in sys.argv:
        sys.exit(None if target.read_text() == text else f"{target} is not made from _async.py: run make_sync.py")
    target.write_text(text)
