"""Runs code many times at once, each run in a sandbox of its own, and adds up the results.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set.
"""

import asyncio

from glasshouse_sandbox import AsyncClient, Execution

CODE = """
rows = await db_query("SELECT count(*) AS n FROM user_activities WHERE user_id % 8 = :part", {"part": context["part"]})
rows[0]["n"]
"""


async def main() -> None:
    limit = asyncio.Semaphore(4)  # more wait in the service's queue

    async with AsyncClient() as client:

        async def count(part: int) -> Execution:
            async with limit:
                return await client.run(CODE, context={"part": part})

        executions = await asyncio.gather(*(count(part) for part in range(8)))
        whole = (await client.query("SELECT count(*) AS n FROM user_activities")).rows[0]["n"]

    parts = [execution.raise_for_status().result for execution in executions]
    print("runs:", len(parts), "activities:", sum(parts), "of", whole)


asyncio.run(main())
