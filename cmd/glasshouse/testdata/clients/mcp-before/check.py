"""Calls the MCP server with clients of the protocol version before the newest: mcp 1, LangChain, LangGraph.

Arguments: the service's address, the path of the program glasshouse. GLASSHOUSE_KEY has the key.
"""

import asyncio
import os
import sys

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.prebuilt import create_react_agent
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

URL, BINARY = sys.argv[1:3]
HEADERS = {"Authorization": "Bearer " + os.environ["GLASSHOUSE_KEY"]}


async def official(read, write, name):
    async with ClientSession(read, write) as session:
        started = await session.initialize()
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert {"run_python", "query_database", "explain_execution", "replay_execution"} <= names, names
        result = await session.call_tool("run_python", {"code": "6 * 7"})
        assert result.content[0].text.startswith("result: 42"), result
        result = await session.call_tool("run_python", {"code": "print('x' * 50_000_000)"})
        assert len(result.content[0].text) < 9000 and "left out" in result.content[0].text
        assert len((await session.list_resource_templates()).resourceTemplates) == 3
        print(name, started.protocolVersion, "ok")


class ScriptedModel(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


async def langchain():
    server = {"transport": "streamable_http", "url": URL + "/mcp", "headers": HEADERS}
    tools = await MultiServerMCPClient({"glasshouse": server}).get_tools()
    assert "run_python" in {tool.name for tool in tools}, tools

    def call(name, **arguments):
        return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name}])

    analysis = "rows = await db_query('SELECT plan, count(*) AS n FROM users GROUP BY plan')\nsum(r['n'] for r in rows)"
    script = [call("describe_database", table="users"), call("run_python", code=analysis), AIMessage("done")]
    agent = create_react_agent(ScriptedModel(messages=iter(script)), tools)
    state = await agent.ainvoke({"messages": [("user", "How many users are there?")]})
    answers = [str(m.content) for m in state["messages"] if isinstance(m, ToolMessage)]
    assert len(answers) == 2 and "id integer" in answers[0] and "result: " in answers[1], answers
    print("langchain, langgraph ok")


async def main():
    async with streamablehttp_client(URL + "/mcp", headers=HEADERS) as (read, write, _):
        await official(read, write, "mcp 1 over HTTP")
    parameters = StdioServerParameters(command=BINARY, args=["mcp", "--url", URL], env=dict(os.environ))
    async with stdio_client(parameters) as (read, write):
        await official(read, write, "mcp 1 over stdio")
    await langchain()


asyncio.run(main())
