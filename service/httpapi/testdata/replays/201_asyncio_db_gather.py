import asyncio
async def count(table):
    rows = await db_query(f"SELECT count(*) AS n FROM {table}")
    return table, rows[0]["n"]
tables = await db_tables()
res = await asyncio.gather(*(count(t) for t in tables))
for t, n in sorted(res, key=lambda r: -r[1]):
    print(f"{t:<24}{n:>8}")
dict(res)
