"""Calls the MCP server with the newest clients: mcp, OpenAI Agents and Pydantic AI, over HTTP and stdio.

Arguments: the service's address, the path of the program glasshouse. GLASSHOUSE_KEY has the key. The connections of
OpenAI Agents and Pydantic AI are the snippets of docs/mcp.md.
"""

import asyncio
import os
import re
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from snippets import snippet

URL, BINARY = sys.argv[1:3]
HEADERS = {"Authorization": "Bearer " + os.environ["GLASSHOUSE_KEY"]}
NAMES = {
    "run_python",
    "query_database",
    "explain_query",
    "describe_database",
    "explain_execution",
    "replay_execution",
}
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('plotted')"


def text_of(result):
    return "\n".join(c.text for c in result.content if c.type == "text")


async def official(server, name):
    lines = []

    async def on_progress(progress, total, message):
        lines.append(message)

    async with Client(server) as client:
        tools = await client.list_tools()
        assert NAMES <= {tool.name for tool in tools.tools}, tools
        result = await client.call_tool("run_python", {"code": "6 * 7"})
        assert not result.is_error and text_of(result).startswith("result: 42"), result
        session = re.search(r"session_id=(\S+) execution_id=\S+ status=completed$", text_of(result))[1]
        result = await client.call_tool("run_python", {"code": PLOT, "session_id": session})
        assert [c.type for c in result.content] == ["text", "image"], result
        result = await client.call_tool("run_python", {"code": "1 / 0", "session_id": session})
        assert result.is_error and "ZeroDivisionError" in text_of(result), result
        slow = "import time\nfor n in range(4):\n    print('line', n, flush=True)\n    time.sleep(0.6)"
        await client.call_tool("run_python", {"code": slow, "session_id": session}, progress_callback=on_progress)
        assert lines and all(line.startswith("line") for line in lines), lines
        many = await asyncio.gather(
            *(client.call_tool("query_database", {"sql": f"SELECT {n} AS n"}) for n in range(100))
        )
        assert [f"[{n}]" in text_of(r) for n, r in enumerate(many)] == [True] * 100
        result = await client.call_tool("explain_query", {"sql": "SELECT id FROM users WHERE id < 3"})
        assert "users " in text_of(result) and result.structured_content["text"] == text_of(result), result
        templates = await client.list_resource_templates()
        assert len(templates.resource_templates) == 3, templates
        print(name, client.protocol_version, "ok")


async def openai_agents():
    async with snippet("agents", URL)["server"] as server:
        assert NAMES <= {tool.name for tool in await server.list_tools()}
        result = await server.call_tool("run_python", {"code": "6 * 7"})
        assert "result: 42" in result.content[0].text, result
        print("openai-agents ok")


async def pydantic():
    async with snippet("pydantic_ai", URL)["toolset"] as toolset:
        result = await toolset.direct_call_tool("run_python", {"code": "6 * 7"})
        assert "42" in str(result), result
        print("pydantic-ai ok")


async def main():
    http = httpx2.AsyncClient(headers=HEADERS, timeout=120)
    await official(streamable_http_client(URL + "/mcp", http_client=http), "mcp over HTTP")
    stdio = StdioServerParameters(command=BINARY, args=["mcp", "--url", URL], env=dict(os.environ))
    await official(stdio, "mcp over stdio")
    await openai_agents()
    await pydantic()


asyncio.run(main())
