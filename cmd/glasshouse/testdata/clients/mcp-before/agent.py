"""Runs a LangGraph agent that has the tools of the MCP server through langchain-mcp-adapters.

Arguments: the framework, the service's address, the address of an endpoint with OpenAI's API. GLASSHOUSE_KEY has the
key.
"""

import asyncio
import os
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

URL, MODEL = sys.argv[2:4]


async def main():
    server = {
        "transport": "streamable_http",
        "url": URL + "/mcp",
        "headers": {"Authorization": "Bearer " + os.environ["GLASSHOUSE_KEY"]},
    }
    tools = await MultiServerMCPClient({"glasshouse": server}).get_tools()
    agent = create_react_agent(ChatOpenAI(model="scripted", base_url=MODEL, api_key="none"), tools)
    await agent.ainvoke({"messages": [("user", "Go.")]}, {"recursion_limit": 100})


asyncio.run(main())
