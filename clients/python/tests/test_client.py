import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

import glasshouse_sandbox
import httpx
import pytest
from conftest import ROOT
from glasshouse_sandbox import AsyncClient, Client
from glasshouse_sandbox.errors import from_problem


def async_client(service) -> AsyncClient:
    return AsyncClient(str(service._http.base_url), service._http.headers["Authorization"].removeprefix("Bearer "))


def test_run_returns_the_execution(service):
    e = service.run("print('hi')\nn * 2", context={"n": 21})
    assert (e.status, e.result, e.stdout, e.stderr, e.error, e.ok) == ("completed", 42, "hi\n", "", None, True)
    assert e.text == f"hi\nresult: 42\nexecution_id={e.execution_id} status=completed"
    assert e.raise_for_status() is e and e.queries == [] and e.debug_info == {"logs": [], "variables": {}}
    assert service.executions.get(e.execution_id).text == e.text


def test_failing_code_is_no_error_of_the_client(service):
    e = service.run("rows = {'amount': 1}\nrows['amuont']")
    assert e.status == "failed" and e.exception.type == "KeyError" and e.exception.line == 2
    assert "amount" in e.text
    with pytest.raises(glasshouse_sandbox.ExecutionFailed) as failed:
        e.raise_for_status()
    assert failed.value.execution is e and "KeyError" in str(failed.value)


def test_sandbox_keeps_variables_and_files(sandbox):
    sandbox.run("x = 1")
    sandbox.files.write("a b/ü.txt", "é")
    sandbox.run("open('/session/artifacts/r.bin', 'wb').write(bytes([0, 255]))")
    e = sandbox.run("[x, open('/data/a b/ü.txt').read()]")
    assert e.result == [1, "é"]
    assert [f.path for f in sandbox.files.list()] == ["a b/ü.txt"]
    assert sandbox.files.read("a b/ü.txt") == "é".encode()
    sandbox.files.delete("a b/ü.txt")
    assert sandbox.files.list() == []
    (artifact,) = sandbox.artifacts()
    assert artifact.path == "r.bin" and sandbox._client.executions.artifact(artifact) == b"\x00\xff"
    assert sandbox.variables()["x"]["repr"] == "1"
    assert sandbox.history()["total_executions"] == 3


def test_outputs_have_roles_and_images(service):
    e = service.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\ndisplay('shown')\n{1}")
    assert {o.role for o in e.outputs} == {"figure", "display"}
    assert [png[:4] for png in e.images] == [b"\x89PNG"]


def test_callbacks_get_the_run_as_it_happens(sandbox):
    seen = {"stdout": "", "outputs": [], "queries": []}
    first = threading.Event()

    def on_stdout(text):
        seen["stdout"] += text
        first.set()

    e = sandbox.run(
        "print('a', flush=True)\ndisplay('d')\nrows = await db_query('SELECT 1 AS n')\nprint('b')\nrows[0]['n']",
        on_stdout=on_stdout,
        on_output=lambda o: seen["outputs"].append(o.summary),
        on_query=lambda q: seen["queries"].append(q.query),
    )
    assert e.result == 1 and e.stdout == seen["stdout"] == "a\nb\n"
    assert seen["outputs"] == ["d"] and seen["queries"] == ["SELECT 1 AS n"]


