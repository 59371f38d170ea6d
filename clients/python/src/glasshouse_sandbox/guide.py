"""The names of the sandbox guide: SandboxService, as an application calls it in process.

    from glasshouse_sandbox.guide import SandboxService

    service = SandboxService()
    sandbox_id = await service.create_agent_sandbox(user_id=1, config={"max_execution_time": 30})
    result = await service.execute_code(sandbox_id, "1 + 1")
    print(result.status, result.result)

Each call goes to the service that GLASSHOUSE_URL and GLASSHOUSE_KEY name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from ._async import AsyncClient
from .models import Execution, Json


class StepResult(dict[str, Any]):
    """The result of a debug step. Its keys are attributes, too: step["result"].status."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class SandboxService:
    """Sandboxes for agents, by the names of the guide.

    db_session: is accepted, and not used: the service has its own connections. client: the client to use; by default
    one for GLASSHOUSE_URL and GLASSHOUSE_KEY.
    """

    def __init__(self, db_session: object = None, *, client: AsyncClient | None = None) -> None:
        self.client = client or AsyncClient()

    async def create_agent_sandbox(self, user_id: int | str = "", config: Mapping[str, Any] | None = None) -> str:
        """Creates a sandbox and returns its id. The user is the key's; user_id is accepted, and not used."""
        sandbox = await self.client.sandboxes.create(**(config or {}))
        return sandbox.id

    async def execute_code(self, sandbox_id: str, code: str, context: Mapping[str, Any] | None = None) -> Execution:
        """Runs code and returns its execution: status, result, debug_info, error and more."""
        return await self.client.sandboxes.get(sandbox_id).run(code, context=context)

    async def query_database(self, sandbox_id: str, query: str, parameters: Mapping[str, Any] | None = None) -> Json:
        """Runs one read-only statement: {"query", "parameters", "results", "count", "truncated"}."""
        result = await self.client.sandboxes.get(sandbox_id).query(query, parameters)
        return {
            "query": query,
            "parameters": dict(parameters or {}),
            "results": result.rows,
            "count": result.count,
            "truncated": result.truncated,
        }

    async def get_database_schema(self, sandbox_id: str) -> Json:
        """Returns {"tables": [names], "schema": {table: [columns]}, "total_tables": n}."""
        return await self.client.sandboxes.get(sandbox_id).schema()

    async def debug_code(
        self, sandbox_id: str, code: str, context: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Json]:
        """Yields each line that ran: {"line_number", "line_code", "result", "state": {"variables"}}.

        result has attributes, such as step["result"].status; on the last step it is the whole execution.
        """
        async for step in self.client.sandboxes.get(sandbox_id).debug(code, context=context):
            yield {**step.raw, "result": StepResult(step.raw.get("result") or {})}

    async def cleanup_sandbox(self, sandbox_id: str) -> bool:
        """Ends a sandbox and returns True."""
        await self.client.sandboxes.get(sandbox_id).close()
        return True

    async def get_sandbox_statistics(self) -> Json:
        """Returns active_sandboxes, success_rate (0 to 100), average_execution_time (seconds) and more."""
        return await self.client.statistics()

    async def get_execution_history(self, sandbox_id: str) -> list[Json]:
        """Returns the executions of a sandbox, newest first, also after its end."""
        answer = await self.client.sandboxes.get(sandbox_id).history()
        return list(answer["history"])

    async def create_processor_template(self, sandbox_id: str, processor_type: str = "data_processor") -> str:
        """Returns the code of a processor: data_processor, text_analyzer or database_connector."""
        answer = await self.client.sandboxes.get(sandbox_id)._template(processor_type)
        return str(answer["template_code"])
