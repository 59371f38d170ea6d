"""Runs the tools of glasshouse_sandbox.langchain with LangChain and a LangGraph agent whose model is scripted.

GLASSHOUSE_URL and GLASSHOUSE_KEY name the service.
"""

import asyncio
import concurrent.futures

from glasshouse_sandbox import Client
from glasshouse_sandbox.langchain import GlasshousePythonTool, GlasshouseToolkit
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


def call(name, **arguments):
    return ToolCall(name=name, args=arguments, id=name, type="tool_call")


def check_python_tool(client):
    with GlasshousePythonTool(client=client, config={"max_rows": 5000}) as tool:
        assert "status=completed" in tool.invoke({"code": "x = 41"})
        message = tool.invoke(call("run_python", code="print('hi')\nx + 1"))
        assert isinstance(message, ToolMessage) and message.content.startswith("hi\nresult: 42\n"), message
        assert message.artifact.ok and message.artifact.result == 42
        failed = tool.invoke(call("run_python", code="{'amount': 1}['amuont']"))
        assert "KeyError" in failed.content and not failed.artifact.ok, failed
        plot = tool.invoke(call("run_python", code="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone"))
        assert [block["type"] for block in plot.content] == ["text", "image"], plot.content
        assert [block["type"] for block in plot.content_blocks] == ["text", "image"], plot.content_blocks
        assert plot.artifact.images[0].startswith(b"\x89PNG")
        # A sandbox runs one program at a time; calls of parallel tools wait for each other.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(
                pool.map(lambda n: tool.invoke(call("run_python", code=f"x + {n}")).artifact.result, range(4))
            )
        assert answers == [41, 42, 43, 44], answers
        assert asyncio.run(tool.ainvoke(call("run_python", code="x"))).artifact.result == 41
        tool._sandbox.close()  # as its idle time does
        lost = tool.invoke(call("run_python", code="x"))
        assert lost.content.startswith("note: the earlier session has ended") and "NameError" in lost.content, lost
        sandbox = tool._sandbox
    try:
        sandbox.run("1")
    except Exception as error:
        assert type(error).__name__ == "Gone", error
    else:
        raise AssertionError("close left the sandbox")


def check_agent(client):
    script = iter(
        [
            AIMessage("", tool_calls=[call("describe_database", table="users")]),
            AIMessage("", tool_calls=[call("query_database", sql="SELECT count(*) AS n FROM users")]),
            AIMessage("", tool_calls=[call("query_database", sql="DROP TABLE users")]),
            AIMessage(
                "",
                tool_calls=[call("code_sandbox", code="(await db_query('SELECT count(*) AS n FROM users'))[0]['n']")],
            ),
            AIMessage("done"),
        ]
    )
    with GlasshouseToolkit(client=client) as toolkit:
        tools = toolkit.get_tools()
        assert [t.name for t in tools] == ["code_sandbox", "query_database", "describe_database"]
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [next(script)]})
        graph.add_node("tools", ToolNode(tools))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
        graph.add_edge("tools", "model")
        state = graph.compile().invoke({"messages": [("user", "How many users are there?")]})
    described, counted, refused, ran = [m for m in state["messages"] if isinstance(m, ToolMessage)]
    assert "id integer" in described.content, described
    assert counted.content.startswith('{"n": ') and counted.content.endswith("\n1 rows"), counted
    assert refused.status == "error" and "only reads" in refused.content, refused
    assert ran.content.startswith("result: ") and ran.artifact.ok, ran


with Client() as client:
    check_python_tool(client)
    check_agent(client)
print("langchain, langgraph ok")
