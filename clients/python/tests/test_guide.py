"""The blocks of the sandbox guide run word for word through glasshouse_sandbox.guide, in the guide's order."""

import ast
import asyncio
import inspect
import pathlib
import re
import sys
import types

import pytest
from glasshouse_sandbox import AsyncClient, NotFound, guide

BLOCKS = re.findall(
    r"^## (.*?)\n\n```python\n(.*?)^```$", (pathlib.Path(__file__).parent / "guide.md").read_text(), re.M | re.S
)
IN_SANDBOX = ("Database Functions", "Debug Functions", "Built-in Functions", "Best Practices: 4. Debugging")


@pytest.fixture
def application(service, monkeypatch):
    """The modules that the guide imports from the application around it."""
    monkeypatch.setenv("GLASSHOUSE_URL", str(service._http.base_url))
    monkeypatch.setenv("GLASSHOUSE_KEY", service._http.headers["Authorization"].removeprefix("Bearer "))

    async def get_db_session():
        return object()

    for name in ("app", "app.services", "app.services.sandbox_service", "app.core", "app.core.database"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["app.services.sandbox_service"].SandboxService = guide.SandboxService
    sys.modules["app.core.database"].get_db_session = get_db_session


class Reader:
    """Runs the blocks as a reader of the guide does, who keeps the names of earlier blocks."""

    def __init__(self):
        self.names = {}

    async def run(self, title, **config):
        """Runs the block whose title ends so."""
        (block,) = (block for name, block in BLOCKS if name.endswith(title))
        if title in IN_SANDBOX:  # a program of the sandbox, with the variables that it speaks of
            context = {"data": [1], "my_data": {"a": 1}}
            execution = await self.names["service"].execute_code(self.names["sandbox_id"], block, context)
            assert execution.ok, execution.text
            return
        code = compile(block, title, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, self.names)
        if inspect.isawaitable(result):
            await result


def test_every_block_of_the_guide_runs(application, capsys):
    async def main():
        reader = Reader()
        names = reader.names
        for title, _ in BLOCKS[:4]:
            await reader.run(title)
        assert names["result"].result["total_users"] == len(names["result"].result["processed_users"]) == 10
        assert names["query_result"]["results"][0]["user_count"] > 0 and "users" in names["schema"]["tables"]
        for title in IN_SANDBOX[:3]:
            await reader.run(title)

        await reader.run("1. Data Analysis Agent")
        analysis = names["result"].raise_for_status().result
        assert analysis["total_activities"] > 0 and len(analysis["most_active_users"]) == 10

        await reader.run("2. Knowledge Extraction Agent")  # it writes, which the service refuses
        assert names["result"].status == "failed" and "ReadOnlyError" in names["result"].error
        sandbox_id = names["sandbox_id"]
        names["sandbox_id"] = await names["service"].create_agent_sandbox(1, {"write_policy": "capture"})
        await reader.run("2. Knowledge Extraction Agent")
        extracted = names["result"].raise_for_status()
        assert extracted.result["processed_documents"] == len(extracted.result["extracted_knowledge"]) > 0
        assert {q.status for q in extracted.queries} == {"ok", "captured"}
        await reader.run("5. Cleanup")
        names["sandbox_id"] = sandbox_id

        await reader.run("3. Pipeline Debugging Agent")
        debugged = names["result"].raise_for_status().result
        assert debugged["input_count"] == debugged["processed_count"] == 5
        assert debugged["debug_summary"]["total_logs"] > 3

        await reader.run("1. Resource Management")
        assert await names["service"].create_agent_sandbox(user_id=1, config=names["config"])
        await reader.run("2. Error Handling")
        await reader.run("3. Database Queries")
        assert names["results"]["count"] > 0
        await reader.run("Best Practices: 4. Debugging")
        await reader.run("Get Sandbox Statistics")
        await reader.run("Execution History")
        await reader.run("Integration with Processor Pipeline")
        assert "return {'transformed': True, 'data': data}" in names["modified_code"]
        names["result"].raise_for_status()
        await reader.run("5. Cleanup")
        with pytest.raises(NotFound):
            await names["service"].execute_code("none", "1")
        await names["service"].client.close()

    asyncio.run(main())
    printed = capsys.readouterr().out
    for line in ("Status: completed\n", "Available tables: [", "Line 2: data = [1, 2, 3, 4, 5]\n"):
        assert line in printed, printed
    assert re.search(r"Result: executed\nVariables: \{.*'item': '5'", printed), printed
    assert re.search(
        r"Active sandboxes: \d+\nSuccess rate: \d+\.\d\d%\nAverage execution time: \d+\.\d\ds\n", printed
    ), printed
    assert len(re.findall(r"^Execution \S+: completed$", printed, re.M)) > 3, printed


def test_blocks_are_all_there():
    assert len(BLOCKS) == 18
    assert all(
        isinstance(compile(block, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), types.CodeType)
        for name, block in BLOCKS
    )
    assert AsyncClient is guide.AsyncClient
