"""The asynchronous client. The synchronous one in _sync.py is written from this file by make_sync.py."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import _local, _parallel, _transport, models
from . import _operations as ops
from .errors import ConnectionFailed, Full, GlasshouseError, LimitReached
from .models import Execution, Json

T = TypeVar("T")

MAX_RESUMES = 10  # in a row without an event, of a stream whose connection breaks


class AsyncClient:
    """A client of a Glasshouse service.

    url: the service's address; by default the environment variable GLASSHOUSE_URL, or http://127.0.0.1:8080. key: the
    API key; by default GLASSHOUSE_KEY. http: an httpx client to use instead of one made for this client; it has the
    address and the key then. Use the client as a context manager, or call close.

    Every method raises a GlasshouseError if the service does not do what was asked. Code that fails does not raise one:
    its Execution has the status "failed".
    """

    def __init__(
        self, url: str | None = None, key: str | None = None, *, http: httpx.AsyncClient | None = None
    ) -> None:
        self._http = http or httpx.AsyncClient(**_transport.settings(url, key))
        self._local: _local.Service | None = None
        self.sandboxes = AsyncSandboxes(self)
        self.executions = AsyncExecutions(self)
        self.pending_writes = AsyncPendingWrites(self)

    @classmethod
    async def local(cls, binary: str = "glasshouse", **flags: str) -> AsyncClient:
        """Starts a service on a free port and returns its client; close stops the service.

        binary: the path of the program. flags: flags of `glasshouse serve`, such as data_dir="/tmp/glasshouse".
        """
        service = await asyncio.to_thread(_local.Service, binary, flags)
        client = cls(service.url, service.key)
        client._local = service
        return client

    async def close(self) -> None:
        """Closes the connections, and stops the service that `local` started."""
        await self._http.aclose()
        if self._local is not None:
            await asyncio.to_thread(self._local.stop)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def run(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        files: ops.Files | None = None,
        timeout: float | None = None,
        config: Mapping[str, Any] | None = None,
        record: bool = False,
        tags: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Execution:
        """Runs code in a new sandbox, which is deleted afterwards.

        context: variables of the code. files: uploads that are in /data first, by path. timeout: seconds. config: the
        sandbox's config, such as {"max_memory_mb": 512}. record: keep a recording, for `executions.why`.
        tags: texts by name, to find the execution with `executions.list`. idempotency_key: at most 255 printable
        ASCII characters that no other run of the user has. A second run with it returns the first one's execution, and
        the code runs once. So the client sends the request again if the connection breaks.
        """
        call = ops.run_call(
            None, code, context=context, files=files, timeout=timeout, config=config, record=record, tags=tags,
            idempotency_key=idempotency_key,
        )
        return await self._do(ops.run(call))

    async def query(
        self, sql: str, params: Mapping[str, Any] | None = None, *, database: str | None = None
    ) -> models.QueryResult:
        """Runs one read-only statement. params: the values of :name in it. database: a name of databases(), by default
        the first. Raises QueryRefused."""
        return await self._do(ops.query(None, sql, params, database))

    async def stages(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        database: str | None = None,
        samples: bool = False,
        all: bool = False,
    ) -> models.Stages:
        """Runs one SELECT, and counts the rows after each table, join, condition and group of it. Its findings say
        what may be wrong.

        samples: with up to 5 rows after each stage. all: compute what would take long, too, and have findings in the
        text that are only possible. Raises QueryRefused if the statement is refused
        or has no stages.
        """
        return await self._do(
            ops.stages("/database", ops.statement(sql, params, database), samples, all)
        )

    async def why_cell(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        row: int = 0,
        column: str,
        database: str | None = None,
    ) -> models.WhyCell:
        """Runs one SELECT, and finds the rows of tables behind a cell of its result. row: from 0. Raises
        QueryRefused if the statement is refused or has no such cell."""
        return await self._do(
            ops.why_cell("/database", ops.statement(sql, params, database), row, column)
        )

    async def why_not(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        values: Mapping[str, Any],
        database: str | None = None,
    ) -> models.WhyNot:
        """Runs one SELECT, and finds the table, join, condition or group that loses a row. values: of columns of
        tables or of the result, such as {"orders.id": 17}. Raises QueryRefused."""
        return await self._do(
            ops.why_not("/database", ops.statement(sql, params, database), values)
        )

    async def schema(self, *, database: str | None = None) -> Json:
        """Returns {"tables": [names], "schema": {table: [columns]}, "details": {...}, "total_tables": n}."""
        return await self._do(ops.schema(None, database))

    async def databases(self) -> list[Json]:
        """Returns the databases that the key may use, the default one first: {"name", "default", "status",
        "server_version"}."""
        found: list[Json] = (await self._do(ops.fetch(ops.Call("GET", "/databases"))))["databases"]
        return found

    async def statistics(self) -> Json:
        """Returns counts, rates and times of the caller's executions."""
        answer: Json = (await self._do(ops.fetch(ops.Call("GET", "/sandbox/statistics"))))["statistics"]
        return answer

    async def _do(self, operation: ops.Operation[T]) -> T:
        try:
            call = next(operation)
            while True:
                call = operation.send(await self._send(call))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _wait_to_repeat(self, error: httpx.HTTPError, call: ops.Call, lost: int) -> None:
        """Waits before a request whose answer was lost is sent again. Raises ConnectionFailed if it is not."""
        delay = _transport.repeat_delay(error, call, lost)
        if delay is None:
            raise _transport.connection_failed(error, self._http.base_url) from error
        await asyncio.sleep(delay)

    async def _send(self, call: ops.Call) -> ops.Reply:
        attempt = lost = 0
        while True:
            try:
                response = await self._http.request(**_transport.request_arguments(call))
            except httpx.HTTPError as error:
                await self._wait_to_repeat(error, call, lost)
                lost += 1
                continue
            if response.is_success:
                return ops.Reply(response.content)
            problem = _transport.error_of(response)
            delay = _transport.retry_delay(problem, attempt) if call.retry else None
            if delay is None:
                raise problem
            await asyncio.sleep(delay)
            attempt += 1

    @contextlib.asynccontextmanager
    async def _open(self, call: ops.Call, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Opens a stream of events. Leaving it closes the connection."""
        attempt = lost = 0
        while True:
            try:
                request = self._http.build_request(**_transport.request_arguments(call, headers))
                response = await self._http.send(request, stream=True)
            except httpx.HTTPError as error:
                await self._wait_to_repeat(error, call, lost)
                lost += 1
                continue
            if response.is_success:
                try:
                    yield response
                finally:
                    await response.aclose()
                return
            await response.aread()
            problem = _transport.error_of(response)
            delay = _transport.retry_delay(problem, attempt)
            if delay is None:
                raise problem
            await asyncio.sleep(delay)
            attempt += 1

    async def _events(self, call: ops.Call) -> AsyncIterator[ops.Event]:
        """Yields the events of a run, and goes on where it was if the connection breaks."""
        headers: dict[str, str] = {}
        location, failures = "", 0
        while True:
            try:
                async with self._open(call, headers) as response:
                    location = response.headers.get("Location", location)
                    reader = ops.EventReader()
                    async for line in response.aiter_lines():
                        event = reader.line(line)
                        if event is None:
                            continue
                        failures = 0
                        headers = {"Last-Event-ID": event.id}
                        yield event
                        if event.name in ("done", "error"):
                            return
                raise ConnectionFailed("the stream of events ended early")
            except (httpx.HTTPError, ConnectionFailed) as error:
                failures += 1
                if not location or failures > MAX_RESUMES:
                    if isinstance(error, httpx.HTTPError):
                        raise _transport.connection_failed(error, self._http.base_url) from error
                    raise
                await asyncio.sleep(min(0.1 * 2**failures, 5.0))
                call = ops.Call("GET", location, params=ops.TEXT, stream=True)


class AsyncSandboxes:
    """The sandboxes of the caller."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def create(self, **config: Any) -> AsyncSandbox:
        """Creates a sandbox, such as create(max_execution_time=60). The keys are those of the API's config."""
        answer = await self._client._do(ops.create(config))
        return AsyncSandbox(self._client, answer["sandbox_id"], answer["data"]["config"])

    def get(self, sandbox_id: str) -> AsyncSandbox:
        """Returns a sandbox that exists, without asking the service."""
        return AsyncSandbox(self._client, sandbox_id, {})

    async def close_all(self) -> str:
        """Ends all sandboxes of the caller, and returns the service's message."""
        answer = await self._client._do(ops.fetch(ops.Call("POST", "/sandbox/cleanup-all")))
        return str(answer["message"])


class AsyncExecutions:
    """The history of executions: the caller's, and those of all users for an admin."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, execution_id: str, *, wait: float = 0) -> Execution:
        """Returns an execution. wait: seconds to wait for the end of a running one, at most 300."""
        return await self._client._do(ops.get_execution(execution_id, wait))

    async def list(
        self,
        *,
        user_id: str | None = None,
        sandbox_id: str | None = None,
        status: str | None = None,
        since: str | None = None,
        until: str | None = None,
        text: str | None = None,
        tags: Mapping[str, str] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> models.Page:
        """Returns a page of executions, newest first. since, until: times in RFC 3339. text: in code or error.
        tags: the executions have all of them."""
        operation = ops.list_executions(
            user_id=user_id,
            sandbox_id=sandbox_id,
            status=status,
            since=since,
            until=until,
            text=text,
            tag=tags,
            limit=limit,
            after=after,
        )
        return await self._client._do(operation)

    async def cancel(self, execution_id: str) -> None:
        """Ends a running execution."""
        await self._client._do(ops.fetch(ops.Call("POST", f"/executions/{execution_id}/cancel")))

    async def explain(self, execution_id: str, *, budget: int = 1000) -> str:
        """Explains a recorded execution in about budget tokens: its end, the steps that led to it, values."""
        return await self._client._do(ops.explain(execution_id, budget))

    async def steps(
        self, execution_id: str, first: int = 1, *, limit: int = 100, fold: bool = False
    ) -> models.StepPage:
        """Returns a page of the steps of a recorded execution, from step first on.

        limit: at most 1000 steps. fold: leave out the steps of comprehensions; then a page may have fewer steps. Raises
        NotFound if the execution was not recorded.
        """
        return await self._client._do(ops.steps(execution_id, first, limit, fold))

    async def why(
        self, execution_id: str, name: str | None = None, *, step: int | None = None, budget: int = 600
    ) -> models.Why:
        """Tells where a value of a recorded execution comes from, and what may make it wrong.

        name: a variable, the path of a value such as "t.loc['Oslo', 'price']", or an expression whose variables are
        meant; by default the result. The answer to a path has a cell with the rows behind it. step: the value on
        arrival at this step; by default at the end. budget: the length of the text in tokens. Raises NotFound if the
        execution was not recorded or has no such variable.
        """
        return await self._client._do(ops.why(execution_id, name, step, budget))

    async def stages(
        self,
        execution_id: str,
        query: int = 1,
        *,
        samples: bool = False,
        all: bool = False,
    ) -> models.Stages:
        """Counts the rows after each stage of a statement of an execution, as `Client.stages` does, with its
        parameters and the data of now. query: the number of the statement in `queries`, from 1."""
        return await self._client._do(
            ops.stages(ops.past_statement(execution_id, query), {}, samples, all)
        )

    async def why_cell(
        self, execution_id: str, query: int = 1, *, row: int = 0, column: str
    ) -> models.WhyCell:
        """Finds the rows of tables behind a cell of a statement of an execution, as `Client.why_cell` does. query:
        the number of the statement in `queries`, from 1."""
        return await self._client._do(
            ops.why_cell(ops.past_statement(execution_id, query), {}, row, column)
        )

    async def why_not(
        self, execution_id: str, query: int = 1, *, values: Mapping[str, Any]
    ) -> models.WhyNot:
        """Finds what loses a row in a statement of an execution, as `Client.why_not` does. query: the number of the
        statement in `queries`, from 1."""
        return await self._client._do(
            ops.why_not(ops.past_statement(execution_id, query), {}, values)
        )

    async def replay(
        self,
        execution_id: str,
        *,
        code: str | None = None,
        rows: str = "log",
        edits: ops.Edits | None = None,
        record: bool = False,
        environment: str | None = None,
    ) -> Execution:
        """Runs an ended execution again with the inputs that it had, and returns the new execution. Its `replay` says
        what differs.

        code: runs in place of the original's. rows: "log", as the original got them, or "now", from the database.
        edits: other rows for statements, by the number of the statement in the original from 1, such as
        {1: [{"n": 0}]}; a column that a row does not name is NULL. A statement that the original did not send goes to
        the database: then `replay.rows` is "mixed". record: keep a recording, for `why`. environment:
        the name of the environment whose packages it gets; by default that of the original. Raises Gone if the inputs
        are not kept, Busy if the execution runs, and InvalidInput if there is no such environment.
        """
        return await self._client._do(ops.replay(execution_id, code, rows, edits, record, environment))

    async def diff(self, execution_id: str, other: str) -> Sequence[models.Difference]:
        """Compares two ended executions, and runs nothing. Returns the first twenty differences; their `replay` has
        the values of the other execution. Raises Busy if one of them runs."""
        return await self._client._do(ops.diff(execution_id, other))

    async def artifact(self, artifact: models.Artifact | str) -> bytes:
        """Returns the bytes of an artifact, which its id can name."""
        name = artifact if isinstance(artifact, str) else artifact.artifact_id
        return await self._client._do(ops.read(f"/artifacts/{name}"))


class AsyncPendingWrites:
    """Statements that sandboxes with write_policy="capture" would have run. Only an admin's key may see and decide."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(
        self, *, status: str | None = "pending", user_id: str | None = None
    ) -> Sequence[models.PendingWrite]:
        """Returns the statements, newest first.

        status: pending, applying, unknown, applied, failed, rejected; None for all.
        """
        return await self._client._do(ops.pending_writes(status, user_id))

    async def apply(self, write_id: str, *, reason: str = "") -> models.PendingWrite:
        """Checks the statement again, runs it once, and returns it with its status and affected rows.

        reason: why, which is kept with the decision; at most 1000 characters.
        """
        return await self._client._do(ops.decide(write_id, "apply", reason))

    async def reject(self, write_id: str, *, reason: str = "") -> models.PendingWrite:
        """Rejects the statement, which is then never run.

        reason: why, which is kept with the decision; at most 1000 characters.
        """
        return await self._client._do(ops.decide(write_id, "reject", reason))

    async def resolve(self, write_id: str, *, applied: bool, reason: str = "") -> models.PendingWrite:
        """Records what a statement with the status unknown did. If it was not applied, it is pending again.

        reason: how you know, which is kept with the decision; at most 1000 characters.
        """
        return await self._client._do(ops.resolve(write_id, applied, reason))


