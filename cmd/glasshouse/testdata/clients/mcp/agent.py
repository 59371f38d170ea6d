"""Runs an agent of Pydantic AI or OpenAI Agents that has the tools of the MCP server.

Arguments: the framework, the service's address, the address of an endpoint with OpenAI's API. GLASSHOUSE_KEY has the
key. The connections are the snippets of docs/mcp.md.
"""

import asyncio
import sys

from snippets import snippet

FRAMEWORK, URL, MODEL = sys.argv[1:4]


async def pydantic():
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=MODEL, api_key="none"))
    await Agent(model, toolsets=[snippet("pydantic_ai", URL)["toolset"]]).run("Go.")


async def openai_agents():
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=MODEL, api_key="none"))
    async with snippet("agents", URL)["server"] as server:
        await Runner.run(Agent("scripted", model=model, mcp_servers=[server]), "Go.", max_turns=100)


asyncio.run({"pydantic-ai": pydantic, "openai-agents": openai_agents}[FRAMEWORK]())
