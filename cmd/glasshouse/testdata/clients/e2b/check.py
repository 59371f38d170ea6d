"""Uses e2b_code_interpreter, unchanged, as its README and its users do. The argument is the URL of Glasshouse's own
API. The working folder has the lines of docs/clients.md, the environment their variables."""

import asyncio
import base64
import contextlib
import io
import os
import runpy
import sys
import threading
import time

import e2b
from e2b_code_interpreter import AsyncSandbox, Sandbox


def raises(kind, words, action, *arguments, **options):
    try:
        action(*arguments, **options)
    except kind as error:
        assert words in str(error), f"got {error!r}, want {words!r} in it"
        return error
    raise AssertionError(f"got no error, want {kind.__name__} with {words!r}")


def runs_code(sandbox):
    sandbox.run_code("x = 1")
    execution = sandbox.run_code("x += 1; x")
    assert execution.text == "2" and execution.results[0].is_main_result, execution
    assert execution.execution_count == 2, execution.execution_count
    assert sandbox.run_code("'text'").text == "text"
    assert sandbox.run_code("{'a': [True, None]}").text == "{'a': [True, None]}"
    assert sandbox.run_code("x = 3").text is None
    assert sandbox.run_code("import os; os.getcwd(), os.path.exists('/home/user')").error is None


def streams(sandbox):
    out, err, results, errors = [], [], [], []
    code = """
import sys, time
for n in range(3):
    print("line", n)
    time.sleep(0.3)
print("to stderr", file=sys.stderr)
display({"shown": 1})
1 / 0
"""
    began = time.monotonic()
    times = []

    def on_stdout(message):
        out.append(message.line)
        times.append(time.monotonic() - began)

    execution = sandbox.run_code(
        code, on_stdout=on_stdout, on_stderr=lambda m: err.append(m.line), on_result=results.append,
        on_error=errors.append,
    )
    assert "".join(out) == "line 0\nline 1\nline 2\n" == "".join(execution.logs.stdout), out
    assert times[-1] - times[0] > 0.2, f"the lines came together: {times}"
    assert "".join(err) == "to stderr\n", err
    assert [r.is_main_result for r in results] == [False] and "shown" in results[0].text, results
    assert errors[0].name == "ZeroDivisionError" and errors[0].value == "division by zero", errors
    assert execution.error.traceback.startswith("Traceback") and "line 8" in execution.error.traceback, execution.error
    error = sandbox.run_code("print('x'\n").error
    assert error.name == "SyntaxError" and error.traceback.startswith("Traceback"), error


def shows_charts(sandbox):
    execution = sandbox.run_code("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.plot([3])")
    pngs = [r.png for r in execution.results if r.png]
    assert execution.error is None and len(pngs) >= 2, execution
    assert all(base64.b64decode(p).startswith(b"\x89PNG") for p in pngs)
    large = sandbox.run_code("from PIL import Image\nimport numpy\n"
                             "Image.fromarray(numpy.random.default_rng(1).integers(0, 256, (900, 900, 3), 'uint8'))")
    assert large.error is None and len(base64.b64decode(large.results[0].png)) > 2_000_000, large.error
    frame = sandbox.run_code("import pandas\npandas.DataFrame({'a': [1, 2]})").results[0]
    assert "<table" in frame.html and "a" in frame.text and frame.is_main_result, frame