class AsyncSandbox:
    """A sandbox: code that runs in it finds the variables, imports and files of earlier runs.

    Use it as a context manager, or call close; it also ends after its idle time. id: its id. config: as the service
    accepted it; empty for a sandbox of `sandboxes.get`. restored: how the executions went that made the state of a
    fork; None for other sandboxes.
    """

    def __init__(
        self, client: AsyncClient, sandbox_id: str, config: Json, restored: models.Restored | None = None
    ) -> None:
        self._client = client
        self.id = sandbox_id
        self.config = config
        self.restored = restored
        self.files = AsyncFiles(client, sandbox_id)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(GlasshouseError):
            await self.close()

    async def close(self) -> None:
        """Ends the sandbox: its process and files are gone."""
        await self._client._do(ops.fetch(ops.Call("DELETE", f"/sandbox/{self.id}")))

    async def run(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        files: ops.Files | None = None,
        timeout: float | None = None,
        record: bool = False,
        tags: Mapping[str, str] | None = None,
        on_stdout: Callable[[str], object] | None = None,
        on_stderr: Callable[[str], object] | None = None,
        on_output: Callable[[models.Output], object] | None = None,
        on_query: Callable[[models.Query], object] | None = None,
        idempotency_key: str | None = None,
    ) -> Execution:
        """Runs code. With a callback, the run is streamed, and goes on being so if the connection breaks.

        context: variables of the code. files: uploads that are in /data first, by path. timeout: seconds. record:
        keep a recording, for `executions.why`. tags, idempotency_key: as in Client.run. on_stdout and on_stderr get
        text as it is printed; on_output and on_query get rich outputs and statements.
        """
        streams = any(each is not None for each in (on_stdout, on_stderr, on_output, on_query))
        call = ops.run_call(
            self.id, code, context=context, files=files, timeout=timeout, record=record, tags=tags, stream=streams,
            idempotency_key=idempotency_key,
        )
        if not streams:
            return await self._client._do(ops.run(call))
        async for event in self._client._events(call):
            data = json.loads(event.data)
            if event.name == "stdout" and on_stdout is not None:
                on_stdout(data["text"])
            elif event.name == "stderr" and on_stderr is not None:
                on_stderr(data["text"])
            elif event.name == "output" and on_output is not None:
                on_output(models.output(data))
            elif event.name == "query" and on_query is not None:
                on_query(models.query(data))
            elif event.name == "error":
                raise _stream_error(data)
            elif event.name == "done":
                return Execution.from_json(data)
        raise ConnectionFailed("the stream of events ended without the execution")

    async def debug(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        breakpoints: Sequence[int] = (),
        tags: Mapping[str, str] | None = None,
    ) -> AsyncIterator[models.Step]:
        """Runs code under the debugger and yields each line that ran. The last step has the execution."""
        call = ops.debug_call(self.id, code, context=context, breakpoints=list(breakpoints), tags=tags)
        try:
            async with self._client._open(call, {}) as response:
                reader = ops.EventReader()
                async for line in response.aiter_lines():
                    event = reader.line(line)
                    if event is None:
                        continue
                    if event.data == "[DONE]":
                        return
                    data = json.loads(event.data)
                    if "line_number" not in data:
                        raise _stream_error(data)
                    yield models.Step.from_json(data)
        except httpx.HTTPError as error:
            raise _transport.connection_failed(error, self._client._http.base_url) from error

    async def fork(self, count: int = 1) -> Sequence[AsyncSandbox]:
        """Returns new sandboxes with the variables and files that this one has now. Each changes alone from then on.

        count: at most 20. The executions of the sandbox run again in each, with the inputs that they had. Raises Busy
        if the sandbox runs code, and Gone if the inputs of its executions are not kept.
        """
        return await self._forks(ops.fork(self.id, count))

    async def _forks(self, operation: ops.Operation[list[ops.Fork]]) -> Sequence[AsyncSandbox]:
        found = await self._client._do(operation)
        return [AsyncSandbox(self._client, fork.sandbox_id, self.config, fork.restored) for fork in found]

    async def rollback(self, *, before: Execution | str) -> Execution:
        """Gives the sandbox the variables and files that it had before one of its executions, which before is or
        names. Returns the execution that restored them; its `restored` says how that went. History keeps the
        executions that are rolled back. Raises Gone if the inputs of the earlier executions are not kept."""
        execution_id = before if isinstance(before, str) else before.execution_id
        return await self._client._do(ops.rollback(self.id, execution_id))

    @contextlib.asynccontextmanager
    async def trial(self) -> AsyncIterator[AsyncSandbox]:
        """Yields a fork, which is deleted at the end, to try something that this sandbox should not keep."""
        (fork,) = await self.fork()
        async with fork:
            yield fork

    async def sweep(
        self,
        code: str,
        variants: Iterable[Mapping[str, Any]],
        *,
        timeout: float | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> list[tuple[Mapping[str, Any], Execution]]:
        """Runs code once for each variant, each time in a fork of its own, and returns pairs of the variant and its
        execution, in order. The sandbox itself does not change.

        variants: variables of the code, as the context of `run`. timeout, tags: as in `run`. At most 20 forks exist at
        a time, or fewer if the service has no room for more; all are deleted. Code that fails in one fork ends no
        other: look at the status of each execution. Raises the errors of `fork`.
        """
        left = list(variants)
        found: list[tuple[Mapping[str, Any], Execution]] = []
        while left:
            forks: list[AsyncSandbox] = []
            try:
                while len(forks) < min(len(left), ops.MAX_FORKS):
                    try:
                        forks += await self._forks(ops.fork(self.id, 1, retry=not forks))
                    except (Full, LimitReached):
                        if not forks:
                            raise
                        break
                runs = [
                    functools.partial(fork.run, code, context=variant, timeout=timeout, tags=tags)
                    for fork, variant in zip(forks, left, strict=False)
                ]
                found += zip(left, await _parallel.gather(runs), strict=False)
            finally:
                for fork in forks:
                    async with fork:  # which deletes it
                        pass
            left = left[len(forks) :]
        return found

    async def query(
        self, sql: str, params: Mapping[str, Any] | None = None, *, database: str | None = None
    ) -> models.QueryResult:
        """Runs one read-only statement under the sandbox's policy. Raises QueryRefused."""
        return await self._client._do(ops.query(self.id, sql, params, database))

    async def schema(self, *, database: str | None = None) -> Json:
        """Returns the tables that may be read, as Client.schema does."""
        return await self._client._do(ops.schema(self.id, database))

    async def variables(self) -> Json:
        """Returns the session's variables as {name: {"type", "repr", "shape"?}}."""
        answer = await self._client._do(ops.fetch(ops.Call("GET", f"/sandbox/{self.id}/variables")))
        found: Json = answer["variables"]
        return found

    async def status(self) -> Json:
        """Returns the state of the sandbox: its variables, last execution and resource usage."""
        answer: Json = await self._client._do(ops.fetch(ops.Call("GET", f"/sandbox/{self.id}/status")))
        return answer

    async def complete(self, code: str, cursor: int | None = None) -> Json:
        """Returns {"matches": [{"text", "type"}], "cursor_start", "cursor_end"}: the completions at a position in
        characters, by default the end of the code."""
        return await self._client._do(ops.complete(self.id, code, cursor))

    async def check(self, code: str) -> Json:
        """Returns the syntax errors and violations of the import rules, without running the code."""
        answer: Json = await self._client._do(ops.fetch(ops.Call("POST", f"/sandbox/{self.id}/check", {"code": code})))
        return answer

    async def artifacts(self) -> Sequence[models.Artifact]:
        """Returns the files that code left in /session/artifacts, newest first."""
        return await self._client._do(ops.artifacts(self.id))

    async def history(self, limit: int = 50) -> Json:
        """Returns {"history": [...], "total_executions": n} of the sandbox, newest first."""
        call = ops.Call("GET", f"/sandbox/{self.id}/history", params={"limit": str(limit)})
        answer: Json = await self._client._do(ops.fetch(call))
        return answer

    async def _template(self, processor_type: str) -> Json:
        call = ops.Call("POST", f"/sandbox/{self.id}/templates/processor", {"processor_type": processor_type})
        answer: Json = await self._client._do(ops.fetch(call))
        return answer


class AsyncFiles:
    """The uploads of a sandbox, which code reads in /data."""

    def __init__(self, client: AsyncClient, sandbox_id: str) -> None:
        self._client = client
        self._id = sandbox_id

    async def list(self) -> Sequence[models.File]:
        """Returns the uploads."""
        return await self._client._do(ops.files(self._id))

    async def write(self, path: str, content: str | bytes) -> models.File:
        """Uploads a file, which replaces one of that path. Text is stored as UTF-8."""
        return await self._client._do(ops.write_file(self._id, path, content))

    async def read(self, path: str) -> bytes:
        """Returns the bytes of an upload."""
        return await self._client._do(ops.read(f"/sandbox/{self._id}/files/{ops.quote(path)}"))

    async def delete(self, path: str) -> None:
        """Deletes an upload."""
        await self._client._do(ops.fetch(ops.Call("DELETE", f"/sandbox/{self._id}/files/{ops.quote(path)}")))


def _stream_error(problem: Json) -> GlasshouseError:
    from .errors import from_problem

    return from_problem(int(problem.get("status", 500)), problem)
