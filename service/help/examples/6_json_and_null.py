# Types of values: jsonb is a dict, NULL is None, numeric is Decimal
rows = await db_query("SELECT address, credit_limit FROM customers ORDER BY id LIMIT 3")
missing = await db_query("SELECT count(*) AS n FROM raw_data WHERE content IS NULL")
__result__ = {"zips": [r["address"]["zip"] for r in rows], "limit": rows[0]["credit_limit"], "missing": missing[0]["n"]}