def test_stream_resumes_when_the_connection_breaks(service, sandbox):
    """A proxy cuts the first five connections after 40 kB; nothing is lost and nothing comes twice.

    An event has at most 32 KiB of text, and the output is longer than five times what a connection lets through, so
    neither depends on how the service divides the output into events.
    """
    address = (service._http.base_url.host, service._http.base_url.port)
    proxy = socket.create_server(("127.0.0.1", 0))
    cuts = []

    def relay(connection):
        with connection, connection.makefile("rb") as reader, socket.create_connection(address) as upstream:
            head = b"".join(iter(reader.readline, b"\r\n"))
            length = re.search(rb"(?i)content-length: (\d+)", head)
            request = head + b"\r\n" + reader.read(int(length[1]) if length else 0)
            upstream.sendall(re.sub(rb"(?i)connection: keep-alive", b"Connection: close", request))
            streamed = 0
            while data := upstream.recv(4096):
                connection.sendall(data)
                if b"text/event-stream" in request:
                    streamed += len(data)
                    if streamed > 40_000 and len(cuts) < 5:
                        cuts.append(streamed)
                        return

    def accept():
        while True:
            try:
                connection, _ = proxy.accept()
            except OSError:
                return
            threading.Thread(target=relay, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    key = service._http.headers["Authorization"].removeprefix("Bearer ")
    with Client(f"http://127.0.0.1:{proxy.getsockname()[1]}", key) as client:
        got = []
        e = client.sandboxes.get(sandbox.id).run(
            "import time\nfor n in range(40):\n    print(f'{n:02}' * 5000, flush=True)\n    time.sleep(0.01)\n'end'",
            on_stdout=got.append,
        )
    proxy.close()
    assert len(cuts) == 5
    assert e.result == "end" and "".join(got) == e.stdout == "".join(f"{n:02}" * 5000 + "\n" for n in range(40))


def test_debug_yields_each_line(sandbox):
    steps = list(sandbox.debug("a = 1\nb = a + 1\n"))
    assert [s.line_number for s in steps] == [1, 2]
    assert steps[0].variables["a"] == "1" and steps[0].execution is None
    assert steps[1].execution.ok


def test_pages_of_recorded_steps(service, sandbox):
    *_, last = sandbox.debug("a = [\n    i\n    for i in range(9)\n]\nb = 1\n")
    page = service.executions.steps(last.execution.execution_id, limit=2)
    assert [s.line_number for s in page.steps] == [3, 1] and page.next == 3 and page.total > 20
    page = service.executions.steps(last.execution.execution_id, fold=True)
    assert [s.line_number for s in page.steps] == [3, 5] and page.next is None


def test_queries_and_schema(service):
    result = service.query("SELECT id, :word::text AS word FROM users ORDER BY id LIMIT 2", {"word": "é"})
    assert result.rows == [{"id": 1, "word": "é"}, {"id": 2, "word": "é"}]
    assert (result.count, result.truncated) == (2, False)
    assert "users" in service.schema()["tables"]
    (database,) = service.databases()
    assert (database["name"], database["default"], database["status"]) == ("knowledge", True, "ready")
    assert service.query("SELECT 1 AS n", database="knowledge").rows == [{"n": 1}]
    assert service.schema(database="knowledge") == service.schema()
    for ask in (service.query, lambda _, database: service.schema(database=database)):
        with pytest.raises(glasshouse_sandbox.QueryRefused, match="no database \"sales\".*knowledge"):
            ask("SELECT 1", database="sales")
    with pytest.raises(glasshouse_sandbox.QueryRefused, match="only reads"):
        service.query("DELETE FROM users")


def test_errors_have_a_class_for_each_problem(service, sandbox):
    with pytest.raises(glasshouse_sandbox.NotFound) as error:
        service.sandboxes.get("none").run("1")
    assert error.value.status == 404 and error.value.request_id
    with pytest.raises(glasshouse_sandbox.InvalidInput) as invalid:
        service.sandboxes.create(max_memory=1)
    assert "max_memory" in str(invalid.value)
    with Client(str(service._http.base_url), "wrong") as stranger, pytest.raises(glasshouse_sandbox.Unauthorized):
        stranger.run("1")
    with Client("http://127.0.0.1:9", "x") as nobody:
        with pytest.raises(glasshouse_sandbox.ConnectionFailed, match="GLASSHOUSE_URL"):
            nobody.run("1")
    sandbox.close()
    with pytest.raises(glasshouse_sandbox.Gone, match="deleted"):
        sandbox.run("1")


def test_what_is_not_configured_is_no_busy_sandbox(service):
    assert service._http.get("/chat").json()["configured"] is False
    error = from_problem(409, service._http.post("/chat/conversations").json())
    assert isinstance(error, glasshouse_sandbox.NotConfigured) and "--model-url" in error.detail


def test_a_full_service_is_asked_again(monkeypatch):
    answers = iter(
        [
            httpx.Response(429, json={"type": "urn:glasshouse:problem:limit-reached"}, headers={"Retry-After": "0"}),
            httpx.Response(503, json={"type": "urn:glasshouse:problem:full"}, headers={"Retry-After": "0"}),
            httpx.Response(200, json={"execution_id": "1", "status": "completed"}),
        ]
    )
    http = httpx.Client(base_url="http://test", transport=httpx.MockTransport(lambda request: next(answers)))
    assert Client(http=http).run("1").execution_id == "1"
    late = httpx.Response(429, json={"type": "x:limit-reached"}, headers={"Retry-After": "99"})
    refused = httpx.MockTransport(lambda request: late)
    with pytest.raises(glasshouse_sandbox.LimitReached) as error:
        Client(http=httpx.Client(base_url="http://test", transport=refused)).run("1")
    assert error.value.retry_after == 99


def test_timeout_ends_the_run(sandbox):
    e = sandbox.run("while True: pass", timeout=0.5)
    assert e.status == "timeout" and not e.ok


def test_cancel(service, sandbox):
    started = threading.Event()
    ids = []

    def cancel():
        started.wait(60)
        (running,) = service.executions.list(sandbox_id=sandbox.id, status="running").executions
        ids.append(running.execution_id)
        service.executions.cancel(running.execution_id)

    thread = threading.Thread(target=cancel)
    thread.start()
    e = sandbox.run("print('begun', flush=True)\nwhile True: pass", on_stdout=lambda text: started.set())
    thread.join()
    assert e.status == "cancelled" and ids == [e.execution_id]


def test_async_client_runs_many_at_once(service):
    async def main():
        async with async_client(service) as client:
            many = await asyncio.gather(*(client.run(f"{n} * 2") for n in range(10)))
            async with await client.sandboxes.create() as sandbox:
                texts = []
                e = await sandbox.run("print('x')\n1", on_stdout=texts.append)
                lines = [s.line_number async for s in sandbox.debug("a = 1\nb = 2")]
            return [e.result for e in many], e.result, "".join(texts), lines

    assert asyncio.run(main()) == ([n * 2 for n in range(10)], 1, "x\n", [1, 2])


def test_guide_names(service):
    from glasshouse_sandbox.guide import SandboxService

    async def main():
        sandboxes = SandboxService(None, client=async_client(service))
        sandbox_id = await sandboxes.create_agent_sandbox(user_id=1, config={"max_execution_time": 30})
        result = await sandboxes.execute_code(sandbox_id, "debug('n')\n__result__ = {'a': 1}")
        assert (result.status, result.result) == ("completed", {"a": 1}) and result.debug_info["logs"]
        rows = await sandboxes.query_database(sandbox_id, "SELECT count(*) AS n FROM users WHERE id > :id", {"id": 0})
        assert rows["results"][0]["n"] > 0
        assert "users" in (await sandboxes.get_database_schema(sandbox_id))["tables"]
        steps = [step async for step in sandboxes.debug_code(sandbox_id, "x = 1\ny = 2")]
        assert [step["line_number"] for step in steps] == [1, 2] and steps[-1]["result"].status == "completed"
        assert steps[0]["state"]["variables"]["x"] == "1"
        assert (await sandboxes.get_sandbox_statistics())["active_sandboxes"] >= 1
        assert "class" in await sandboxes.create_processor_template(sandbox_id, "text_analyzer")
        assert await sandboxes.cleanup_sandbox(sandbox_id)
        assert len(await sandboxes.get_execution_history(sandbox_id)) == 3
        await sandboxes.client.close()

    asyncio.run(main())


@pytest.mark.parametrize("name", ["langchain", "smolagents", "adk"])
def test_an_integration_without_its_framework_names_the_extra(name):
    code = f"import sys; sys.modules.update(pydantic=None, PIL=None); import glasshouse_sandbox.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and f"[{name}]" in done.stderr, done.stderr


def test_synchronous_client_is_made_from_the_asynchronous_one():
    subprocess.run([sys.executable, ROOT / "clients" / "python" / "make_sync.py", "--check"], check=True)


def test_snippets_of_the_documentation_run(service, monkeypatch, capsys):
    monkeypatch.setenv("GLASSHOUSE_URL", str(service._http.base_url))
    monkeypatch.setenv("GLASSHOUSE_KEY", service._http.headers["Authorization"].removeprefix("Bearer "))
    documents = (ROOT / "docs" / "python.md", ROOT / "docs" / "replay.md", ROOT / "README.md")
    text = "".join(document.read_text() for document in documents)
    snippets = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    snippets = [snippet for snippet in snippets if "plt." not in snippet]  # code of a sandbox, which Go's tests run
    namespace: dict = {"__name__": "documentation"}
    for snippet in snippets:
        exec(compile(snippet, "docs/python.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert len(snippets) >= 8
    texts = ["42\n", "out.txt b'name\\nAda\\n'", "hint:", "0\n1\n2\n", "users", "only reads", "[0, 1, 4, 9"]
    texts += ["2030-01-01 00:00:00", "{'parts': 1} 500\n{'parts': 2} 250\n0\n[2, 500]\n"]
    for expected in [*texts, "identical True", "differs [Difference(part='stdout', line=1, original="]:
        assert expected in printed, expected


def test_package_is_built_and_installed(tmp_path):
    """The wheel and the sdist install into a fresh folder, with the marker of their types."""
    assert shutil.which("uv"), "uv must be in PATH; scripts/test puts it there"
    subprocess.run(["uv", "build", "--offline", "-q", "-o", tmp_path, ROOT / "clients" / "python"], check=True)
    for package in [*tmp_path.glob("*.whl"), *tmp_path.glob("*.tar.gz")]:
        target = tmp_path / package.name.replace(".", "_")
        command = ["uv", "pip", "install", "--offline", "-q", "--no-deps", "--target", target, package]
        subprocess.run([*command, "--python", sys.executable], check=True)
        code = (
            "import glasshouse_sandbox, glasshouse_sandbox.guide, importlib.metadata as m; "
            "print(glasshouse_sandbox.__file__, m.version('glasshouse-sandbox'))"
        )
        environ = {**os.environ, "PYTHONPATH": str(target)}
        command = [sys.executable, "-c", code]
        out = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout
        assert out.startswith(str(target)) and (target / "glasshouse_sandbox" / "py.typed").exists()
        assert not (target / "glasshouse").exists()  # the name belongs to another project on PyPI
        command = [sys.executable, "-m", "pytest", "--help", "-p", "no:cacheprovider"]
        out = subprocess.run(command, env=environ, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert "--glasshouse-suite=FILE" in out  # pytest finds the plugin by itself
    assert len(list(tmp_path.glob("*.whl"))) == len(list(tmp_path.glob("*.tar.gz"))) == 1


def test_tags_are_kept_and_filter_lists(service, sandbox):
    tags = {"team": "client", "ticket": "OPS:12, é"}
    e = service.run("1", tags=tags)
    assert e.tags == tags and service.executions.get(e.execution_id).tags == tags
    team = sandbox.run("2", tags={"team": "client"})
    *_, last = sandbox.debug("3", tags=tags)
    streamed = sandbox.run("4", tags=tags, on_stdout=lambda text: None)
    assert streamed.tags == tags and service.run("5").tags == {}

    def ids(**wanted):
        return [found.execution_id for found in service.executions.list(tags=wanted).executions]

    both = [streamed.execution_id, last.execution.execution_id, e.execution_id]
    assert ids(**tags) == both
    assert ids(team="client") == [*both[:2], team.execution_id, both[2]]
    assert ids(team="client", ticket="OPS-13") == []
    with pytest.raises(glasshouse_sandbox.InvalidInput, match=r"team.*256"):
        service.run("6", tags={"team": "x" * 257})

    async def run():
        async with async_client(service) as client:
            e = await client.run("7", tags={"team": "async"})
            page = await client.executions.list(tags={"team": "async"})
            return e, page.executions

    e, found = asyncio.run(run())
    assert e.tags == {"team": "async"} and [each.execution_id for each in found] == [e.execution_id]


NOW = "rows = db_query('SELECT clock_timestamp()::text AS at')\nprint('asked')\nrows[0]['at']"


def test_replay_gets_the_inputs_of_its_original(service):
    first = service.run(NOW)
    again = service.executions.replay(first.execution_id)
    assert again.replay.identical and again.replay.grade == "identical" and again.replay.of == first.execution_id
    assert again.execution_id != first.execution_id and again.result == first.result and first.replay is None
    assert again.text and service.executions.get(again.execution_id).replay == again.replay
    assert (again.replay.rows, again.replay.edited, again.replay.restored) == ("log", False, None)

    live = service.executions.replay(first.execution_id, rows="now")
    assert not live.replay.identical and live.replay.grade == "differs" and live.replay.rows == "now"
    assert [d.part for d in live.replay.differences] == ["statements[1].rows", "result"]
    assert live.replay.sources == ["database"] and live.replay.raw["rows"] == "now"
    assert live.replay.differences[1] == glasshouse_sandbox.Difference("result", 0, first.result, live.result)

    other = service.executions.replay(first.execution_id, code=NOW.replace("asked", "edited"), record=True)
    assert other.result == first.result and other.replay.edited and other.recorded_steps == 3
    assert [(d.part, d.line, d.original, d.replay) for d in other.replay.differences] == [
        ("stdout", 1, "asked", "edited")
    ]


def test_replay_names_the_statements_of_now(service):
    first = service.run(NOW)
    again = service.executions.replay(first.execution_id, code="db_query('SELECT 1 AS n')\n" + NOW)
    assert (again.replay.rows, again.replay.statements_now) == ("mixed", [1])
    assert again.result == first.result and again.replay.sources == ["database"]
    assert service.executions.replay(first.execution_id).replay.statements_now == []


def test_replay_says_where_it_left_its_original(service, sandbox):
    sandbox.run("import threading, time\nn = []")
    first = sandbox.run(
        "thread = threading.Thread(target=lambda: n.append(time.time_ns()))\nthread.start()\nthread.join()\n"
        "db_query(f'SELECT {n[0]} AS n')"
    )

    async def run():
        async with async_client(service) as client:
            return await client.executions.replay(first.execution_id)

    replay = asyncio.run(run()).replay
    assert replay.grade == "diverged" and replay.diverged.request == 1 and replay.sources == ["threads"]
    assert replay.diverged.original.startswith("SELECT ") and replay.diverged.replay.startswith("SELECT ")
    assert replay.diverged.original != replay.diverged.replay
    assert replay.restored.executions == 1 and replay.restored.exact and replay.restored.left_out == 0


def test_replay_is_refused(service):
    with pytest.raises(glasshouse_sandbox.NotFound):
        service.executions.replay("../none")
    with pytest.raises(glasshouse_sandbox.InvalidInput, match="rows"):
        service.executions.replay("none", rows="then")