def keeps_files(sandbox):
    files = sandbox.files
    info = files.write("/home/user/in.txt", "hello")
    assert (info.path, info.name) == ("/home/user/in.txt", "in.txt"), info
    files.write_files([{"path": "folder/b.bin", "data": bytes(range(256))}])
    files.write_files([{"path": "c.txt", "data": io.BytesIO(b"c")}])
    files.write("packed.txt", "packed" * 1000, gzip=True)
    files.write("ünï code.txt", "é")
    assert files.read("ünï code.txt") == "é" and files.read("packed.txt") == "packed" * 1000
    assert files.read("folder/b.bin", format="bytes") == bytes(range(256))
    assert b"".join(files.read("c.txt", format="stream")) == b"c"
    code = "text = open('/home/user/in.txt').read()\n"
    code += "open('/mnt/data/out.txt', 'w').write(text + '!')\nopen('c.txt').read()"
    execution = sandbox.run_code(code)
    assert execution.text == "c", execution
    assert files.read("/home/user/out.txt") == "hello!"
    assert {e.name for e in files.list("/home/user")} == {"artifacts", "c.txt", "folder", "in.txt", "out.txt",
                                                          "packed.txt", "ünï code.txt"}
    assert [e.path for e in files.list("folder")] == ["/home/user/folder/b.bin"]
    assert files.make_dir("a/b") is True and files.make_dir("a/b") is False
    assert files.get_info("a").type.value == "dir" and files.get_info("c.txt").size == 1
    assert files.rename("c.txt", "a/b/d.txt").path == "/home/user/a/b/d.txt"
    assert files.exists("a/b/d.txt") and not files.exists("c.txt") and not files.exists("/etc/shadow")
    files.remove("a")
    assert not files.exists("a/b/d.txt")
    raises(e2b.FileNotFoundException, "does not exist", files.read, "none.txt")
    raises(e2b.FileNotFoundException, "does not exist", files.remove, "none.txt")
    raises(e2b.InvalidArgumentException, "outside of /home/user", files.read, "/etc/passwd")
    raises(e2b.InvalidArgumentException, "outside of /home/user", files.write, "../../etc/passwd", "x")
    raises(e2b.NotEnoughSpaceException, "bytes", files.write, "large.bin", bytes(65 << 20))
    raises(e2b.SandboxException, "not a shell", files.watch_dir, "/home/user")
    raises(e2b.SandboxException, "not a shell", sandbox.commands.run, "ls")


def has_contexts(sandbox):
    sandbox.files.make_dir("work")
    context = sandbox.create_code_context(cwd="/home/user/work")
    sandbox.run_code("y = 'default'")
    assert sandbox.run_code("y", context=context).error.name == "NameError"
    sandbox.run_code("y = 'context'; open('here.txt', 'w').write('x')", context=context)
    assert sandbox.run_code("y").text == "default" and sandbox.run_code("y", context=context).text == "context"
    assert sandbox.files.exists("work/here.txt")
    assert {c.id for c in sandbox.list_code_contexts()} == {context.id, sandbox.sandbox_id}
    sandbox.restart_code_context(context)
    assert sandbox.run_code("y", context=context).error.name == "NameError"
    sandbox.remove_code_context(context)
    raises(e2b.NotFoundException, "not found", sandbox.run_code, "1", context=context)
    raises(e2b.SandboxException, "Glasshouse runs Python", sandbox.run_code, "1", language="r")
    assert sandbox.run_code("1", language="python").text == "1"
    once = sandbox.run_code("import os; os.environ['ONCE'] + os.environ['ALWAYS']", envs={"ONCE": "1"})
    assert once.text == "12", once
    assert sandbox.run_code("os.environ.get('ONCE')").text is None


