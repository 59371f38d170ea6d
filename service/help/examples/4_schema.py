# Tables and columns that can be read
tables = await db_tables()
columns = await db_schema("orders")
__result__ = {"tables": tables, "orders": [c["column_name"] for c in columns]}
