"""A LangGraph agent that analyses the database with code. Its model is scripted, so no key of a model is needed.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set, after `pip install './clients/python[langchain]' langgraph`. For an
agent that thinks, replace `scripted` with a chat model that `model.bind_tools(toolkit.get_tools())` has bound.
"""

from collections.abc import Iterator
from typing import Any

from glasshouse_sandbox import Client
from glasshouse_sandbox.langchain import GlasshouseToolkit
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

ANALYSE = """
import pandas as pd
users = pd.DataFrame(await db_query("SELECT country FROM users"))
top = users["{column}"].value_counts().head(3)
top.to_dict()
"""
PLOT = """
import matplotlib.pyplot as plt
top.plot.bar(title="Users by country")
top.to_csv("/session/artifacts/countries.csv")
None
"""


def scripted() -> Iterator[AIMessage]:
    """Yields the answers of a model: it looks at the table, mistypes a column, reads the hint, and plots."""
    yield AIMessage("", tool_calls=[ToolCall(name="describe_database", args={"table": "users"}, id="1")])
    for number, code in enumerate((ANALYSE.format(column="contry"), ANALYSE.format(column="country"), PLOT), 2):
        yield AIMessage("", tool_calls=[ToolCall(name="code_sandbox", args={"code": code}, id=str(number))])
    yield AIMessage("These are the three countries with the most users; countries.csv has the numbers.")


def build(toolkit: GlasshouseToolkit) -> Any:
    """Returns the graph: the model calls tools until it answers."""
    answers = scripted()
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [next(answers)]})
    graph.add_node("tools", ToolNode(toolkit.get_tools()))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile()


with Client() as client, GlasshouseToolkit(client=client) as toolkit:
    messages = build(toolkit).invoke({"messages": [("user", "Where do most users live?")]})["messages"]
    for message in messages:
        message.pretty_print()
        if isinstance(message, ToolMessage) and message.name == "code_sandbox":
            for file in message.artifact.artifacts:
                print("file:", file.path, len(client.executions.artifact(file)), "bytes")