def stops(sandbox):
    raises(e2b.TimeoutException, "Execution timed out", sandbox.run_code, "import time; time.sleep(60)", timeout=1)
    began = time.monotonic()
    assert sandbox.run_code("y").text == "default"  # the run was cancelled, the variables are there
    assert time.monotonic() - began < 10, "the run of the client that left still ran"
    both = [None, None]

    def run(n):
        both[n] = sandbox.run_code(f"import time; time.sleep(0.5); {n}").text

    threads = [threading.Thread(target=run, args=(n,)) for n in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert both == ["0", "1"], both
    killed = sandbox.run_code("import os; os._exit(1)").error
    assert killed.name == "UnexpectedEndOfExecution" and killed.value, killed
    assert sandbox.run_code("'y' in globals()").text == "False"
    printed = sandbox.run_code("for _ in range(100): print('x' * (1 << 20))\nprint('end')")
    assert printed.error is None and "left out" in "".join(printed.logs.stdout), printed.error


def forks(sandbox):
    sandbox.files.write("forked.txt", "by the client")
    sandbox.run_code("import os, random\nforked = [random.random(), os.environ['ALWAYS']]")
    sandbox.run_code("open('own.txt', 'w').close()")
    state = "print(forked, open('forked.txt').read(), os.path.exists('own.txt'))"
    before = sandbox.run_code(state).logs.stdout
    first, second = sandbox.fork(count=2, timeout=60)
    got = first.run_code(state)
    assert before and got.logs.stdout == before, (before, got)
    first.run_code("forked.clear(); os.remove('forked.txt')")
    for each in (sandbox, second):
        assert each.run_code(state).logs.stdout == before, each
    assert first.files.exists("own.txt") and not first.files.exists("forked.txt")
    for each in (first, second):
        each.kill()


def lives_and_ends(sandbox):
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id and info.metadata == {"purpose": "check"}, info
    assert info.state.value == "running", info
    sandbox.set_timeout(900)
    left = (sandbox.get_info().end_at - info.started_at).total_seconds()
    assert 890 < left < 1200, left
    raises(e2b.SandboxException, "400", sandbox.set_timeout, 10_000_000)
    same = Sandbox.connect(sandbox.sandbox_id)
    assert same.run_code("1 + 1").text == "2"
    found = Sandbox.list(query=e2b.SandboxQuery(metadata={"purpose": "check"})).next_items()
    assert [f.sandbox_id for f in found] == [sandbox.sandbox_id], found
    assert Sandbox.list(query=e2b.SandboxQuery(metadata={"purpose": "other"})).next_items() == []
    raises(e2b.SandboxException, "Glasshouse has no pause", sandbox.pause)
    raises(e2b.AuthenticationException, "unknown", Sandbox.create, api_key="e2b_" + "0" * 40)
    assert sandbox.is_running()
    result = {}

    def run():
        try:
            result["execution"] = sandbox.run_code("import time; time.sleep(60)")
        except Exception as error:
            result["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    while not result and "running" not in str(history(sandbox)):
        time.sleep(0.05)
    assert sandbox.kill() and not sandbox.is_running() and not sandbox.kill()
    thread.join(20)
    assert "error" in result or result["execution"].error is not None, result
    raises(e2b.TimeoutException, "was not found", sandbox.run_code, "1")
    raises(e2b.SandboxException, "was not found", sandbox.files.read, "x")
    raises(e2b.SandboxException, "was not found", sandbox.files.list, "/home/user")
    raises(e2b.SandboxException, "not found", Sandbox.connect, sandbox.sandbox_id)
    raises(e2b.SandboxException, "no lifecycle", Sandbox.create, lifecycle={"on_timeout": "pause"})


def history(sandbox):
    """Returns the runs of a sandbox from Glasshouse's own API."""
    import httpx

    return httpx.get(sys.argv[1] + "/executions",
                     headers={"Authorization": "Bearer " + os.environ["E2B_API_KEY"]}).text


async def asynchronous():
    async with await AsyncSandbox.create(timeout=60) as sandbox:
        lines = []
        execution = await sandbox.run_code("print(1)\n2", on_stdout=lambda m: lines.append(m.line))
        assert execution.text == "2" and "".join(lines) == "1\n", execution
        await sandbox.files.write("a.txt", "a")
        assert await sandbox.files.read("a.txt") == "a"


with contextlib.redirect_stdout(io.StringIO()) as printed:
    runpy.run_path("e2b.python")
assert printed.getvalue() == "2\n", printed.getvalue()
with Sandbox.create(metadata={"purpose": "check"}, envs={"ALWAYS": "2"}) as opened:
    for step in (runs_code, streams, shows_charts, keeps_files, has_contexts, stops, forks, lives_and_ends):
        print(step.__name__, flush=True)
        step(opened)
asyncio.run(asynchronous())
print("asynchronous")
# The client's HTTP library, pyqwest, has threads of its own, which sometimes abort Python while it shuts down.
sys.stdout.flush()
os._exit(0)
