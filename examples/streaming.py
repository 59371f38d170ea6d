"""Shows output and statements of a run while it runs, and steps through another run line by line.

Run it with GLASSHOUSE_URL and GLASSHOUSE_KEY set.
"""

import asyncio

from glasshouse_sandbox import AsyncClient

CODE = """
for table in await db_tables():
    rows = await db_query(f"SELECT count(*) AS n FROM {table}")
    print(table, rows[0]["n"], flush=True)
"""


async def main() -> None:
    async with AsyncClient() as client, await client.sandboxes.create() as sandbox:
        execution = await sandbox.run(
            CODE, on_stdout=lambda text: print(text, end=""), on_query=lambda query: print("  query:", query.query)
        )
        print(execution.status)
        async for step in sandbox.debug("total = 0\nfor n in range(3):\n    total += n"):
            print(step.line_number, step.line_code.strip(), step.variables.get("total"))


asyncio.run(main())
